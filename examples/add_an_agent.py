"""Add an agent: write a class with ``act``, and compare it with a player that ships.

    python examples/add_an_agent.py
    textbench run --agent examples/add_an_agent.py:Careful --agent greedy --scenario frozen-lake

An agent reads the observation, the rules and the legal actions, and answers in free text, as a model does. A model
becomes one by ``agents.LanguageAgentPolicy(model)``. A package adds its agents by the entry point ``textbench.agents``.
"""

import re

import benchmark
from agents import Turn, TurnRequest


class Careful:
    """Move towards the goal of a frozen lake, right or down, around the holes that it sees."""

    name = "careful"

    def __init__(self, first: str = "right") -> None:
        self.settings = {"first": first}  # all that decides its play: results keep it

    def act(self, requests: list[TurnRequest]) -> list[Turn]:
        return [Turn(response=self.answer(request.observation)) for request in requests]

    def answer(self, observation: str) -> str:
        cells = {}
        for line in observation.splitlines():  # such as "Holes: (0, 2), (1, 2)"
            name, _, places = line.partition(":")
            cells[name] = [(int(x), int(y)) for x, y in re.findall(r"\((\d+), (\d+)\)", places)]
        ((x, y),), ((last_x, _),) = cells["Player"], cells["Goal"]
        ways = {"right": (x + 1, y), "down": (x, y - 1)}
        good = [way for way, (x, y) in ways.items() if x <= last_x and y >= 0 and (x, y) not in cells["Holes"]]
        first = self.settings["first"]
        way = first if first in good or not good else good[0]
        return f"<think>{' or '.join(good) or 'nothing'} is safe</think><action>{way}</action>"


if __name__ == "__main__":
    results = benchmark.evaluate([Careful(), "greedy", "blind"], scenarios="frozen-lake", episodes=100)
    print(results.leaderboard())
    print(results.compare("careful", "blind"))
