"""Every game draws itself, without a drawing library, in frames of one size."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordVideo

import textgames
from tests.once_a_game import once_a_game
from textgames import SCENARIOS
from textgames.environments.pictures import COLUMNS, LINES, board_picture, glyph, text_picture

IDS = [env_id for env_id in textgames.registered_ids() if not env_id.startswith("Test")]


def others(env_id: str) -> dict[str, Any]:
    return {"opponents": "random"} if len(textgames.game_of(env_id).players) > 1 else {}


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_checker_passes_with_its_check_of_pictures(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, **others(env_id)).unwrapped, skip_render_check=False)


@pytest.mark.parametrize("name", once_a_game(list(SCENARIOS)))
def test_frames_of_an_episode_have_one_size(name: str) -> None:
    """As writers of videos need it; their size is even in both directions, which most video formats ask for."""
    scenario = SCENARIOS[name]
    env = scenario.parallel_env(render_mode="rgb_array")
    env.reset(seed=scenario.first_seed)
    rng = np.random.default_rng(0)
    frames: list[Any] = [env.render()]
    while env.agents and len(frames) < 12:
        env.step(
            {player: f"<action>{env.game.sample_action(env.state(), player, rng)}</action>" for player in env.to_move}
        )
        frames.append(env.render())
    shapes = {frame.shape for frame in frames if isinstance(frame, np.ndarray)}
    assert len(shapes) == 1
    height, width, colours = shapes.pop()
    assert (height % 2, width % 2, colours) == (0, 0, 3)
    assert all(len(np.unique(frame)) > 1 for frame in frames if frame is not None), "something is drawn on each"
    if len(frames) > 2:
        assert any(not np.array_equal(frames[0], frame) for frame in frames[1:]), "frames show what happens"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bandit", "werewolf-7", "kuhn-poker"])
def test_games_without_a_board_are_recorded(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moviepy's
        made = gym.make(scenario.env_id, render_mode="rgb_array", **scenario.kwargs, **others(scenario.env_id))
        env: Any = RecordVideo(made, str(tmp_path), disable_logger=True)
        env.reset(seed=0)
        while not any(env.step("?")[2:4]):
            pass
        env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 500


def test_every_printable_ascii_character_has_a_glyph_of_its_own() -> None:
    shapes = {glyph(chr(code)).tobytes() for code in range(32, 127)}
    assert len(shapes) == 95
    assert glyph("☃").tobytes() not in shapes
    assert np.array_equal(glyph("é"), glyph("e"))
    assert glyph("┌")[5, 5]
    assert not glyph("┌")[5, 0]


def letters(picture: np.ndarray[Any, Any]) -> list[str]:
    """What is written on a page, read back by the font."""
    dots = picture[::2, ::2, 0] > 128
    known = {glyph(chr(code)).tobytes(): chr(code) for code in range(32, 127)}
    cells = dots.reshape(LINES, 10, COLUMNS, 6).swapaxes(1, 2)
    return ["".join(known[np.ascontiguousarray(cell).tobytes()] for cell in line).rstrip() for line in cells]


def test_a_text_reads_on_its_picture() -> None:
    text = "Round 1 of 10.\n\nHistory: A, B"
    assert letters(text_picture(text)) == text.split("\n") + [""] * 27
    assert text_picture(text).shape == text_picture("").shape == (600, 960, 3)


def test_long_lines_are_broken_and_the_last_of_many_lines_are_shown() -> None:
    assert [line.count("x") for line in letters(text_picture("x" * 200))[:4]] == [80, 80, 40, 0]
    shown = letters(text_picture("\n".join(map(str, range(100)))))
    assert shown == ["(71 lines above)", *map(str, range(71, 100))]


def test_a_mark_without_a_colour_is_written_on_its_tile() -> None:
    picture = board_picture(("ab", "  "), {"b": (1, 2, 3), " ": (0, 0, 0)})
    assert picture.shape == (64, 64, 3)
    tile = picture[6:26, 10:22, 0] < 128
    assert np.array_equal(tile[::2, ::2], glyph("a"))
    assert tuple(picture[16, 48]) == (1, 2, 3)


def test_a_ragged_board_is_refused() -> None:
    with pytest.raises(ValueError, match="rows of one length"):
        board_picture(("abc", "a"), {})
