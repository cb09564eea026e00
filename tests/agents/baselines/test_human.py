"""A person at the terminal: what is typed, line by line and key by key."""

import io
import sys

import pytest
from rich.console import Console

import textgames
from agents import EpisodeTask, rollout
from agents.baselines.human import HumanPlayer, PersonLeft
from agents.turn import TurnRequest
from tests.terminal import DOWN, LEFT, RIGHT, UP, Terminal

ACTIONS = ("left", "down", "right", "up")


def person(typed):
    screen = io.StringIO()
    return HumanPlayer(io.StringIO(typed), Console(file=screen, width=80)), screen


@pytest.mark.parametrize(
    ("typed", "legal", "answers", "shown"),
    [
        ("up\nR\n  do\n", ACTIONS, ["up", "right", "down"], "3 steps left"),
        ("jump\n\nle\n", ACTIONS, ["left"], "'jump' isn't one of these actions"),
        ("l\nleft\n", ("left", "leap"), ["left"], "'l' isn't one of these actions"),  # ambiguous
        ("STRASSE\nвн\n上\n", ("straße", "вниз", "вверх", "上"), ["straße", "вниз", "上"], "Вы в лесу 🌲"),
        # where any text counts it goes to the game as it was typed
        ("  I offer 3 Books, DEAL?  \n?\nquite so\n", (), ["I offer 3 Books, DEAL?", "quite so"], "any text"),
        # an action comes before a command of the same name
        ("q\nquit\nhelp\n", ("quit", "help"), ["quit", "quit", "help"], "q to quit"),
    ],
)
def test_a_person_types_an_action_in_full_or_short(typed, legal, answers, shown):
    player, screen = person(typed)
    request = TurnRequest("[red]Вы в лесу 🌲", "規則", legal, steps_left=3)
    assert [turn.response for turn in player.act([request] * len(answers))] == answers
    assert shown in screen.getvalue()
    assert "[red]Вы в лесу 🌲" in screen.getvalue()  # shown as it is, not as markup
    assert screen.getvalue().count("規則") == 1 + typed.count("?\n")


def test_a_question_mark_shows_the_rules_again():
    player, screen = person("?\nhelp\nleft\n")
    assert player.act([TurnRequest("o", "The rules.", ACTIONS)])[0].response == "left"
    assert screen.getvalue().count("The rules.") == 3


@pytest.mark.parametrize("typed", ["", "quit\n", "q\n", "jump\n"])
def test_leaving(typed):
    player, _ = person(typed)
    with pytest.raises(PersonLeft):
        player.act([TurnRequest("o", legal_actions=ACTIONS)])
    assert issubclass(PersonLeft, KeyboardInterrupt)  # which is how loops and commands take it


def test_a_person_plays_one_episode_after_the_other():
    player, _ = person("left\n" * 16)
    lake = {"desc": ["SF", "FG"]}
    tasks, asked = [EpisodeTask.of("frozen-lake", seed, **lake) for seed in (1, 2)], []
    first, second = rollout(player, tasks, max_concurrency=64, on_step=lambda task, step: asked.append(task.seed))
    assert (first.seed, second.seed) == (1, 2)
    assert asked == sorted(asked)
    assert first.agents == {"player_0": "human"}
    assert [step.action for step in first.steps] == ["left"] * 8


# ---------------------------------------------------------------- key by key

ASKING = """
from agents.baselines.human import HumanPlayer, PersonLeft
from agents.turn import TurnRequest
player = HumanPlayer()
try:
    while True:
        (turn,) = player.act([TurnRequest("o", "The rules.", {actions!r})])
        print(f"[{{turn.response}}]", flush=True)
except PersonLeft:
    print("left", flush=True)
"""


def asked_for(*actions):
    return Terminal([sys.executable, "-c", ASKING.format(actions=actions)])


@pytest.mark.slow
def test_arrow_keys_act_at_once_and_names_with_enter():
    with asked_for(*ACTIONS) as terminal:
        assert "left, down, right, up (or the arrow keys); ? for the rules, q to quit" in terminal.wait_for("> ")
        for key, action in ((UP, "up"), (DOWN, "down"), (LEFT, "left"), (RIGHT, "right")):
            terminal.press(key, f"[{action}]")
            assert terminal.wait_for("> ").startswith(f"{action}\n[{action}]\n")
        assert "The rules." in terminal.press("?", "> ")
        terminal.press("righ\x7f\x7f\x7f\x7fdo\r", "[down]")
        assert "[up]" in terminal.press(UP + LEFT, "[left]")  # typed ahead: the second one answers the next question
        terminal.press("q", "left\n")
        assert terminal.ends_with() == 0
        assert terminal.was_put_back()


@pytest.mark.slow
def test_keys_that_begin_an_action_wait_for_enter():
    with asked_for("quiet", "up") as terminal:
        terminal.wait_for("> ")
        terminal.press("q\r", "[quiet]")
        terminal.press("u" + UP + "\r", "[up]")  # an arrow key in the middle of a word is none
        terminal.press("\x04", "left\n")
        assert terminal.ends_with() == 0


@pytest.mark.slow
def test_any_text_can_be_typed_where_no_actions_are_known():
    with asked_for() as terminal:
        assert "any text; ? for the rules" in terminal.wait_for("> ")
        terminal.press("question? é字\x7f語\r", "[question? é語]")
        terminal.press("?\r", "The rules.")
        terminal.press("quit\r", "left\n")


def test_a_listed_action_gets_its_tag_in_a_game_that_wants_one():
    game = textgames.SCENARIOS["werewolf-5"].game()
    player, _ = person("player_2\nhello\n")
    vote = TurnRequest("o", legal_actions=("player_1", "player_2"), game=game)
    speech = TurnRequest("o", action_help="your message", game=game)
    assert [turn.response for turn in player.act([vote, speech])] == [
        "<action>player_2</action>",
        "<action>hello</action>",
    ]


def test_where_standard_input_is_closed_nobody_can_answer(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)  # textbench play SCENARIO <&-
    with pytest.raises(ValueError, match="standard input, and that is closed"):
        HumanPlayer()
