"""Pictures, drawn without a library: a player's shows no more than it may see, and letters can be read."""

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import draw_views
import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames.environments.render import (
    COLUMNS,
    LINES,
    board_picture,
    glyph,
    observed_picture,
    render_state,
    text_picture,
)

HIDING = {
    *("TextBandit-v0", "TextContextualBandit-v0", "TextOnlineLearning-v0", "TextMastermind-v0", "TextGuessNumber-v0"),
    *("TextWordGuess-v0", "TextKuhnPoker-v0", "TextLeducPoker-v0", "TextLiarsDice-v0", "TextWerewolf-v0"),
    *("OpenSpielBlackjack-v0", "OpenSpielHanabi-v0"),
}


def alike(game: Any) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of different states of random play that a player reads in the same words.

    The play of every third episode is the same, if its hidden parts allow it.
    """
    groups: dict[tuple[str, str], dict[Any, None]] = {}
    for episode in range(24):
        state, over = game.initial_state(np.random.default_rng(episode)), False
        rng = np.random.default_rng(episode // 3)
        for _ in range(12):
            for player in game.players:
                groups.setdefault((player, game.observe(state, player)), {})[state] = None
            if over:
                break
            acts = {player: game.sample_action(state, player, rng) for player in game.to_move(state)}
            state, _, over = game.transition(state, acts, rng)
    for (player, _), states in groups.items():
        yield from ((player, *pair) for pair in pairwise(states))


def drawn(game: Any, state: Any, view: str | None) -> np.ndarray[Any, Any]:
    picture: Any = render_state(game, state, "rgb_array", "", view, game.players[0])
    return picture


@pytest.mark.parametrize("env_id", [name for name in textgames.registered_ids() if name != "OpenSpiel-v0"])
def test_what_a_player_cannot_tell_apart_looks_the_same(env_id):
    if env_id.startswith("OpenSpiel"):
        pytest.importorskip("pyspiel")
    game = textgames.game_of(env_id)
    assert game.hidden_information == (env_id in HIDING)
    pairs = list(islice(alike(game), 6))
    assert pairs or not game.hidden_information or env_id.startswith("OpenSpiel")  # whose deals are too many to meet
    for player, one, other in pairs:
        assert np.array_equal(drawn(game, one, player), drawn(game, other, player))
        assert observed_picture(game, one, player) == observed_picture(game, other, player)
        if game.hidden_information:
            assert not np.array_equal(drawn(game, one, "spectator"), drawn(game, other, "spectator"))


def test_the_players_view_is_the_default_if_something_is_hidden():
    env: Any = gym.make("TextMastermind-v0", render_mode="rgb_array")
    for_all: Any = gym.make("TextMastermind-v0", render_mode="rgb_array", render_view="spectator")
    env.reset(seed=0)
    for_all.reset(seed=0)
    seen, everything, palette = env.render(), for_all.render(), env.unwrapped.game.palette
    for x, mark in enumerate(env.unwrapped.game.board(env.unwrapped.state)[0][:3]):
        assert tuple(everything[5, x * 32 + 5]) == palette[mark]
        assert tuple(seen[5, x * 32 + 5]) == palette["_"]
    assert np.array_equal(env.unwrapped.render(view="spectator"), everything)
    batch: Any = gym.make_vec("TextMastermind-v0", 2, vectorization_mode="vector_entry_point", render_mode="rgb_array")
    batch.reset(seed=0)
    assert np.array_equal(batch.render()[0], seen)
    assert np.array_equal(batch.render(view="spectator")[0], everything)


def test_every_seat_has_a_view_of_its_own():
    table: Any = textgames.parallel_env("TextKuhnPoker-v0", render_mode="ansi")
    table.reset(seed=0)
    assert table.render() == table.observe("player_0")
    assert table.render(view="player_1") == table.observe("player_1")
    assert "jack" in table.render(view="spectator") or "queen" in table.render(view="spectator")
    one: Any = textgames.aec_env("TextKuhnPoker-v0", render_mode="ansi", render_view="player_1")
    one.reset(seed=0)
    assert one.render() == one.observe("player_1")
    other: Any = gym.make("TextKuhnPoker-v0", seat="player_1", opponents="random", render_mode="ansi")
    assert other.reset(seed=0)[0] == other.render()
    twin: Any = gym.make("TextFrozenLake-v0", twin=1, render_mode="ansi", render_view="player")
    assert twin.reset(seed=0)[0] == twin.render()
    with pytest.raises(ValueError, match="must be one of player, spectator, player_0, player_1, got 'wolf'"):
        table.render(view="wolf")
    with pytest.raises(ValueError, match=r"render_view must be .* got 'viewer'"):
        textgames.parallel_env("TextKuhnPoker-v0", render_view="viewer")


def test_the_documentation_shows_both_views_of_every_game_that_hides_something():
    folder = Path(__file__).parents[2] / "docs"
    names = [env_id[4:-3].lower() for env_id in HIDING if not env_id.startswith("OpenSpiel")]
    shown = {f"{name}-{view}.png" for name in names for view in ("player", "spectator")}
    files = [*(folder / "images" / "views").iterdir()]
    assert {file.name for file in files} == shown
    assert sum(file.stat().st_size for file in files) < 300_000
    assert all(name in (folder / "reference" / "game.md").read_text(encoding="utf-8") for name in shown)
    assert draw_views.main(["--check"]) == 0


def letters(picture: np.ndarray[Any, Any]) -> list[str]:
    """What is written on a page, read back by the font."""
    dots = picture[::2, ::2, 0] > 128
    known = {glyph(chr(code)).tobytes(): chr(code) for code in range(32, 127)}
    assert len(known) == 95, "every printable character has a glyph of its own"
    cells = dots.reshape(LINES, 10, COLUMNS, 6).swapaxes(1, 2)
    return ["".join(known[np.ascontiguousarray(cell).tobytes()] for cell in line).rstrip() for line in cells]


def test_a_text_reads_on_its_picture():
    text = "Round 1 of 10.\n\nHistory: é, B"
    assert letters(text_picture(text)) == text.replace("é", "e").split("\n") + [""] * 27
    assert text_picture(text).shape == text_picture("").shape == (600, 960, 3)
    # long lines are broken, and of many lines the last are shown
    assert [line.count("x") for line in letters(text_picture("x" * 200))[:4]] == [80, 80, 40, 0]
    shown = letters(text_picture("\n".join(map(str, range(100)))))
    assert shown == ["(71 lines above)", *map(str, range(71, 100))]


def test_marks_are_written_on_their_tiles_and_the_legend_stands_below():
    picture = board_picture(("ab",), {"a": (1, 2, 3), "b": (240, 250, 255)}, {"a": "wall", "b": "ice"})
    assert picture.shape == (3 * 32, 7 * 12, 3)
    for row in (0, 1):
        mark = picture[row * 32 + 6 : row * 32 + 26 : 2, 10:22:2, 0] > 128
        assert np.array_equal(mark, glyph("a"))
    assert np.array_equal(picture[6:26:2, 42:54:2, 0] < 128, glyph("b"))
    told = picture[32 + 6 : 32 + 26 : 2, 36:84:2, 0] > 128
    assert np.array_equal(told, np.hstack([glyph(char) for char in "wall"]))
    uncoloured = board_picture(("ab", "  "), {"b": (1, 2, 3), " ": (0, 0, 0)}, {})
    assert np.array_equal(uncoloured[6:26:2, 10:22:2, 0] < 128, glyph("a"))
    with pytest.raises(ValueError, match="rows of one length"):
        board_picture(("abc", "a"), {}, {})
