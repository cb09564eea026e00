"""A counter has room for 2 customers, with the one that is served. There is 1 at first. At the beginning of each
minute the clerk chooses to work slowly, which finishes one customer in that minute with the chance 1/3, or fast,
which does so with the chance 2/3 and costs 2. Every customer who is there at the beginning of a minute costs 1. At
its end, after the one that was finished has left, a new customer comes with the chance 1/2; if there is no room, it
goes away, which costs 5. Minimise the expected cost of four minutes.
"""

from fractions import Fraction

FINISHES = {"slow": Fraction(1, 3), "fast": Fraction(2, 3)}


def problem():
    return {"start": 1, "horizon": 4, "discount": 1}


def actions(customers):
    return ["slow", "fast"]


def outcomes(customers, action):
    cost = customers + 2 * (action == "fast")
    chance = FINISHES[action] if customers else Fraction(0)
    found = []
    for share, left in ((chance, customers - 1), (1 - chance, customers)):
        if share:
            found.append((share / 2, left, -cost, False))
            found.append((share / 2, min(left + 1, 2), -cost - 5 * (left == 2), False))
    return found
