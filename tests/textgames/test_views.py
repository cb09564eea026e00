"""A picture is what the player may see: of states that a player can't tell apart, it is the same one."""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import draw_views
import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames.environments.pictures import png
from textgames.environments.render import observed_picture, render_state

HIDING = {
    *("TextBandit-v0", "TextContextualBandit-v0", "TextOnlineLearning-v0", "TextMastermind-v0", "TextGuessNumber-v0"),
    *("TextWordGuess-v0", "TextKuhnPoker-v0", "TextLeducPoker-v0", "TextLiarsDice-v0", "TextWerewolf-v0"),
    *("OpenSpielBlackjack-v0", "OpenSpielHanabi-v0"),
}


def visited(game: Any, episodes: int = 24, rounds: int = 12) -> Iterator[Any]:
    """States of random play; the play of every third episode is the same, if its hidden parts allow it."""
    for episode in range(episodes):
        state, over = game.initial_state(np.random.default_rng(episode)), False
        rng = np.random.default_rng(episode // 3)
        for _ in range(rounds):
            yield state
            if over:
                break
            acts = {player: game.sample_action(state, player, rng) for player in game.to_move(state)}
            state, _, over = game.transition(state, acts, rng)


def alike(game: Any) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of different states that a player reads in the same words."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for state in visited(game):
        for player in game.players:
            group = groups.setdefault((player, game.observe(state, player)), [])
            if state not in group:
                group.append(state)
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


def test_the_player_s_view_is_the_default_if_something_is_hidden():
    env: Any = gym.make("TextMastermind-v0", render_mode="rgb_array")
    for_all: Any = gym.make("TextMastermind-v0", render_mode="rgb_array", render_view="spectator")
    env.reset(seed=0)
    for_all.reset(seed=0)
    seen, everything = env.render(), for_all.render()
    code = env.unwrapped.game.board(env.unwrapped.state)[0][:3]
    for x, mark in enumerate(code):
        assert tuple(everything[5, x * 32 + 5]) == env.unwrapped.game.palette[mark]
        assert tuple(seen[5, x * 32 + 5]) == env.unwrapped.game.palette["_"]
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
    one: Any = textgames.aec_env("TextKuhnPoker-v0", render_mode="ansi", render_view="player_1")
    one.reset(seed=0)
    assert one.render() == one.observe("player_1")
    other: Any = gym.make("TextKuhnPoker-v0", seat="player_1", opponents="random", render_mode="ansi")
    assert other.reset(seed=0)[0] == other.render()
    assert "jack" in table.render(view="spectator") or "queen" in table.render(view="spectator")
    with pytest.raises(ValueError, match="must be one of player, spectator, player_0, player_1, got 'wolf'"):
        table.render(view="wolf")
    with pytest.raises(ValueError, match=r"render_view must be .* got 'viewer'"):
        textgames.parallel_env("TextKuhnPoker-v0", render_view="viewer")


def test_a_snake_sees_itself_as_number_one_and_a_twin_sees_its_own_words():
    env: Any = textgames.parallel_env("TextSnake-v0", num_players=2, render_mode="ansi")
    env.reset(seed=0)
    first, _ = env.game.seen_by(env.state(), "player_0")
    second, legend = env.game.seen_by(env.state(), "player_1")
    assert "".join(first).translate(str.maketrans("12", "21")) == "".join(second)
    assert legend["1"] == "your head"
    twin: Any = gym.make("TextFrozenLake-v0", twin=1, render_mode="ansi", render_view="player")
    assert twin.reset(seed=0)[0] == twin.render()


def test_a_picture_is_a_png_with_its_pixels():
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    data = png(picture)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    length = struct.unpack(">I", data[33:37])[0]
    assert zlib.decompress(data[41 : 41 + length]) == b"\0" + picture[0].tobytes() + b"\0" + picture[1].tobytes()


def test_the_documentation_shows_both_views_of_every_game_that_hides_something():
    folder = Path(__file__).parents[2] / "docs"
    shown = {
        f"{env_id.removeprefix('Text').removesuffix('-v0').lower()}-{view}.png"
        for env_id in HIDING
        if not env_id.startswith("OpenSpiel")
        for view in ("player", "spectator")
    }
    files = [*(folder / "images" / "views").iterdir()]
    assert {file.name for file in files} == shown
    assert sum(file.stat().st_size for file in files) < 300_000
    assert all(name in (folder / "reference" / "game.md").read_text(encoding="utf-8") for name in shown)
    assert draw_views.main(["--check"]) == 0
