"""Seeds of episodes, for the environments that aren't Gymnasium's own class, which draws from one of its own."""

import numpy as np
from gymnasium.utils import seeding


def seeded(seed: int | None) -> np.random.Generator:
    """What an episode draws from; NumPy's whole numbers are seeds as well, which Gymnasium doesn't take."""
    return seeding.np_random(int(seed) if isinstance(seed, np.integer) else seed)[0]
