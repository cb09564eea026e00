"""A frozen lake has 3 rows of 3 tiles. A skater begins at the top left and wants to reach the bottom right. The tile
in the middle and the middle one of the bottom row are holes, in which the skater is out. A move goes left, down,
right or up: on the slippery ice in the direction that was meant with the chance 1/3, and in each of the two at right
angles to it with the chance 1/3. A move off the lake leaves the skater in place. Maximise the chance of reaching the
goal within 8 moves.
"""

from fractions import Fraction

WAYS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
HOLES, GOAL = ([1, 1], [2, 1]), [2, 2]


def problem():
    return {"start": [0, 0], "horizon": 8, "discount": 1}


def actions(place):
    return list(WAYS)


def outcomes(place, action):
    found, names = [], list(WAYS)
    for turn in (-1, 0, 1):
        down, right = WAYS[names[(names.index(action) + turn) % 4]]
        after = [min(max(place[0] + down, 0), 2), min(max(place[1] + right, 0), 2)]
        found.append((Fraction(1, 3), after, int(after == GOAL), after in HOLES or after == GOAL))
    return found
