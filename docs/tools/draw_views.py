"""Draws the games with hidden information as a player and as a spectator see them, into docs/images/views.

    python docs/tools/draw_views.py            # all of them
    python docs/tools/draw_views.py --check    # only say whose pixels are stale

Play is seeded. The table of docs/reference/game.md shows the pictures.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import textgames

VIEWS = Path(__file__).parents[1] / "images" / "views"
ROUNDS, MARGIN = 3, 12  # at most so many rounds of random play; pixels around a text


def drawn() -> Iterator[tuple[Path, np.ndarray[Any, Any]]]:
    """Yield the file and the picture of every such game that ships, in both views."""
    for env_id in textgames.registered_ids():
        if not env_id.startswith("Text") or not textgames.game_of(env_id).hidden_information:
            continue
        env, rng = textgames.parallel_env(env_id, render_mode="rgb_array"), np.random.default_rng(1)
        env.reset(seed=1)
        for _ in range(ROUNDS):
            saved = env.save_state()
            env.step({player: env.game.sample_action(env.state(), player, rng) for player in env.to_move})
            if not env.agents:
                env.restore_state(saved)
        name = env_id.removeprefix("Text").removesuffix("-v0").lower()
        for view in ("player", "spectator"):
            yield VIEWS / f"{name}-{view}.png", _without_paper(env.render(view=view))


def _without_paper(picture: Any) -> np.ndarray[Any, Any]:
    """Cut off what is empty right of and below a text."""
    rows, columns = np.nonzero((picture != picture[-1, -1]).any(axis=2))
    return np.asarray(picture[: rows.max() + MARGIN, : columns.max() + MARGIN])


def main(arguments: list[str]) -> int:
    """Write the pictures, or only name those that are stale."""
    stale = 0
    VIEWS.mkdir(exist_ok=True)
    for file, picture in drawn():
        if not file.exists() or not np.array_equal(np.asarray(Image.open(file).convert("RGB")), picture):
            stale += 1
            print(file.relative_to(VIEWS.parents[2]))
            if "--check" not in arguments:
                Image.fromarray(picture).quantize(64).save(file, optimize=True)
    return int(stale > 0 and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
