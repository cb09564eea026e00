"""A server whose answers are written by hand, in the place of a language model that writes programs.

As a process, from the root (the first line on standard output is the base URL)::

    python -m research.improve.tests.writing_server

No language model is here, so nothing that it answers tells how well a method works with one: only that the method does
with a perfect writer what it should, and with a useless or a broken one nothing.

- ``good`` writes a right program, or right rules, at once;
- ``learning`` writes one that fails, and a right one when it is shown that with its faults;
- ``useless`` writes programs that run and know nothing; ``broken`` writes no program; ``talking`` one that never ends.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents.openai_server import OpenAIServer

EXAMPLES = Path(__file__).parents[1] / "examples"
PLAYER = (EXAMPLES / "frozen_lake_program.py").read_text()
RULES = (EXAMPLES / "frozen_lake_rules.py").read_text()
FAILING = "def act(observation, legal_actions):\n    return {}['nothing']"
OFF = RULES.replace('place in state["holes"]', '[place[0] + 1, place[1]] in state["holes"]')
STILL = "def act(observation, legal_actions):\n    return 'left'"
UNMOVED = """
def parse(observation): return observation
def actions(state): return ["left", "down", "right", "up"]
def outcomes(state, action): return [(1.0, state, 0.0, False)]
"""
ENDLESS = "while True: pass"


def answer(request: Mapping[str, Any]) -> str:
    """What each of the models answers to a request."""
    prompt = "\n\n".join(message["content"] for message in request["messages"])
    rules = "parse(observation: str)" in prompt
    good, first, still = (RULES, OFF, UNMOVED) if rules else (PLAYER, FAILING, STILL)
    shown = "best program so far" in prompt
    source = {
        "good": good,
        "learning": good if shown and _faults_are_told(prompt, rules) else first,
        "useless": still,
        "talking": ENDLESS,
    }.get(request["model"])
    return "I can't." if source is None else f"Here it is:\n```python\n{source}\n```\nIt plays."


def _faults_are_told(prompt: str, rules: bool) -> bool:
    """Whether the writer is told what was wrong, so that a method that kept it to itself would fail its test."""
    return "outcomes(state, action) has only" in prompt if rules else "KeyError: 'nothing'" in prompt


if __name__ == "__main__":
    names = ("good", "learning", "useless", "broken", "talking")
    OpenAIServer(respond=answer, models=names).serve_forever(lambda url: print(url, flush=True))
