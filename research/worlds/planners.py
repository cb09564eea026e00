"""Planners of the economy: no tax, Saez's flat tax, and the best taxes by enumeration; they work as all settle, too.

``textbench run --agent research.worlds.planners:Saez --scenario research.worlds:Economist-v0`` plays one, and
``python -m research.worlds.planners`` prints the exact welfare of each, as JSON.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from agents import Turn, TurnRequest
from research.worlds.economist import DAYS, RATES, Economist, Worker
from textgames import Action


def welfare(game: Economist, workers: tuple[Worker, ...], taxes: tuple[int, ...]) -> float:
    """Return the mean utility if the workers settle."""
    return float(game.utilities(workers, taxes, np.array([game.settled(workers, taxes)])).mean())


@lru_cache(maxsize=1024)
def saez(game: Economist, workers: tuple[Worker, ...]) -> tuple[int, ...]:
    """Return the flat tax nearest to Saez's formula ``(1 - g) / (1 - g + e)``.

    ``g`` is the mean marginal utility of consumption, weighted by income, over the plain mean, at the equilibrium of
    that tax. ``e = 1/3`` is the elasticity of income to its untaxed share, which this utility has without a share of
    taxes.
    """

    def distance(taxes: tuple[int, ...]) -> float:
        days = np.array([game.settled(workers, taxes)])
        income = days * np.array([wage for wage, _ in workers])
        marginal = np.maximum(game.consumption(workers, taxes, days), 1e-9) ** -0.5
        gap = 1 - float((marginal * income).sum() / max(income.sum(), 1e-9) / marginal.mean())
        return abs(taxes[0] / 100 - gap / (gap + 1 / 3))

    return min([taxes for taxes in RATES if taxes[0] == taxes[1]], key=distance)


class FreeMarket:
    """Sets no tax; and, as a worker, works as in the workers' equilibrium."""

    name = "free-market"
    settings: ClassVar[dict[str, Any]] = {}

    def taxes(self, game: Economist, workers: tuple[Worker, ...]) -> tuple[int, ...]:
        return 0, 0

    def act(self, requests: Sequence[TurnRequest]) -> list[Turn]:
        return [Turn(f"<action>{self.chosen(request)}</action>") for request in requests]

    def chosen(self, request: TurnRequest) -> Action:
        game: Any = request.game
        state = game.read_observation(request.observation, request.player)
        if not state.taxes:
            return "tax {} {}".format(*self.taxes(game, state.workers))
        return f"work {game.settled(state.workers, state.taxes)[game.players.index(request.player) - 1]}"


class Saez(FreeMarket):
    """Sets the flat tax of :func:`saez`."""

    name = "saez"

    def taxes(self, game: Economist, workers: tuple[Worker, ...]) -> tuple[int, ...]:
        return saez(game, workers)


class Stackelberg(FreeMarket):
    """Sets the taxes to which the workers' answer has the most welfare, by enumeration."""

    name = "stackelberg"

    def taxes(self, game: Economist, workers: tuple[Worker, ...]) -> tuple[int, ...]:
        return max(RATES, key=lambda taxes: welfare(game, workers, taxes))


def measured(game: Economist) -> dict[str, float]:
    """Return the mean welfare of a year over all first states: of planners, random taxes, and random play of all."""
    starts = [state.workers for _, state in game.initial_outcomes()]
    days = np.array([*product(DAYS, repeat=game.num_workers)])
    found = {
        planner.name: [welfare(game, workers, planner.taxes(game, workers)) for workers in starts]
        for planner in (Stackelberg(), Saez(), FreeMarket())
    }
    found["random taxes"] = [welfare(game, workers, taxes) for workers in starts for taxes in RATES]
    found["random play"] = [float(game.utilities(workers, taxes, days).mean()) for workers in starts for taxes in RATES]
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    print(json.dumps(measured(Economist()), indent=1))
