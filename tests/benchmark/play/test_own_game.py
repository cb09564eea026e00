"""A game of the user's own goes through every command, from one class and one registration line."""

import json
import sys
from pathlib import Path

import pytest

from tests.benchmark.helpers import change_manifest

GAME = '''
from textgames import TSMG, register


class Countdown(TSMG):
    """Say down until zero."""

    actions = ("down", "stay")

    def initial_state(self, rng):
        return int(rng.integers(1, 4))

    def transition(self, state, joint_action, rng):
        state -= joint_action["player_0"] == "down"
        return state, {"player_0": float(state == 0)}, state == 0

    def observe(self, state, player):
        return f"You are at {state}."

    def instructions(self, player):
        return "Go down to zero."

    def succeeded(self, state, player):
        return state == 0


register("Countdown-v0", "countdown_game:Countdown", max_steps=5)
'''


@pytest.fixture
def game(workplace, short_search):
    Path("countdown_game.py").write_text(GAME)
    yield "countdown_game:Countdown-v0"
    sys.modules.pop("countdown_game", None)


def test_an_own_game_is_played_resumed_replayed_and_shown(textbench, game):
    done = textbench("run", "--agent", "random", "--scenario", game, "--episodes", 6, "--out", "r", "--json", "--quiet")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["scores"]
    assert (row["scenario"], row["episodes"]) == (game, 6)
    assert row["success_rate"]["value"] > 0
    lines = Path("r/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("r/episodes.jsonl").write_bytes(b"".join(lines[:2]))
    sys.modules.pop("countdown_game")  # as in a process of its own: the run has named it, so the resume needn't
    assert textbench("resume", "r", "--quiet").code == 0
    assert "You are at" in textbench("replay", "r", "--plain").out
    assert textbench("leaderboard", "r", "--html", "page.html").code == 0


def test_the_commands_that_a_run_ends_with_name_the_games_module(textbench, game):
    done = textbench("run", "--agent", "random", "--scenario", game, "--episodes", 2, "--out", "r")
    told = [line.partition(": textbench ")[2].split() for line in done.err.splitlines() if ": textbench " in line]
    assert told == [
        ["replay", "r", "--import", "countdown_game"],
        ["leaderboard", "r", "--stats", "--import", "countdown_game"],
    ]
    for command in told:
        sys.modules.pop("countdown_game", None)  # as in a process of its own
        assert textbench(*command).code == 0
    shipped = textbench("run", "--agent", "random", "--scenario", "taxi", "--episodes", 2, "--out", "s")
    assert "--import" not in shipped.err


def test_mistakes_about_own_games(textbench, game):
    done = textbench("run", "--scenario", "countdwn_game:Countdown-v0", "--agent", "random")
    assert (done.code, done.out) == (2, "")
    assert "can't be imported: No module named 'countdwn_game'" in done.err
    done = textbench("run", "--scenario", "countdown_game:Countdwn-v0", "--agent", "random")
    assert done.code == 2
    assert "did you mean 'Countdown-v0'?" in done.err


@pytest.mark.parametrize("protocol", ["--protocol=forfeit", "--protocols=random,retry"])
def test_a_game_that_states_no_loss_is_refused_before_anything_is_played(textbench, game, protocol):
    done = textbench("run", "--agent", "random", "--scenario", game, "--out", "r", protocol)
    assert (done.code, Path("r").exists()) == (2, False)
    assert f"{game} can't be played with --protocol" in done.err
    assert "invalid_action='forfeit' can't be used" in done.err


def test_a_strangers_entry_imports_nothing(textbench, game):
    assert textbench("run", "--agent", "random", "--scenario", game, "--episodes", 2, "--out", "r", "--quiet").code == 0
    change_manifest("r", lambda m: m.update(kind="textbench-entry", agent="random"))
    sys.modules.pop("countdown_game")
    for command in (("validate", "r"), ("leaderboard", "r"), ("replay", "r", "--plain")):
        done = textbench(*command)
        assert done.code == 2
        assert "an entry can't bring its own game" in done.err
    assert "countdown_game" not in sys.modules
