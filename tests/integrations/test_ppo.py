"""The page on PPO, with the real Stable-Baselines3 and sb3-contrib."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import benchmark

PAGE = Path(__file__).parents[2] / "docs/integrations/ppo.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("sb3_contrib") is None,
        reason="Stable-Baselines3 isn't installed: pip install -c constraints.txt -e '.[sb3]'",
    ),
]


def test_the_page_learns_more_than_blind_play_can():
    """A third of the page's training, and every episode of its evaluation."""
    train, evaluate = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len([line for line in train.splitlines() if line.strip()]) <= 15
    scope: dict[str, Any] = {}
    exec(train.replace("learn(61_440)", "learn(20_000)") + evaluate, scope)
    assert scope["model"].num_timesteps < 25_000
    played = benchmark.evaluate("random", scenarios="frozen-lake", episodes=500, quiet=True)
    blind = played.leaderboard().scores[0]["blind"]["value"]
    share = scope["successes"] / 500
    assert share - 3 * (share * (1 - share) / 500) ** 0.5 > blind > 0.2


def test_masked_ppo_plays_only_legal_tiles():
    import gymnasium as gym
    from sb3_contrib import MaskablePPO

    import textgames  # noqa: F401 - registers the ids
    from textgames.wrappers import BoardObservation, DiscreteActions

    class Watched(gym.Wrapper):
        valid: list[bool] = []  # noqa: RUF012 - of all environments

        def step(self, action):
            result = self.env.step(action)
            self.valid.append(result[4]["valid"])
            return result

    puzzle = Watched(DiscreteActions(BoardObservation(gym.make("TextSlidingPuzzle-v0"))))
    puzzle.reset(seed=0)
    for tile in range(8):
        puzzle.step(tile)
    assert not all(puzzle.valid)  # as any tile is chosen, whether it can move or not
    puzzle.valid.clear()
    MaskablePPO("MlpPolicy", puzzle, n_steps=256, seed=0).learn(256)
    assert puzzle.valid == [True] * 256
