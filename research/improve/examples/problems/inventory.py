"""A shop sells umbrellas for four weeks. It has room for 3 and begins with none. Every Monday it may order as many as
there is room for, at 2 each, and has them at once. In a week 0, 1 or 2 customers come, with the chances 1/4, 1/2 and
1/4, and each buys one for 5 if there is one left, or else goes away. Every umbrella that is left at the end of a week
costs 1 to store; after the last week they are worth nothing. Maximise the expected profit.
"""

from fractions import Fraction

DEMAND = [(Fraction(1, 4), 0), (Fraction(1, 2), 1), (Fraction(1, 4), 2)]


def problem():
    return {"start": 0, "horizon": 4, "discount": 1}


def actions(stock):
    return [f"order {count}" for count in range(4 - stock)]


def outcomes(stock, action):
    ordered = int(action.split()[1])
    found = []
    for chance, customers in DEMAND:
        left = max(stock + ordered - customers, 0)
        found.append((chance, left, 5 * (stock + ordered - left) - 2 * ordered - left, False))
    return found
