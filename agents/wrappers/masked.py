"""``masked(AGENT)``: another player, kept to the actions that a program allows.

The program is a file with ``allowed(observation, legal_actions) -> list of actions``, which a model may have written.
An answer that names none of them, or can't be read, is replaced by the first of them: nothing is asked again, so that
a decision costs what it costs without the program. (AutoHarness, Lou et al. 2026, arXiv 2603.03329, writes such
programs by a model.)
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.programs.players import digest, opened, read_program, turn_of_answer, without_tags
from agents.programs.sandbox import Answer, Call
from agents.turn import Policy, Turn, TurnRequest
from agents.wrappers.around import Around, Deciding, Question, action_named

FUNCTION = "allowed(observation, legal_actions)"


class MaskedPolicy(Around):
    """Plays what another player answers where a program allows it, else the first action that the program allows.

    Where the program fails, so does the answer, which can't be read then and says why.

    Args:
        inner: the player that is asked.
        program: the file with the function ``allowed``.
        seconds: of processor time for one call of it.
        memory_mb: megabytes of memory for it.
        key: by which its randomness follows from the episode's seed, as a program's; drawn when it isn't given.

    Raises:
        ValueError: there is no such file or function.
        NoSandboxError: programs can't be held on this machine.
    """

    def __init__(
        self,
        inner: Policy,
        *,
        program: str | Path | None = None,
        seconds: float = 1.0,
        memory_mb: int = 256,
        key: str | None = None,
    ) -> None:
        if program is None:
            raise ValueError("masked(AGENT) needs a program that says what is allowed: --set NAME.program=FILE")
        super().__init__("masked", inner)
        file = str(program)
        source = read_program(file)
        self._digest = digest(source)
        self._sandbox = opened(file, source, (FUNCTION,), seconds=seconds, memory_mb=memory_mb, key=key)

    @property
    def settings(self) -> dict[str, Any]:
        return {"sha256": self._digest}

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the player, and play what is allowed."""
        (turn,) = yield [Question(request)]
        call = Call("allowed", (request.observation, list(request.legal_actions)), request.seed)
        return _kept(request, turn, self._sandbox.calls([call])[0])


def _kept(request: TurnRequest, turn: Turn, answer: Answer) -> Turn:
    allowed = answer.value
    if not allowed or not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        told = answer if answer.error else Answer(error=f"{FUNCTION} returned {allowed!r:.80}, which names no actions")
        response = turn_of_answer(told, FUNCTION).response
    elif action_named(request, turn.response) in {name.strip().casefold() for name in allowed}:  # as games read them
        return turn
    else:  # what was said stays in the record
        response = f"<think>{without_tags(turn.response)}</think><action>{allowed[0]}</action>"
    return replace(turn, response=response, response_ids=None, logprobs=None, allowed=None)
