"""Frozen Lake's rules as a program, without slipping: textbench run --agent rules:THIS_FILE --scenario frozen-lake"""

import re

MOVES = {"left": (-1, 0), "down": (0, -1), "right": (1, 0), "up": (0, 1)}


def cells(line):
    return [[int(x), int(y)] for x, y in re.findall(r"\((\d+), (\d+)\)", line)]


def parse(observation):
    width, height = map(int, re.search(r"(\d+) wide, (\d+) high", observation).groups())
    lines = dict(line.split(":", 1) for line in observation.splitlines() if ":" in line)
    return {
        "size": [width, height],
        "player": cells(lines["Player"])[0],
        "holes": cells(lines["Holes"]),
        "goal": cells(lines["Goal"])[0],
    }


def actions(state):
    return list(MOVES)


def outcomes(state, action):
    x, y = state["player"]
    dx, dy = MOVES[action]
    width, height = state["size"]
    place = [min(max(x + dx, 0), width - 1), min(max(y + dy, 0), height - 1)]
    over = place in state["holes"] or place == state["goal"]
    return [(1.0, {**state, "player": place}, float(place == state["goal"]), over)]


def allowed(observation, legal_actions):
    """Return the moves that don't end in a hole, for masked(AGENT)."""
    state = parse(observation)
    deadly = {name for name in MOVES for _, _, reward, done in outcomes(state, name) if done and not reward}
    return [name for name in legal_actions if name not in deadly] or legal_actions
