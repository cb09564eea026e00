"""``textbench play`` in a real pseudo-terminal and in a pipe: keys, how it ends, and how one leaves."""

import io
import sys

import pytest

from tests.terminal import DOWN, LEFT, RIGHT, TEXTBENCH, Terminal


def playing(*arguments):
    return Terminal([*TEXTBENCH, "play", *arguments])


@pytest.mark.slow
def test_arrow_keys_lead_to_the_goal():
    """The lake's first map: down the left side and along the bottom."""
    with playing("frozen-lake") as terminal:
        assert "You are playing Frozen Lake." in terminal.wait_for("> ")
        assert "player_0, 8 steps left" in terminal.text
        for key, action in ((DOWN, "down"), (LEFT, "left"), (DOWN, "down"), (DOWN, "down"), (RIGHT, "right")):
            told = "bumped into the edge" if key == LEFT else "reward +0"
            terminal.press(key, f"you: action {action}, valid   {told}")
            terminal.wait_for("> ")
        terminal.press(RIGHT, "> ")
        end = terminal.press(RIGHT, "you: return")
        assert "you: action right, valid   reached the goal   reward +1   return so far 1" in end
        assert "_ _ _ P\ngame over for you: reached the goal\nyou: return 1, success\n" in end
        assert terminal.ends_with() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "said", "code"),
    [
        ("\x04", "you left; the episode isn't finished", 0),
        ("\x03", "textbench: interrupted", 130),
        (None, "textbench: interrupted", 130),
    ],
    ids=["end of input", "Ctrl-C", "terminated"],
)
def test_ways_to_leave(key, said, code):
    with playing("snake") as terminal:
        terminal.wait_for("> ")
        assert not terminal.was_put_back()
        if key is None:
            terminal.process.terminate()
        assert "Traceback" not in (terminal.wait_for(said) if key is None else terminal.press(key, said))
        assert terminal.ends_with() == code
        assert terminal.was_put_back()


def test_a_pipe_plays_by_lines_and_its_end_is_an_interruption(textbench, monkeypatch):
    for typed, code in (("right\n" * 40, 0), ("right\n", 130), ("quit\n", 130)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        done = textbench("play", "frozen-lake", "--episode", 2)
        assert done.code == code, done.err
        assert ("you: return" in done.out) is (code == 0)
        assert "Traceback" not in done.err


def test_a_game_that_no_search_player_can_play_is_played_against_random(textbench, monkeypatch, suite_with_strangers):
    monkeypatch.setattr(sys, "stdin", io.StringIO("GIVE\n" * 2))
    refused = textbench("play", "share-three", "--against", "planner")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "can't play Share" in refused.err  # before anything is asked
    done = textbench("play", "share-three")
    assert done.code == 0, done.err
    assert "random: return" in done.out  # greedy can't play it either, and nobody asked for greedy
    assert "player_0, 4 steps left" in done.err
    assert "Round 3 of 2." in done.err  # what stands at the end of a game without a board


def test_a_person_speaks_and_votes_where_every_answer_needs_its_tag(textbench, monkeypatch):
    """What is typed is an answer, never a thought: it goes into the tag, listed names too."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("I am no wolf.\nplayer_2\n" * 8))
    done = textbench("play", "werewolf-5", "--episode", 1, "--against", "random")
    assert done.code == 0, done.err
    assert "you: action I am no wolf., valid" in done.err
    assert "you: action player_2, valid" in done.err
    assert "invalid" not in done.err
    assert "with the village" in done.out  # how it ended, for all


@pytest.mark.parametrize(
    ("game", "typed", "secret"), [("bandit", "red", "better on average"), ("mastermind", "red red red", "code was")]
)
def test_what_a_game_hides_is_not_told_during_play(textbench, monkeypatch, game, typed, secret):
    """What came of a move may say more than a player knows, such as how far an arm is below the best one."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{typed}\n" * 25))
    done = textbench("play", game)
    assert done.code == 0, done.err
    assert f"you: action {typed}, valid   reward" in " ".join(done.err.split("\n"))
    assert secret not in done.err
    assert secret in done.out
