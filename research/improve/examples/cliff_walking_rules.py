"""Slippery cliff walking as a program: textbench inspect rules:THIS_FILE --scenario cliff-walking-slippery"""

import re

MOVES = ["up", "right", "down", "left"]
STEPS = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}


def parse(observation):
    return [int(n) for n in re.search(r"Player: \((\d+), (\d+)\)", observation).groups()]


def actions(state):
    return MOVES


def outcomes(state, action):
    at = MOVES.index(action)
    found = []
    for way in (at - 1, at, at + 1):
        dx, dy = STEPS[MOVES[way % 4]]
        x, y = min(max(state[0] + dx, 0), 11), min(max(state[1] + dy, 0), 3)
        if y == 0 and 0 < x < 11:
            found.append((1 / 3, [0, 0], -100, False))
        else:
            found.append((1 / 3, [x, y], -1, (x, y) == (11, 0)))
    return found
