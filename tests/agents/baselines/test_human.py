"""A person at the terminal: what is typed, line by line and key by key."""

import io
import sys

import pytest
from rich.console import Console

from agents import EpisodeTask, rollout
from agents.baselines.human import HumanPlayer
from agents.turn import TurnRequest
from tests.terminal import LEFT, UP, Terminal

ACTIONS = ("left", "down", "right", "up")


def person(typed):
    screen = io.StringIO()
    return HumanPlayer(io.StringIO(typed), Console(file=screen, width=80)), screen


@pytest.mark.parametrize(
    ("typed", "legal", "answers", "shown"),
    [
        ("up\nR\n  do\n", ACTIONS, ["up", "right", "down"], "3 steps left"),
        ("\nl\nle\n", ("left", "leap", "le"), ["le"], "'l' isn't one of these actions"),  # ambiguous
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


def test_a_person_plays_one_episode_after_the_other():
    player, _ = person("left\n" * 16)
    lake = {"desc": ["SF", "FG"]}
    tasks, asked = [EpisodeTask.of("frozen-lake", seed, **lake) for seed in (1, 2)], []
    first, second = rollout(player, tasks, max_concurrency=64, on_step=lambda task, step: asked.append(task.seed))
    assert (first.seed, second.seed) == (1, 2)
    assert asked == sorted(asked)
    assert first.agents == {"player_0": "human"}
    assert [step.action for step in first.steps] == ["left"] * 8


ASKING = """
from agents.baselines.human import HumanPlayer, PersonLeft
from agents.turn import TurnRequest
player = HumanPlayer()
try:
    for actions in (("left", "up", "quiet"), ("left", "up"), (), ("up",)):
        (turn,) = player.act([TurnRequest("o", "The rules.", actions)])
        print(f"[{turn.response}]", flush=True)
except PersonLeft:
    print("gone", flush=True)
"""


@pytest.mark.slow
def test_at_a_terminal_arrow_keys_act_at_once_and_what_begins_an_action_waits_for_enter():
    with Terminal([sys.executable, "-c", ASKING]) as terminal:
        assert "left, up, quiet (or the arrow keys); ? for the rules, q to quit" in terminal.wait_for("> ")
        assert "The rules." in terminal.press("?", "> ")
        terminal.press("lef\x7f\x7f\x7fq" + UP + "\r" + LEFT, "[quiet]")  # an arrow key inside a word is none
        assert "any text; ? for the rules" in terminal.wait_for("> ")  # the one typed ahead has answered the second
        terminal.press("question? é字\x7f語\r", "[question? é語]")
        terminal.press("q", "gone\n")
        assert terminal.ends_with() == 0
        assert terminal.was_put_back()


def test_where_standard_input_is_closed_nobody_can_answer(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)  # textbench play SCENARIO <&-
    with pytest.raises(ValueError, match="standard input, and that is closed"):
        HumanPlayer()
