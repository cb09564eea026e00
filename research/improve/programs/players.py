"""Players that run a program, written by a model or anybody, in a sandbox.

``program:FILE`` plays what the program answers, and ``masked(AGENT)`` keeps another player to the actions that it
allows (AutoHarness, Lou et al. 2026, arXiv 2603.03329). A program that fails, or takes too long, has answered with
nothing that can be read; why stands in the response.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from agents import Around, Deciding, Policy, Question, Turn, TurnRequest, action_named, as_requests
from research.improve.programs.sandbox import Answer, Call, Sandbox

ALLOWED = "allowed(observation, legal_actions)"
"""The function of a program that says which actions a masked player may take, as a list of their names."""


class ProgramPlayer:
    """Plays what ``act(observation, legal_actions)`` of a file returns, the name of an action.

    ``legal_actions`` is empty if a game can't list them. A program's names are made anew for each decision.

    Args:
        file: the program.
        seconds: of processor time for a decision.
        memory_mb: megabytes of memory for the program.
        key: a text by which the program's randomness follows from the episode's seed without telling it; drawn at
            random when it isn't given. A run keeps it in its manifest, and a season decides it.

    Raises:
        ValueError: there is no such file, or it has no such function, or fails before it could be called.
        NoSandboxError: programs can't be held on this machine.
    """

    kind: ClassVar[str] = "program"
    functions: ClassVar[tuple[str, ...]] = ("act(observation, legal_actions)",)
    harness: ClassVar[str] = ""

    def __init__(self, file: str, *, seconds: float = 1.0, memory_mb: int = 256, key: str | None = None) -> None:
        self.file, self.name = file, f"{self.kind}:{Path(file).name}"
        self.sandbox, sha256 = opened(file, self.functions, self.harness, seconds, memory_mb, key)
        self.settings: dict[str, Any] = {"kind": self.kind, "sha256": sha256}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = as_requests(requests)
        answers = self.sandbox.calls([self.question(request) for request in asked])
        return [turn_of_answer(answer, self.functions[0]) for answer in answers]

    def question(self, request: TurnRequest) -> Call:
        return Call("act", (request.observation, list(request.legal_actions)), request.seed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file!r})"


class MaskedPolicy(Around):
    """Plays what another player answers if a program allows it, else the first action that the program allows.

    If the program fails, so does the answer, which can't be read then and says why. Options are those of a program.
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
        self._sandbox, self._digest = opened(str(program), (ALLOWED,), "", seconds, memory_mb, key)

    @property
    def settings(self) -> dict[str, Any]:
        return {"sha256": self._digest}

    def decide(self, request: TurnRequest) -> Deciding:
        (turn,) = yield [Question(request)]
        call = Call("allowed", (request.observation, list(request.legal_actions)), request.seed)
        (answer,) = self._sandbox.calls([call])
        allowed = answer.value
        if not allowed or not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
            wrong = f"{ALLOWED} returned {allowed!r:.80}, which names no actions"
            response = turn_of_answer(answer if answer.error else Answer(error=wrong), ALLOWED).response
        elif action_named(request, turn.response) in {name.strip().casefold() for name in allowed}:  # as games read
            return turn
        else:  # what was said stays in the record
            response = f"<think>{without_tags(turn.response)}</think><action>{allowed[0]}</action>"
        return replace(turn, response=response, response_ids=None, logprobs=None, allowed=None)


def opened(
    file: str,
    functions: Sequence[str],
    harness: str = "",
    seconds: float = 1.0,
    memory_mb: int = 256,
    key: str | None = None,
) -> tuple[Sandbox, str]:
    """Open a sandbox with a program that has some functions, such as ``"act(observation, legal_actions)"``.

    Returns the program's digest, too. A ValueError if there is no such file, it isn't text, lacks a function, or fails.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"there is no file {file!r}")
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file!r} isn't a program: it isn't text") from None
    sandbox = Sandbox(source, harness=harness, seconds=seconds, memory_mb=memory_mb, key=key)
    if (wrong := wrong_with(sandbox, functions)) is not None:
        sandbox.close()
        raise ValueError(f"the program {file!r} {wrong}")
    return sandbox, digest(source)


def digest(source: str) -> str:
    """Return what tells one program from another in manifests: the beginning of its SHA-256."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def wrong_with(sandbox: Sandbox, functions: Sequence[str]) -> str | None:
    """Return what is wrong with a program as a whole, as half a sentence; ``None`` if it can be asked."""
    if sandbox.error is not None:
        return f"fails: {sandbox.error}"
    missing = [each for each in functions if each.partition("(")[0] not in sandbox.functions]
    return f"has no function {' and no '.join(missing)}" if missing else None


def turn_of_answer(answer: Answer, function: str) -> Turn:
    """Return an answer of a program as a response: its action, or thoughts about why there is none."""
    if isinstance(answer.value, str):
        return Turn(f"<action>{answer.value}</action>")
    told = answer.error or f"{function} returned {answer.value!r:.80}, which is no text"
    return Turn(f"<think>The program failed: {without_tags(told)}</think>")


def without_tags(text: str) -> str:
    """Return a text in which no game finds an action."""
    return text.replace("<", "(").replace(">", ")")
