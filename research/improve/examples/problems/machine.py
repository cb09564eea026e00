"""A machine is good, worn or broken. A month earns 5 with a good machine, 3 with a worn one and nothing with a broken
one. Over a month a good machine becomes worn with the chance 0.4, and a worn one breaks with the chance 0.5; a broken
one stays so. At the beginning of each month it may be replaced by a new good one, for 6, which works in that same
month. What a month brings counts 0.9 times as much as what the month before it does. The machine begins good.
Maximise the expected discounted sum over six months.
"""

from fractions import Fraction

EARNS = {"good": 5, "worn": 3, "broken": 0}
AFTER = {
    "good": [(Fraction(3, 5), "good"), (Fraction(2, 5), "worn")],
    "worn": [(Fraction(1, 2), "worn"), (Fraction(1, 2), "broken")],
    "broken": [(Fraction(1), "broken")],
}


def problem():
    return {"start": "good", "horizon": 6, "discount": Fraction(9, 10)}


def actions(state):
    return ["keep", "replace"]


def outcomes(state, action):
    state, paid = ("good", 6) if action == "replace" else (state, 0)
    return [(chance, after, EARNS[state] - paid, False) for chance, after in AFTER[state]]
