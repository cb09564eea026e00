"""A gambler has 3 chips and needs 8. In each game she stakes 1 or more of her chips, but no more than she needs to
have 8, and wins as many as she staked with the chance 2/5, or else loses them. She stops with 8 chips or with none,
and there is time for 5 games. Maximise the chance of having 8 chips.
"""

from fractions import Fraction


def problem():
    return {"start": 3, "horizon": 5, "discount": 1}


def actions(chips):
    return [f"stake {count}" for count in range(1, min(chips, 8 - chips) + 1)]


def outcomes(chips, action):
    stake = int(action.split()[1])
    won, lost = chips + stake, chips - stake
    return [(Fraction(2, 5), won, int(won == 8), won == 8), (Fraction(3, 5), lost, 0, lost == 0)]
