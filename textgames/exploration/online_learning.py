"""Full-information online learning: choose, then see what every action would have cost; many rounds.

The setting is that of Park et al., "Do LLM agents have regret? A case study in online learning and games" (arXiv
2403.16843), told as a daily choice of a road; the numbers of the patterns are ours. The reward is minus the loss.
"""

import math
import re
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from textgames.bases import OnePlayerGame
from textgames.settings import check_one_of, check_whole
from textgames.solving.fixed_policies import chances_of
from textgames.solving.regret import external_regret, swap_regret
from textgames.tsmg import Action, Player
from textgames.yardsticks import FixedPolicy, Yardstick

LARGEST_LOSS = 10.0
ROADS = ("highway", "bridge", "tunnel", "coast", "forest", "river", "village", "harbour")


# the patterns: ``(rounds, actions, rng) -> losses``, (rounds, actions), which are then cut to [0, 10] and rounded


def uniform(rounds: int, actions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return every loss by itself, uniform on [0, 10]: there is nothing to learn, and nothing to be exploited by."""
    return np.asarray(rng.uniform(0, LARGEST_LOSS, (rounds, actions)))


def gaussian(rounds: int, actions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return normal losses with standard deviation 2 around a mean of each action, drawn from [2.5, 7.5]."""
    return rng.normal(rng.uniform(2.5, 7.5, actions), 2.0, (rounds, actions))


def trend(rounds: int, actions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a straight line from one number of [0, 10] to another for each action, plus noise of deviation 0.5."""
    start, end = rng.uniform(0, LARGEST_LOSS, (2, actions))
    time = np.linspace(0, 1, rounds)[:, None]
    return np.asarray(start + time * (end - start) + rng.normal(0, 0.5, (rounds, actions)))


def sine(rounds: int, actions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a wave around 5 of amplitude 4, a phase of each action, a common period of 5 to 15 rounds, plus noise."""
    phase = 2 * math.pi * (np.arange(rounds)[:, None] / rng.uniform(5, 15) + rng.random(actions))
    return 5 + 4 * np.sin(phase) + rng.normal(0, 0.5, (rounds, actions))


def adversarial(rounds: int, actions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return 8 to 10 for the action that has cost least so far, 0 to 2 for others; costs within 1 may change places.

    With two actions that is the classic alternation, against which following the leader loses almost everything.
    """
    losses = rng.uniform(0, 2, (rounds, actions))
    so_far = rng.uniform(0, 1, actions)  # decides who is hit first
    for row in losses:
        row[np.argmin(so_far)] += 8
        so_far += row
    return losses


PATTERNS = {pattern.__name__: pattern for pattern in (uniform, gaussian, trend, sine, adversarial)}


class OnlineState(NamedTuple):
    """What the rules know: the losses of all rounds, of which players have seen those that were played."""

    losses: tuple[tuple[float, ...], ...]
    chosen: tuple[int, ...] = ()


_ROUND = re.compile(r"^Day \d+: (.*); you took ([a-z]+)$", re.MULTILINE)
_LOSS = re.compile(r"[a-z]+ ([\d.]+)")


@lru_cache(maxsize=8192)
def _round_line(day: int, losses: tuple[float, ...], chosen: int) -> str:
    told = ", ".join(f"{name} {loss:.1f}" for name, loss in zip(ROADS, losses, strict=False))
    return f"Day {day}: {told}; you took {ROADS[chosen]}"


def read_losses(observation: str) -> list[tuple[float, ...]]:
    """Return the losses of all rounds so far; a ValueError if the text is not an observation of this game."""
    if "minutes" not in observation:
        raise ValueError(f"not an observation of online learning: {observation[:80]!r}")
    return [tuple(map(float, _LOSS.findall(told))) for told, _ in _ROUND.findall(observation)]


class OnlineLearning(OnePlayerGame[OnlineState]):
    """Take one of several roads every day; in the evening you learn how much time each of them would have cost.

    The losses of all rounds, numbers of [0, 10] with one decimal, are drawn before the first one and don't depend on
    what is chosen. The reward is minus the loss of the choice.

    Args:
        num_actions: 2 to 8.
        rounds: after which the game is over; players are told.
        pattern: of the losses: ``"uniform"``, ``"gaussian"``, ``"trend"``, ``"sine"`` or ``"adversarial"``. Players
            are not told.
    """

    hidden_information = True

    def __init__(self, *, num_actions: int = 2, rounds: int = 25, pattern: str = "uniform") -> None:
        check_whole("num_actions", num_actions, 2, len(ROADS))
        check_whole("rounds", rounds, 1)
        check_one_of("pattern", pattern, PATTERNS)
        self.num_actions, self.rounds, self.pattern = int(num_actions), int(rounds), pattern
        self.longest_episode = self.rounds
        self.actions = ROADS[: self.num_actions]
        self.return_range = (-LARGEST_LOSS * self.rounds, 0.0)
        self.worst_round = -LARGEST_LOSS

    def initial_state(self, rng: Generator) -> OnlineState:
        losses = PATTERNS[self.pattern](self.rounds, self.num_actions, rng).clip(0, LARGEST_LOSS).round(1)
        return OnlineState(tuple(map(tuple, losses.tolist())))

    def act(self, state: OnlineState, action: Action, rng: Generator) -> tuple[OnlineState, float, bool]:
        (losses, chosen), choice = state, self.actions.index(action)
        reward = 0.0 - losses[len(chosen)][choice]
        return OnlineState(losses, (*chosen, choice)), reward, len(chosen) + 1 == self.rounds

    def is_playing(self, state: OnlineState, player: Player) -> bool:
        return len(state.chosen) < self.rounds

    def forfeit(self, state: OnlineState, player: Player, rounds_left: float) -> dict[Player, float]:
        return super().forfeit(state, player, min(rounds_left, self.rounds - len(state.chosen)))

    def metrics(self, state: OnlineState, player: Player) -> dict[str, float]:
        """Return ``external_regret``, also by round (``average_regret``), and ``swap_regret`` so far."""
        regret = external_regret(state.losses, state.chosen)
        return {
            "external_regret": regret,
            "average_regret": regret / max(len(state.chosen), 1),
            "swap_regret": swap_regret(state.losses, state.chosen),
        }

    def observe(self, state: OnlineState, player: Player) -> str:
        losses, chosen = state
        day = len(chosen)
        lines = [_round_line(index + 1, losses[index], choice) for index, choice in enumerate(chosen)]
        lost = sum([losses[index][choice] for index, choice in enumerate(chosen)])
        now = f"Day {day + 1} of {self.rounds}." if day < self.rounds else f"All {day} days are over."
        lines.append(f"{now} You have lost {lost:.1f} minutes so far.")
        return "\n".join(lines)

    def instructions(self, player: Player) -> str:
        return "\n".join(
            [
                f"You drive to work on {self.rounds} days. Every morning you choose one of {self.num_actions} roads.",
                f"Actions, one for every road: {', '.join(self.actions)}.",
                "Every road has a delay of 0 to 10 minutes, which may be different every day. In the evening you are "
                "told the delays of all roads on that day, also of those that you didn't take. They don't depend on "
                "your choices.",
                "The reward of a day is minus the minutes that your road cost. "
                f"Your goal is to lose as few minutes as possible over all {self.rounds} days.",
            ]
        )

    def told(self, state: OnlineState, action: Action, after: OnlineState) -> str:
        losses, choice = state.losses[len(state.chosen)], after.chosen[-1]
        least = min(losses)
        better = "" if losses[choice] == least else f"; {self.actions[losses.index(least)]} would have cost {least:.1f}"
        return f"lost {losses[choice]:.1f} minutes{better}"

    def describe(self, state: OnlineState) -> str:
        lines = ["day  " + " ".join(f"{name:>8}" for name in self.actions)]
        for day, losses in enumerate(state.losses):
            marks = [
                f"{loss:.1f}{'*' if day < len(state.chosen) and state.chosen[day] == index else ' '}"
                for index, loss in enumerate(losses)
            ]
            lines.append(f"{day + 1:3}  " + " ".join(f"{mark:>8}" for mark in marks).rstrip())
        return "\n".join(lines)


class OnlineOracle(Yardstick):
    """The values for a player who knows all losses beforehand: the least one in every round.

    No player can reach them; players should be measured by the regret to one fixed action.
    """

    kind = "clairvoyant"
    method = "known losses"

    def values(self, state: OnlineState, steps_left: int | None, player: Player) -> dict[Action, float]:
        rows = self._rows(state, steps_left)
        if not rows:
            return dict.fromkeys(self._game.actions, 0.0)
        later = sum(min(row) for row in rows[1:])
        return {name: 0.0 - loss - later for name, loss in zip(self._game.actions, rows[0], strict=True)}

    def blind_value(self, state: OnlineState, steps_left: int | None, player: Player, policy: FixedPolicy) -> float:
        shares = chances_of(policy, self._game.actions)
        return 0.0 - sum(sum(map(mul, shares, row)) for row in self._rows(state, steps_left))

    def _rows(self, state: OnlineState, steps_left: int | None) -> tuple[tuple[float, ...], ...]:
        start = len(state.chosen)
        return state.losses[start : self._game.rounds if steps_left is None else start + steps_left]
