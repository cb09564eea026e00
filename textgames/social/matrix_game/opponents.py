"""The payoffs of well-known games, opponents inside, programs of a few states, and the exact best response to them.

What the programs, which have the second seat, do next depends on a small memory of what the player did, which is the
state of the best response.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from operator import mul
from typing import Any, NamedTuple

from textgames.settings import check_one_of
from textgames.solving.regret import hedge, hedge_rate

Matrix = tuple[tuple[float, ...], ...]


class Payoffs(NamedTuple):
    """One matrix game."""

    actions: tuple[str, ...]  # of both players. The first is the friendly one, if there is one.
    first: Matrix  # first, second: ``[action of the first player][action of the second]`` -> what each of them gets
    second: Matrix

    def of(self, seat: int, mine: int, other: int) -> float:
        """Return what the player in ``seat``, 0 or 1, gets for its action ``mine`` against ``other``."""
        return self.first[mine][other] if seat == 0 else self.second[other][mine]

    @property
    def most_welfare(self) -> float:
        return max(a + b for rows in zip(self.first, self.second, strict=True) for a, b in zip(*rows, strict=True))

    @property
    def is_zero_sum(self) -> bool:
        return all(a + b == 0 for rows in zip(self.first, self.second, strict=True) for a, b in zip(*rows, strict=True))

    def span(self, seat: int) -> tuple[float, float]:
        numbers = [payoff for row in (self.first, self.second)[seat] for payoff in row]
        return min(numbers), max(numbers)


def _symmetric(actions: str, first: Matrix) -> Payoffs:
    return Payoffs(tuple(actions.split()), first, tuple(zip(*first, strict=True)))


def _zero_sum(actions: str, first: Matrix) -> Payoffs:
    return Payoffs(tuple(actions.split()), first, tuple(tuple(0.0 - payoff for payoff in row) for row in first))


GAMES: dict[str, Payoffs] = {
    # Axelrod's tournaments, 1980: temptation 5, reward 3, punishment 1, sucker's payoff 0
    "prisoners-dilemma": _symmetric("cooperate defect", ((3.0, 0.0), (5.0, 1.0))),
    "stag-hunt": _symmetric("stag hare", ((2.0, 0.0), (1.0, 1.0))),
    "chicken": _symmetric("swerve dare", ((3.0, 1.0), (4.0, 0.0))),
    "battle-of-the-sexes": Payoffs(("opera", "football"), ((3.0, 0.0), (0.0, 2.0)), ((2.0, 0.0), (0.0, 3.0))),
    "rock-paper-scissors": _zero_sum("rock paper scissors", ((0.0, -1.0, 1.0), (1.0, 0.0, -1.0), (-1.0, 1.0, 0.0))),
    # the first player wins where both show the same side
    "matching-pennies": _zero_sum("heads tails", ((1.0, -1.0), (-1.0, 1.0))),
    # Shapley, "Some topics in two-person games", 1964: only wins count, and fictitious play runs in circles
    "shapley": _symmetric("rock paper scissors", ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))),
}


Memory = Hashable


class Opponent(ABC):
    """A program that plays: its memory before the first round, and a sentence for the player on what it does."""

    start: Memory = None
    rule: str

    @abstractmethod
    def chances(self, memory: Any) -> tuple[float, ...]:
        """Return the probability of each of its actions in the next round; they sum to 1."""

    def remember(self, memory: Any, action: int) -> Memory:
        kept: Memory = memory
        return kept


class Mixture(Opponent):
    """Chooses with the same chances in every round."""

    def __init__(self, chances: tuple[float, ...], rule: str) -> None:
        self._chances, self.rule = chances, rule

    def chances(self, memory: None) -> tuple[float, ...]:
        return self._chances


class TitForTat(Opponent):
    """Begins with the first action, then repeats what the player did in the round before."""

    start = 0

    def __init__(self, payoffs: Payoffs) -> None:
        self._pure = _pure(payoffs)
        first = payoffs.actions[0]
        self.rule = f"plays {first} in the first round, and then always what you played in the round before"

    def chances(self, memory: int) -> tuple[float, ...]:
        return self._pure[memory]

    def remember(self, memory: int, action: int) -> int:
        return action


class Grim(TitForTat):
    """The first action until the player plays the second once, then the second for ever."""

    def __init__(self, payoffs: Payoffs) -> None:
        super().__init__(payoffs)
        friendly, other = payoffs.actions
        self.rule = f"plays {friendly} until you play {other} for the first time, and from then on always {other}"

    def remember(self, memory: int, action: int) -> int:
        return max(memory, action)


class HedgeOpponent(Opponent):
    """Hedge for the second seat, with the learning rate for the number of rounds; it remembers the player's counts."""

    def __init__(self, payoffs: Payoffs, rounds: int) -> None:
        self._losses = tuple(tuple(-payoff for payoff in row) for row in payoffs.second)
        low, high = payoffs.span(1)
        self._rate = hedge_rate(len(payoffs.actions), rounds, high - low)
        self.start = (0,) * len(payoffs.actions)
        self.rule = (
            "learns: it plays each action with a probability proportional to "
            f"exp({self._rate:.3g} * what that action would have earned it against all your actions so far)"
        )

    def chances(self, memory: tuple[int, ...]) -> tuple[float, ...]:
        actions = range(len(memory))
        losses = [sum(n * self._losses[mine][own] for mine, n in enumerate(memory)) for own in actions]
        return hedge(losses, self._rate)

    def remember(self, memory: tuple[int, ...], action: int) -> tuple[int, ...]:
        return (*memory[:action], memory[action] + 1, *memory[action + 1 :])


def opponent_names(payoffs: Payoffs) -> tuple[str, ...]:
    """Return the opponents that there are in a game."""
    grim = ["grim"] if len(payoffs.actions) == 2 else []
    return ("tit-for-tat", *grim, "uniform", "hedge", *(f"always-{action}" for action in payoffs.actions))


def make_opponent(name: str, payoffs: Payoffs, rounds: int) -> Opponent:
    """Return the opponent of a name; a ValueError that lists the names if there is none."""
    check_one_of("opponent", name, opponent_names(payoffs))
    if name == "hedge":
        return HedgeOpponent(payoffs, rounds)
    if name in ("tit-for-tat", "grim"):
        return TitForTat(payoffs) if name == "tit-for-tat" else Grim(payoffs)
    number = len(payoffs.actions)
    if name == "uniform":
        return Mixture((1 / number,) * number, "plays every action with equal chances, whatever you do")
    action = name.removeprefix("always-")
    return Mixture(_pure(payoffs)[payoffs.actions.index(action)], f"always plays {action}")


def _pure(payoffs: Payoffs) -> tuple[tuple[float, ...], ...]:
    number = len(payoffs.actions)
    return tuple(tuple(float(other == action) for other in range(number)) for action in range(number))


class BestResponse:
    """The values of play in the first seat, by dynamic programming over the opponent's memory and the rounds left.

    ``Q_h(m, a) = sum_o p(o | m) u(a, o) + V_{h-1}(m after a)``. ``V`` is the largest ``Q``, or its mean under
    ``shares``, a fixed distribution over the actions. External regret, which holds the opponent's play fixed, can't
    tell what cooperating with tit-for-tat is worth.
    """

    def __init__(self, payoffs: Payoffs, opponent: Opponent) -> None:
        self._payoffs, self._opponent = payoffs, opponent
        self._known: dict[tuple[Memory, int, tuple[float, ...] | None], list[float]] = {}

    def regret(self, actions: Sequence[int], rounds: int) -> float:
        """Return ``sum_t V(m_t) - Q(m_t, a_t)``: what the first actions of a game of ``rounds`` lost in expectation."""
        memory, lost = self._opponent.start, 0.0
        for played, action in enumerate(actions):
            values = self.action_values(memory, rounds - played)
            lost += max(values) - values[action]
            memory = self._opponent.remember(memory, action)
        return lost

    def action_values(self, memory: Memory, left: int, shares: tuple[float, ...] | None = None) -> list[float]:
        key = memory, left, shares
        if key not in self._known:
            chances = self._opponent.chances(memory)
            self._known[key] = [
                sum(p * u for p, u in zip(chances, row, strict=True))
                + self.value(self._opponent.remember(memory, action), left - 1, shares)
                for action, row in enumerate(self._payoffs.first)
            ]
        return self._known[key]

    def value(self, memory: Memory, left: int, shares: tuple[float, ...] | None = None) -> float:
        if not left:
            return 0.0
        values = self.action_values(memory, left, shares)
        return max(values) if shares is None else sum(map(mul, shares, values))
