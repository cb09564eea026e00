"""Servers whose answers are written by hand, in the place of language models that play, advise, or write programs.

As a process, from the root (the first line on standard output is the base URL)::

    python -m research.improve.tests.written_server heeding|writing

No language model is here, so nothing that it answers tells how well a method works with one: only that the method does
with a perfect helper what it should, and with a useless one nothing.

Of Frozen Lake ``heeding`` plays the best move if its prompt has the advice, ``studying`` if it tells of an earlier game
with a return of 1, and ``minding`` if it has the advice or is at the left border, not both; else they walk left.
``wise`` gives the advice, and the condition under which ``minding`` gains by it; ``useless`` says something else;
``broken`` writes no valid text.

Of those that write, ``good`` is right at once, ``learning`` if it is shown its program with its faults or social
metrics, ``stubborn-*`` if it is asked afresh for the second time, ``mending`` if it is shown the error, ``checking`` if
it checks its text; ``useless`` writes what knows nothing, ``broken`` nothing, ``talking`` what never ends.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.baselines.search import PlannerPlayer
from agents.turn import TurnRequest
from tests.agents.openai_server import OpenAIServer
from textgames.scenarios import SCENARIOS

ADVICE = "Walk around every hole."
EDGE = "Player: (0,"
_GAME = SCENARIOS["frozen-lake"].game()
_PLANNER = PlannerPlayer()


def heeding(request: Mapping[str, Any]) -> str:
    """Return the answer of each of the players and advisors to a request."""
    prompt = "\n\n".join(message["content"] for message in request["messages"])
    heeds = {"heeding": ADVICE, "studying": "Return: 1\n"}
    if request["model"] in heeds:
        return f"<action>{_move(prompt) if heeds[request['model']] in prompt else 'left'}</action>"
    if request["model"] == "minding":
        return f"<action>{_move(prompt) if (ADVICE in prompt) == (EDGE in _board(prompt)) else 'left'}</action>"
    if "<when>" in prompt:
        harmed = "It was read, and the move was bad" in prompt
        return f"<when>\n{EDGE if request['model'] == 'wise' and harmed else 'not Player'}\n</when>"
    said = {"wise": ADVICE, "useless": "Be brave.", "broken": "Cost: $5."}[request["model"]]
    if "<lesson>" in prompt:
        return f"Here is what I learnt. <lesson>{said}</lesson>"
    (current,) = re.findall(r"```\n(.*?)\n```", prompt, re.DOTALL)[:1]  # the text that GEPA wants to have anew
    return f"```\n{current}\n{said}\n```"


def _board(prompt: str) -> str:
    return str(re.findall(r"Board: .*?(?=\n\n)", prompt, re.DOTALL)[-1])  # the one to move on, below those of histories


def _move(prompt: str) -> str:
    left = int(re.findall(r"this one included: (\d+)", prompt)[-1])
    request = TurnRequest(_board(prompt), legal_actions=_GAME.actions, steps_left=left, game=_GAME)
    return _PLANNER.choose(request).action


EXAMPLES = Path(__file__).parents[1] / "examples"
PLAYER, RULES = ((EXAMPLES / f"frozen_lake_{kind}.py").read_text() for kind in ("program", "rules"))
FAILING = "def act(observation, legal_actions):\n    return {}['nothing']"
OFF = RULES.replace('place in state["holes"]', '[place[0] + 1, place[1]] in state["holes"]')
UNMOVED = """
def parse(observation): return observation
def actions(state): return ["left", "down", "right", "up"]
def outcomes(state, action): return [(1.0, state, 0.0, False)]
"""
STILL, DEFECT, COOPERATE = (
    f"def act(observation, legal_actions):\n    return {each!r}" for each in ("left", "defect", "cooperate")
)
ASKED_AFRESH: Counter[str] = Counter()


def writing(request: Mapping[str, Any]) -> str:
    """Return the answer of each of the writers to a request."""
    prompt, model = "\n\n".join(message["content"] for message in request["messages"]), str(request["model"])
    rules = "parse(observation: str)" in prompt
    good, first, still = (RULES, OFF, UNMOVED) if rules else (PLAYER, FAILING, STILL)
    if "cooperate against defect" in prompt:
        good, first, still = COOPERATE, DEFECT, DEFECT
    shown, fails, checks = (
        text in prompt for text in ("best program so far", "This program fails", "Check it against the rules")
    )
    if rules and not (shown or fails or checks):
        ASKED_AFRESH[model] += 1
    if checks and good.strip() in prompt:
        return "RIGHT"
    # what was wrong has to be told: a method that kept it to itself would fail its test
    faults = ["outcomes(state, action) has only"] if rules else ["KeyError: 'nothing'", "- efficiency 2.000"]
    mended = fails and "no function outcomes" in prompt
    source = {
        "good": good,
        "learning": good if shown and any(fault in prompt for fault in faults) else first,
        **dict.fromkeys(("stubborn-1", "stubborn-2"), RULES if ASKED_AFRESH[model] > 1 and not shown else UNMOVED),
        "mending": RULES if mended else RULES.replace("def outcomes", "def results"),
        "checking": RULES if checks else OFF,
        "useless": still,
        "talking": "while True: pass",
    }.get(model)
    return "I can't." if source is None else f"Here it is:\n```python\n{source}\n```\nIt plays."


if __name__ == "__main__":
    names = ("heeding", "studying", "minding", "wise", "useless", "broken", "good", "learning", "stubborn-1")
    names += ("stubborn-2", "mending", "checking", "talking")
    answers = {"heeding": heeding, "writing": writing}[sys.argv[1]]
    OpenAIServer(respond=answers, models=names).serve_forever(lambda url: print(url, flush=True))
