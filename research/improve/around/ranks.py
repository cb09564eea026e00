"""Values by which ``search(AGENT)`` ranks proposals: one that was learnt, and a judge's probabilities of success.

An LLM critic (LAC, Dong et al. 2025, arXiv 2506.06376): the value of an action is the log-odds ``log(p / (1 - p))`` of
its success by a language model, and the policy ``pi(a) exp(Q(a))`` is played at its best action. Our reading: ``pi`` is
the share of the proposals, and the judge states ``p`` as a number, which any server's model can.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path

from agents import Question, SearchPlayer, Turn, TurnRequest
from research.improve.around.questions import below

CERTAIN = 0.999
"""The most that is believed of a stated probability, and less than 1 - this: its log-odds are finite."""

ASKED = (
    "If the player's next action is: {action}\nhow likely is it, from 0 to 100 percent, that the player does as well "
    "as can be in the end? Answer with the number."
)


def learned_value(folder: str | Path | None) -> tuple[SearchPlayer, str]:
    """Return a search player of a folder's step value, and the value's digest; a ValueError if it can't be read."""
    if folder is None:
        raise ValueError("rank_by = 'value' needs what textbench improve value leaves: --set NAME.value=DIR/value")
    try:
        from research.improve.values.folder import digest_of, read_value
        from research.improve.values.network import ValuePlayer
    except ModuleNotFoundError as error:
        raise ValueError(f"a step value needs {error.name}: pip install -e '.[train]'") from None
    value = read_value(folder)
    return ValuePlayer(value), digest_of(value)


def judged(request: TurnRequest, action: str, player: int) -> Question:
    """Return the question to a judge, at place ``player``, for an action's probability of success."""
    asked = below(
        request,
        ASKED.format(action=action),
        legal_actions=(),
        action_help="a number from 0 to 100",
        sample_action=None,
        seed=(*request.seed, 3),  # its draws are apart from the agent's
    )
    return Question(asked, player, words=True)


def probability_in(turn: Turn) -> float:
    """Return the probability that an answer states, between 0.001 and 0.999; a half if it states none."""
    said = re.search(r"<action>(.*?)</action>", turn.response, re.DOTALL)
    found = re.search(r"-?\d+(?:\.\d+)?", said[1] if said else turn.response)
    if found is None or not 0 <= float(found[0]) <= 100:
        return 0.5
    return min(CERTAIN, max(1 - CERTAIN, float(found[0]) / 100))


def improved(proposed: Sequence[str], different: Sequence[str], told: Sequence[Turn]) -> dict[str, float]:
    """Return ``log pi(a) + log(p / (1 - p))`` of the different actions, of each of which a judge told ``p``.

    ``pi(a)`` is its share of the proposals.
    """
    votes, values = Counter(proposed), dict[str, float]()
    for action, turn in zip(different, told, strict=True):
        p = probability_in(turn)
        values[action] = log(votes[action] / len(proposed)) + log(p / (1 - p))
    return values
