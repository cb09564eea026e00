"""A program that plays Frozen Lake without slipping: textbench run --agent program:THIS_FILE --scenario frozen-lake"""

import re
from collections import deque

MOVES = {"left": (-1, 0), "down": (0, -1), "right": (1, 0), "up": (0, 1)}


def act(observation, legal_actions):
    """Return the first move of a shortest way to the goal."""
    width, height = map(int, re.search(r"(\d+) wide, (\d+) high", observation).groups())
    cells = {}
    for name in ("Player", "Holes", "Goal"):
        line = re.search(rf"^{name}: (.*)$", observation, re.MULTILINE).group(1)
        cells[name] = [(int(x), int(y)) for x, y in re.findall(r"\((\d+), (\d+)\)", line)]
    start, goal = cells["Player"][0], cells["Goal"][0]
    first, ways = {start: None}, deque([start])
    while ways:
        x, y = ways.popleft()
        for move, (dx, dy) in MOVES.items():
            place = (x + dx, y + dy)
            inside = 0 <= place[0] < width and 0 <= place[1] < height
            if inside and place not in first and place not in cells["Holes"]:
                first[place] = first[(x, y)] or move
                ways.append(place)
    return first[goal]
