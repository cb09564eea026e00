"""A server whose answers are written by hand, in the place of a language model that writes programs.

As a process, from the root (the first line on standard output is the base URL)::

    python -m research.improve.tests.programming.writing_server

No language model is here, so nothing that it answers tells how well a method works with one: only that the method does
with a perfect writer what it should, and with a useless or a broken one nothing.

- ``good`` writes a right program, or right rules, at once;
- ``learning`` writes one that fails, and a right one when it is shown that with its faults, or social metrics;
- ``stubborn-1`` and ``stubborn-2`` write rules that know nothing, again and again if they are shown them, but right
  ones when they are asked afresh for the second time;
- ``mending`` writes rules that can't be run, and right ones when it is shown these with the error;
- ``checking`` writes wrong rules of a text, right ones when it is to check them, and then finds them right;
- ``useless`` writes programs that run and know nothing; ``broken`` writes no program; ``talking`` one that never ends.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents.openai_server import OpenAIServer

EXAMPLES = Path(__file__).parents[2] / "examples"
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
NIM = """
import re

def parse(observation):
    return [int(count) for count in re.findall(r"Heap .: (\\d+)", observation)]

def actions(state):
    return [f"take {count} from {heap}" for heap, most in zip("abc", state) for count in range(1, most + 1)]

def left(state, action):
    _, count, _, heap = action.split()
    return [most - int(count) * (name == heap) for name, most in zip("abc", state)]

def outcomes(state, action):
    mine = left(state, action)
    if not any(mine):
        return [(1.0, mine, 1.0, True)]
    theirs = [left(mine, answer) for answer in actions(mine)]
    return [(1 / len(theirs), each, 0.0 if any(each) else -1.0, not any(each)) for each in theirs]
"""
ENDLESS = "while True: pass"
DEFECT, COOPERATE = (f"def act(observation, legal_actions):\n    return {each!r}" for each in ("defect", "cooperate"))


ASKED_AFRESH: Counter[str] = Counter()


def answer(request: Mapping[str, Any]) -> str:
    """Return the answer of each of the models to a request."""
    prompt = "\n\n".join(message["content"] for message in request["messages"])
    rules = "parse(observation: str)" in prompt
    good, first, still = (RULES, OFF, UNMOVED) if rules else (PLAYER, FAILING, STILL)
    good = NIM if rules and "Nim" in prompt else good
    if "cooperate against defect" in prompt:
        good, first, still = COOPERATE, DEFECT, DEFECT
    shown = "best program so far" in prompt
    fails, checks = "This program fails" in prompt, "Check it against the rules" in prompt
    model = str(request["model"])
    if rules and not (shown or fails or checks):
        ASKED_AFRESH[model] += 1
    if checks and good.strip() in prompt:
        return "RIGHT"
    source = {
        "good": good,
        "learning": good if shown and _faults_are_told(prompt, rules) else first,
        "stubborn-1": RULES if ASKED_AFRESH[model] > 1 and not shown else UNMOVED,
        "stubborn-2": RULES if ASKED_AFRESH[model] > 1 and not shown else UNMOVED,
        "mending": RULES
        if fails and "no function outcomes" in prompt
        else RULES.replace("def outcomes", "def results"),
        "checking": RULES if checks else OFF,
        "useless": still,
        "talking": ENDLESS,
    }.get(model)
    return "I can't." if source is None else f"Here it is:\n```python\n{source}\n```\nIt plays."


def _faults_are_told(prompt: str, rules: bool) -> bool:
    """Report whether the writer is told what was wrong, so that a method that kept it to itself would fail its test."""
    told = "KeyError: 'nothing'" in prompt or "- efficiency 2.000" in prompt
    return "outcomes(state, action) has only" in prompt if rules else told


if __name__ == "__main__":
    names = ("good", "learning", "stubborn-1", "stubborn-2", "mending", "checking", "useless", "broken", "talking")
    OpenAIServer(respond=answer, models=names).serve_forever(lambda url: print(url, flush=True))
