"""The payoffs of well-known games of two players, who have the same actions."""

from typing import NamedTuple

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
