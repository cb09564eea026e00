"""``program:FILE`` and ``rules:FILE``: players that run a program which a model, or anybody, wrote, in a sandbox.

A program that fails, or takes too long, has answered with nothing that can be read; why stands in the response.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from agents.policy import as_requests
from agents.programs.sandbox import Answer, Call, Sandbox
from agents.turn import Turn, TurnRequest
from textgames.settings import check_whole

PLANNING = Path(__file__).with_name("planning.py")


class ProgramPlayer:
    """Plays what ``act(observation, legal_actions)`` of a file returns, the name of an action.

    ``legal_actions`` is empty where a game can't list them. A program's names are made anew for each decision.

    Args:
        file: the program.
        seconds: of processor time for a decision.
        memory_mb: megabytes of memory for the program.
        key: a text by which the program's randomness follows from the episode's seed without telling it
            (:mod:`agents.programs.sandbox`); drawn at random when it isn't given. A run draws one and keeps it in its
            manifest, and a season decides it.

    Raises:
        ValueError: there is no such file, or it has no such function, or fails before it could be called.
        NoSandboxError: programs can't be held on this machine.
    """

    kind: ClassVar[str] = "program"
    functions: ClassVar[tuple[str, ...]] = ("act(observation, legal_actions)",)
    harness: ClassVar[str] = ""

    def __init__(self, file: str, *, seconds: float = 1.0, memory_mb: int = 256, key: str | None = None) -> None:
        self.file, self.name = file, f"{self.kind}:{Path(file).name}"
        source = read_program(file)
        self.settings: dict[str, Any] = {"kind": self.kind, "sha256": digest(source)}
        self.sandbox = opened(file, source, self.functions, self.harness, seconds, memory_mb, key)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Answer every request with a turn, in order; the program is sent one after the other."""
        asked = as_requests(requests)
        answers = self.sandbox.calls([self.question(request) for request in asked])
        return [turn_of_answer(answer, self.functions[0]) for answer in answers]

    def question(self, request: TurnRequest) -> Call:
        """What the program is asked for a request."""
        return Call("act", (request.observation, list(request.legal_actions)), request.seed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file!r})"


class RulesPlayer(ProgramPlayer):
    """Plans with a game's rules that a file has: see :mod:`agents.programs.planning`.

    It plays what is worth most by these rules in the steps that are left, exactly so where no more than ``max_states``
    states can be reached; else what is beyond the nearest of them counts as worth 0. If the rules are true it plays
    as well as can be; how true they are says :func:`agents.programs.fidelity.fidelity`.

    Args:
        file: the rules.
        max_states: how many states are looked at.
        seconds: of processor time for a decision.
        memory_mb: megabytes of memory for the program and its plans.
        key: as a program's.
    """

    kind = "rules"
    functions = ("parse(observation)", "actions(state)", "outcomes(state, action)")
    harness = PLANNING.read_text(encoding="utf-8")

    def __init__(
        self,
        file: str,
        *,
        max_states: int = 20_000,
        seconds: float = 10.0,
        memory_mb: int = 512,
        key: str | None = None,
    ) -> None:
        check_whole("max_states", max_states, 1, 10**6)
        super().__init__(file, seconds=seconds, memory_mb=memory_mb, key=key)
        self.max_states = max_states
        self.settings |= {"max_states": max_states}

    def question(self, request: TurnRequest) -> Call:
        legal = list(request.legal_actions)
        return Call("plan", (request.observation, legal, request.steps_left, self.max_states), request.seed)


def read_program(file: str) -> str:
    """A program's text.

    Raises:
        ValueError: there is no such file, or it isn't text.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"there is no file {file!r}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file!r} isn't a program: it isn't text") from None


def digest(source: str) -> str:
    """What tells one program from another in manifests: the beginning of its SHA-256."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def opened(
    file: str,
    source: str,
    functions: Sequence[str],
    harness: str = "",
    seconds: float = 1.0,
    memory_mb: int = 256,
    key: str | None = None,
) -> Sandbox:
    """Open a sandbox with a program that has some functions, given as ``"act(observation, legal_actions)"``.

    Raises:
        ValueError: it lacks one, or fails.
    """
    sandbox = Sandbox(source, harness=harness, seconds=seconds, memory_mb=memory_mb, key=key)
    if (wrong := wrong_with(sandbox, functions)) is not None:
        sandbox.close()
        raise ValueError(f"the program {file!r} {wrong}")
    return sandbox


def wrong_with(sandbox: Sandbox, functions: Sequence[str]) -> str | None:
    """What is wrong with a program as a whole, as half a sentence; ``None`` where it can be asked."""
    if sandbox.error is not None:
        return f"fails: {sandbox.error}"
    missing = [each for each in functions if each.partition("(")[0] not in sandbox.functions]
    return f"has no function {' and no '.join(missing)}" if missing else None


def turn_of_answer(answer: Answer, function: str) -> Turn:
    """An answer of a program as a response: its action, or thoughts about why there is none, which can't be read."""
    if isinstance(answer.value, str):
        return Turn(f"<action>{answer.value}</action>")
    told = answer.error or f"{function} returned {answer.value!r:.80}, which is no text"
    return Turn(f"<think>The program failed: {without_tags(told)}</think>")


def without_tags(text: str) -> str:
    """A text in which no game finds an action, for what is only told."""
    return text.replace("<", "(").replace(">", ")")
