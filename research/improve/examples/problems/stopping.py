"""You may roll a fair die with six sides up to three times. After each roll you either stop, and are paid as many
euros as the die shows, or roll again; the third roll is paid in any case. Maximise the expected payment.
"""

from fractions import Fraction


def problem():
    return {"start": 0, "horizon": 3, "discount": 1}  # what the die shows; 0 before the first roll


def actions(state):
    return ["roll", "stop"] if state else ["roll"]


def outcomes(state, action):
    """Pay each roll at once, and take that back if there is another."""
    if action == "stop":
        return [(1, state, 0, True)]
    return [(Fraction(1, 6), side, side - state, False) for side in range(1, 7)]
