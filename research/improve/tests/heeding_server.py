"""A server whose answers are written by hand: a player of Frozen Lake that heeds one piece of advice, and its helpers.

As a process, from the root (the first line on standard output is the base URL)::

    python -m research.improve.tests.heeding_server

No language model is here, so nothing that it answers tells how well a method works with one: only that the method does
with a perfect helper what it should, and with a useless one nothing.

- ``heeding`` plays the best move where its prompt has the advice, and walks into the left border everywhere else;
- ``studying`` plays the best move where its prompt tells of an earlier game with a return of 1, the same way;
- ``minding`` walks left where it is at the left border without the advice, or elsewhere with it, else as the best does;
- ``wise`` gives the advice to all that ask, and the condition under which ``minding`` gains by it; ``useless``
  says something else; ``broken`` writes no valid text.
"""

import re
from collections.abc import Mapping
from typing import Any

from agents.baselines.search import PlannerPlayer
from agents.turn import TurnRequest
from tests.agents.openai_server import OpenAIServer
from textgames.scenarios import SCENARIOS

ADVICE = "Walk around every hole."
EDGE = "Player: (0,"
_GAME = SCENARIOS["frozen-lake"].game()
_PLANNER = PlannerPlayer()


def answer(request: Mapping[str, Any]) -> str:
    """Return the answer of each of the models to a request."""
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
    board = _board(prompt)
    left = int(re.findall(r"this one included: (\d+)", prompt)[-1])
    request = TurnRequest(board, legal_actions=_GAME.actions, steps_left=left, game=_GAME)
    return _PLANNER.choose(request).action


if __name__ == "__main__":
    OpenAIServer(respond=answer, models=("heeding", "studying", "minding", "wise", "useless", "broken")).serve_forever(
        lambda url: print(url, flush=True)
    )
