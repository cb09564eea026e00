"""Why a model's answers can't be read, and what to do about it: the same 100% of invalid responses has many causes.

``answers of a record -> cause -> sentence with an example and a remedy``.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agents.episode import Episode
from agents.turn import Turn
from textgames.texts.actions import OPEN_TAG, UnreadableReason, behind_thoughts

MOST_SHARE = 0.1
"""The share of unreadable answers above which a run's ending explains them."""
FIRST_ANSWERS = 20
"""So many answers of a model that are all unreadable stop its part of a run."""
LONGEST_EXAMPLE = 200  # letters

_RETRY = "--protocol retry tells the model why and asks again"
_CAUSES = {
    "reasoning": (
        "cut off at the token limit while still reasoning",
        "--max-tokens N, or --set {name}.reasoning_tokens=N",
    ),
    "length": ("cut off at the token limit", "--max-tokens N"),
    "refusal": ("refused to answer", "--prompts FILE, in words that the model takes for a game"),
    "tool_calls": ("a call of a tool, and none is offered", "--prompts FILE, saying that the answer is text"),
    "no_call": ("text in place of a call of the tool", "another --protocol, if its server or model takes no tools"),
    "empty": ("empty", "--max-tokens N, or another --mode"),
    "form": ("an answer that isn't in the form asked for", _RETRY),
    "illegal": ("a name that is no legal action there", _RETRY),
}
"""``{cause: (what the answers are, what may help)}``."""


def cause_of(turn: Turn, unreadable: str) -> str:
    """Return the cause of an unreadable answer, a key of :data:`_CAUSES`."""
    response, finish = turn.response, turn.finish_reason
    if finish in ("refusal", "content_filter"):
        return "refusal"
    if turn.tool_calls and OPEN_TAG not in response:
        return "tool_calls"
    if finish == "length":
        hidden = not response.strip() and (turn.reasoning or turn.usage.reasoning_tokens)
        return "reasoning" if hidden or behind_thoughts(response) is None else "length"
    if not response.strip():
        return "no_call" if turn.cut.strip() else "empty"
    return "illegal" if unreadable in (UnreadableReason.ILLEGAL, UnreadableReason.UNKNOWN_NAME) else "form"


@dataclass
class Unreadable:
    """The unreadable answers of one agent."""

    agent: str
    answers: int = 0  # that were looked at, readable ones included
    causes: Counter[str] = field(default_factory=Counter)  # of the unreadable ones
    examples: dict[str, str] = field(default_factory=dict)  # of each cause the beginning of the first answer, verbatim

    def add(self, turn: Turn, unreadable: str | None) -> None:
        self.answers += 1
        if unreadable is not None:
            cause = cause_of(turn, unreadable)
            self.causes[cause] += 1
            shown = turn.response.strip() or turn.tool_calls or turn.cut or turn.reasoning
            self.examples.setdefault(cause, shown[:LONGEST_EXAMPLE])

    @property
    def share(self) -> float:
        return self.causes.total() / max(1, self.answers)

    @property
    def reason(self) -> str:
        """The most frequent cause with its example and what may help, as half a sentence."""
        cause, count = self.causes.most_common(1)[0]
        what, remedy = _CAUSES[cause]
        most = "" if count == self.causes.total() else f" in {count} of {self.causes.total()}"
        return f"{what}{most}, such as {self.examples[cause]!r}; {remedy.format(name=self.agent)}"

    def document(self) -> dict[str, Any]:
        cause = self.causes.most_common(1)[0][0]
        return {
            "agent": self.agent,
            "answers": self.answers,
            "unreadable": self.causes.total(),
            "causes": dict(self.causes),
            "example": self.examples[cause],
            "remedy": _CAUSES[cause][1].format(name=self.agent),
        }


def unreadable_answers(records: Iterable[Episode], agents: Iterable[str]) -> list[Unreadable]:
    """Look at all answers of these agents, and return those of whose answers too many can't be read."""
    found = {name: Unreadable(name) for name in agents}
    for record in records:
        for step in record.steps:
            if (own := found.get(record.agents[step.player])) is not None:
                for answer in step.answers:
                    own.add(*answer)
    return [one for one in found.values() if one.share > MOST_SHARE]
