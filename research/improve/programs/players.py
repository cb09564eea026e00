"""Players that run a program, written by a model or anybody, in a sandbox; and how true rules of a game are.

``program:FILE`` plays what the program answers, ``rules:FILE`` plans with the rules that it has, and ``masked(AGENT)``
keeps another player to the actions that it allows (AutoHarness, Lou et al. 2026, arXiv 2603.03329). A program that
fails, or takes too long, has answered with nothing that can be read; why stands in the response.
"""

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from agents import Around, Deciding, Policy, Question, Turn, TurnRequest, action_named, as_requests, request_in
from research.improve.programs.sandbox import Answer, Call, Sandbox
from textgames import TSMG, ActionNames, Scenario, check_whole, parse_action
from textgames.solving import StateSpace, ValueIteration

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


STARTS = 20
"""Episodes whose starts are looked at, if a game doesn't have one start alone."""

MAX_STATES = 20_000
"""The most states of a game that are compared."""

_EQUAL = 1e-6  # chances and rewards that differ by no more are equal
_SHOWN = 5  # faults that are told
_PLANNING = Path(__file__).with_name("planning.py")


class RulesPlayer(ProgramPlayer):
    """Plans with a game's rules that a file has: see ``planning.py``.

    It plays what is worth most by these rules in the steps that are left, exactly so if no more than ``max_states``
    states can be reached; what is beyond the nearest of them counts as worth 0. :func:`fidelity` says how true they
    are.

    Args:
        file: the rules.
        max_states: how many states are looked at.
        seconds: of processor time for a decision.
        memory_mb: megabytes of memory for the program and its plans.
        key: as a program's.
    """

    kind = "rules"
    functions = ("parse(observation)", "actions(state)", "outcomes(state, action)")
    harness = _PLANNING.read_text(encoding="utf-8")

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

    def inspected(self, scenario: Scenario) -> dict[str, Any]:
        """Compare the rules with the true game, exactly, if that is small; ``textbench inspect`` prints it."""
        try:
            found = fidelity(self, scenario)
        except ValueError as error:
            return {"rules": {"told": f"Its rules aren't compared with the game: {error}."}}
        return {"rules": {"told": str(found), "share": found.share, **found._asdict()}}


class Fidelity(NamedTuple):
    """How rules fare against the true game."""

    right: int  # how many (state, action) pairs have the true distribution over the next state, the reward and the end
    # how many there are, in all states that can be reached: those of the game, and those that only the rules have
    pairs: int
    states: int  # how many states can be reached
    faults: tuple[str, ...]  # some of the pairs that aren't right, for people
    value: float  # the expected return of planning by the rules in the true game, mean over the starts
    optimum: float  # the same of the best play
    starts: int  # how many there are

    def __str__(self) -> str:
        return (
            f"Its rules have the true chances in {self.right:,} of {self.pairs:,} pairs of a state and an action "
            f"({self.share:.1%}): all of the {self.states:,} states within reach of the first {self.starts} episodes' "
            f"starts. Planning by them returns {self.value:.3f} from there, the best play {self.optimum:.3f}."
        )

    @property
    def share(self) -> float:
        """The share of right pairs, 0 to 1."""
        return self.right / self.pairs


def fidelity(player: RulesPlayer, scenario: Scenario, starts: int = STARTS) -> Fidelity:
    """Measure the rules that a player plans with, from the starts of a scenario's first episodes.

    Rules have states of their own: the observation of a true state is read by their ``parse``. What they say of an
    action is right if the chances of (what ``parse`` makes of the next observation, reward, end) are the true ones.
    So rules may leave out of their states what doesn't matter. A ValueError for a game that can't be compared.
    """
    game = scenario.game()
    if game.hidden_information:
        raise ValueError(f"{scenario.name} hides something from its player, so rules can't tell what comes of a state")
    yardstick = ValueIteration(game, max_states=MAX_STATES)  # refuses games of several players and without chances
    certain = game.initial_outcomes() if game.has_initial_outcomes else ()
    if len(certain) == 1:
        first = [certain[0][1]]
    else:
        first = [game.initial_state(np.random.default_rng(scenario.seed(number))) for number in range(starts)]
    space = StateSpace.of(game, first, scenario.horizon, MAX_STATES, too_many="too many to compare rules with")
    right, pairs, faults = _compare(player, game, space)
    (who,) = game.players
    optimum = np.mean([yardstick.value(state, scenario.horizon, who) for state in first])
    value = plan_value(player, game, first, scenario.horizon)
    return Fidelity(right, pairs, len(space.numbers), tuple(faults[:_SHOWN]), value, float(optimum), len(first))


def _compare(player: RulesPlayer, game: TSMG[Any], space: StateSpace) -> tuple[int, int, list[str]]:
    """Return how many pairs are right, of how many, and what is wrong with the others."""
    (who,) = game.players
    states = list(space.numbers)
    texts = [game.observe(state, who) for state in states]
    told = player.sandbox.calls([Call("predict", (text,)) for text in texts])
    keys = {
        state: answer.value[0] if answer.error is None else None for state, answer in zip(states, told, strict=True)
    }
    right, pairs, faults = 0, 0, []
    for state, text, answer in zip(states[: len(space.decisions)], texts, told, strict=False):
        (decision,) = space.decisions[space.numbers[state]]
        theirs: Mapping[str, Any] = answer.value[1] if answer.error is None else {}
        for action in dict.fromkeys((*decision.actions, *theirs)):
            pairs += 1
            said = theirs.get(action, answer.error or "actions(state) doesn't have it")
            if action not in decision.actions:
                said = "actions(state) has it, and it isn't legal"
            elif not isinstance(said, str):
                # a state that the rules can't read is none of theirs
                truth = _distribution(
                    [
                        (chance, None if over else keys[after] or "unread", paid[who])
                        for chance, after, paid, over in game.outcomes(state, {who: action})
                    ]
                )
                told_here = _distribution(said)
                if truth.keys() == told_here.keys() and all(abs(truth[to] - told_here[to]) <= _EQUAL for to in truth):
                    right += 1
                    continue
                said = f"it says {_listed(told_here)}, true is {_listed(truth)}"
            faults.append(f"{action} where one reads {text!r}: {said}")
    return right, pairs, faults


def _distribution(outcomes: Sequence[Sequence[Any]]) -> Mapping[Any, float]:
    """Return ``{(key of the next state, None if the game is over; reward): probability}``."""
    found: Counter[tuple[str | None, float]] = Counter()
    for chance, after, reward in outcomes:
        found[after, round(reward, 6)] += chance
    return {place: chance for place, chance in found.items() if chance > _EQUAL}


def _listed(chances: Mapping[Any, float]) -> str:
    return ", ".join(f"{p:.3g} of {after or 'the end'} and {reward:g}" for (after, reward), p in chances.items())


def plan_value(player: Policy, game: TSMG[Any], starts: Sequence[Hashable], horizon: int) -> float:
    """Return the exact expected return of a player that always answers alike, in a game for one: the mean over starts.

    An answer that can't be read counts as the game's default action.
    """
    (who,) = game.players
    layers: list[dict[Hashable, Sequence[Any]]] = []  # by rounds played: {state: outcomes of what is played there}
    here = list(dict.fromkeys(starts))
    for played in range(horizon):
        requests = [request_in(game, state, who, horizon - played) for state in here]
        layer: dict[Hashable, Sequence[Any]] = {}
        for state, request, turn in zip(here, requests, player.act(requests), strict=True):
            named = parse_action(turn.response, ActionNames(request.legal_actions))
            action = named if isinstance(named, str) else game.default_action(state, who)
            layer[state] = game.outcomes(state, {who: action})
        layers.append(layer)
        here = list(dict.fromkeys(after for outcomes in layer.values() for _, after, _, over in outcomes if not over))
    values: dict[Hashable, float] = {}
    for layer in reversed(layers):
        values = {
            state: sum(p * (paid[who] + (0.0 if over else values.get(after, 0.0))) for p, after, paid, over in outcomes)
            for state, outcomes in layer.items()
        }
    return float(np.mean([values[start] for start in starts]))
