"""A player that chooses how it answers, instantly, after reasoning, or with a tool: ``modes(AGENT, TOOL)``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from agents import Around, Deciding, Policy, Question, TurnRequest, action_named
from research.improve.around.questions import below, check_reads_below, choice

MODES = ("instant", "reasoning", "agentic")
ASKED = "How is this to be answered: instantly, after reasoning, or with the tool?"
THINK = "Don't answer yet. Reason about it in words."


class ModesPolicy(Around):
    """Asks an agent for its mode, and then for an answer in that mode (A2FM, arXiv 2510.12838).

    * ``instant``: it answers at once, as it does if it names no mode;
    * ``reasoning``: it writes words first, which it reads when it answers;
    * ``agentic``: the tool, any player, is asked, and the agent reads its answer.

    One model routes and answers, so that ``around = "modes(learner, TOOL)"`` trains both. ``cost`` is the price of the
    tool, ``reward = "a2fm"`` that of modes which weren't needed, and ``forced`` the share of decisions whose mode is
    drawn, so that each is learnt before it is chosen; evaluations of the training draw them too, so a trained model is
    played with 0. The turn says the mode (``served_by``). Our reading: a tool is asked once.

    Raises:
        ValueError: ``forced`` out of range, or an agent that wouldn't read what stands below an observation.
    """

    def __init__(self, agent: Policy, tool: Policy, *, forced: float = 0.0) -> None:
        check_reads_below(agent)
        if not 0 <= forced < 1:
            raise ValueError(f"forced is a number from 0 to 1, and less than 1, got {forced!r}")
        super().__init__("modes", agent, tool)
        self.forced = forced

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        return 3, 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"forced": self.forced}

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask for the mode, have its words written or its tool asked, and then for the answer."""
        rng = np.random.default_rng([*request.seed, 1])
        if rng.random() < self.forced:
            mode = MODES[rng.integers(len(MODES))]
        else:
            asked = choice(request, ASKED, names=MODES, seed=(*request.seed, 1))
            (told,) = yield [Question(asked)]
            mode = action_named(asked, told.response) or MODES[0]
        if mode == "reasoning":
            (thought,) = yield [Question(below(request, THINK, seed=(*request.seed, 2)), words=True)]
            request = below(request, thought.response.strip())
        elif mode == "agentic":
            (found,) = yield [Question(replace(request, seed=(*request.seed, 3)), 1)]
            words = action_named(request, found.response) or found.response.strip()
            request = below(request, f"The tool answers: {words}")
        (turn,) = yield [Question(request)]
        return replace(turn, served_by=turn.served_by or mode)
