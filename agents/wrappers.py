"""Players around other players, written ``NAME(AGENT)`` in the place of a player's name.

A wrapper is a subclass of :class:`Around` whose first arguments are the players that it asks; its other parameters are
its options. It asks its questions in :meth:`Around.decide`, a generator that yields questions, is sent the turns that
answer them, and returns its own. So it is written once for batches and for servers: :meth:`Around.act` puts the
questions of a whole batch to a player at once, :meth:`Around.act_async` asks those of one decision at the same time.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter
from pkgutil import resolve_name
from typing import Any, NamedTuple

from agents.models.provider import Provider, find_model
from agents.policy import as_request, as_requests
from agents.turn import AsyncPolicy, Policy, Turn, TurnRequest, check_game, is_served, total_usage
from textgames.plugins import loaded
from textgames.settings import taken_by
from textgames.texts.actions import ActionNames, Unreadable, action_content, parse_action
from textgames.tsmg import TSMG

ENTRY_POINT_GROUP = "textbench.wrappers"
"""Packages add wrappers under this group, such as ``MINE = Wrapper("my_package.mine:Mine", "what it does")``."""


class Wrapper(NamedTuple):
    """A kind of player around others."""

    path: str  #: ``"module:Class"``; it is only imported to play
    description: str  #: what it does, in one line
    players: int = 1  #: how many players are inside
    more: int = 0  #: how many there may be besides
    tells_more: bool = False  #: whether the player that answers is told more than one that plays alone
    holds: Callable[[], bool] | None = None  #: see :class:`agents.load.Baseline`


def wrappers() -> dict[str, Wrapper]:
    """Return ``{name: wrapper}`` of installed packages."""
    return loaded(ENTRY_POINT_GROUP, lambda entry, wrong: Wrapper(entry.value, wrong))


class Wrapped(NamedTuple):
    """A spec of the form ``NAME(AGENT, ...)``: the wrapper's name, and the specs of the players inside."""

    name: str
    inside: tuple[str, ...]


def wrapped_in(spec: str) -> Wrapped | None:
    """Read a spec ``NAME(AGENT, ...)``; ``None`` for any other."""
    name, opened, rest = spec.partition("(")
    if not opened or not rest.endswith(")") or name not in wrappers():
        return None
    inside, depth = [""], 0
    for letter in rest[:-1]:  # the commas that stand in no brackets part the players
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            inside.append("")
        else:
            inside[-1] += letter
    return Wrapped(name, tuple(part.strip() for part in inside))


def check_form(spec: str) -> None:
    """Raise a ValueError, with the accepted form, for a wrapper that takes another number of players."""
    if (wrapped := wrapped_in(spec)) is None:
        return
    about = wrappers()[wrapped.name]
    if not about.players <= len(wrapped.inside) <= about.players + about.more or not all(wrapped.inside):
        raise ValueError(f"{spec!r} is not of the form {form_of(wrapped.name)}")
    for inner in wrapped.inside:
        check_form(inner)


def form_of(name: str) -> str:
    """Return how a wrapper is written: ``NAME(AGENT)``."""
    about = wrappers()[name]
    return f"{name}({', '.join(['AGENT'] * about.players)}{'[, AGENT]' * about.more})"


def innermost(spec: str) -> tuple[str, ...]:
    """Return the specs of the players that are inside of all wrappers; the spec itself if it is no wrapper."""
    wrapped = wrapped_in(spec)
    return (spec,) if wrapped is None else tuple(one for inner in wrapped.inside for one in innermost(inner))


def with_innermost(spec: str, of: Callable[[str], str]) -> str:
    """Replace each of the innermost players of a spec."""
    wrapped = wrapped_in(spec)
    if wrapped is None:
        return of(spec)
    return f"{wrapped.name}({', '.join(with_innermost(inner, of) for inner in wrapped.inside)})"


def models_inside(spec: str) -> list[tuple[Provider, str]]:
    """Return the provider and the name of every language model that a spec ends in; nothing for other players."""
    return [found for one in innermost(spec) if (found := find_model(one)) is not None]


def told_more(spec: str) -> bool:
    """Report whether a spec's player may be told more than what a player alone is asked with."""
    wrapped = wrapped_in(spec)
    return wrapped is not None and (wrappers()[wrapped.name].tells_more or any(map(told_more, wrapped.inside)))


def wrapper(name: str) -> Any:
    """Import a wrapper's class; a ValueError if it can't be imported."""
    path = wrappers()[name].path
    try:
        return resolve_name(path)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the wrapper {name} ({path}) can't be imported: {error}") from error


def own_options(name: str) -> Mapping[str, Parameter]:
    """Return the options that a wrapper has besides those of the players inside."""
    about = wrappers()[name]
    return taken_by(wrapper(name), arguments=about.players + about.more).named


def questions(spec: str, options: Mapping[str, Any]) -> dict[str, int]:
    """Return how often each of the innermost players is asked for one decision at most: ``{spec: questions}``."""
    wrapped = wrapped_in(spec)
    if wrapped is None:
        return {spec: 1}
    found, own = dict[str, int](), own_options(wrapped.name)
    told = {name: options.get(name, parameter.default) for name, parameter in own.items()}
    asks = wrapper(wrapped.name).asks(len(wrapped.inside), told)
    for inner, times in zip(wrapped.inside, asks, strict=True):
        for one, asked in questions(inner, options).items():
            found[one] = found.get(one, 0) + times * asked
    return found


class Question(NamedTuple):
    """A request to the player inside at place ``player``; ``words``: any words answer it, not one of its legal actions
    alone."""

    request: TurnRequest
    player: int = 0
    words: bool = False

    def why_unanswered(self, response: str) -> str | None:
        """Return the reason (a value of ``textgames.UnreadableReason``) if a response is no answer, else ``None``."""
        found = None if self.words else _read(self.request, response)
        return str(found.reason) if isinstance(found, Unreadable) else None


Deciding = Generator[list[Question], list[Turn], Turn]
"""Yields questions, is sent their answers, and returns the turn of the decision."""


class Around:
    """A player around others. A subclass has ``decide``, and options of its own."""

    def __init__(self, name: str, *players: Policy) -> None:
        self.players = players
        self.name = f"{name}({', '.join(player.name for player in players)})"

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the players that it takes, and return a turn. Usage and seconds are filled in from all questions."""
        raise NotImplementedError

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        """Return how often each of so many players inside is asked for one decision at most, by the own options."""
        return (1,) * players

    @property
    def settings(self) -> dict[str, Any]:
        """The wrapper's own options, as results have them."""
        return {}

    @property
    def served(self) -> bool:
        return any(is_served(player) for player in self.players)

    @property
    def history_turns(self) -> int | None:
        """The largest of the players inside; ``None`` if one of them reads all turns."""
        turns = [getattr(player, "history_turns", 0) for player in self.players]
        return None if None in turns else max(turns)

    def check_game(self, game: TSMG[Any]) -> None:
        for player in self.players:
            check_game(player, game)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Answer every request; each player inside sees the questions of all of them as one batch."""
        return [one.turn for one in self.decisions(as_requests(requests)) if one.turn is not None]

    def decisions(self, requests: Sequence[TurnRequest]) -> "list[Decision]":
        """Return the whole decisions of a batch: the turn of each, and what was asked for it."""
        running = [Decision(self.decide(request)) for request in requests]
        while open_ones := [one for one in running if one.turn is None]:
            asked = [each for one in open_ones for each in one.questions]
            found: dict[int, Turn] = {}
            for place, player in enumerate(self.players):
                own = [at for at, question in enumerate(asked) if question.player == place]
                found |= zip(own, player.act([asked[at].request for at in own]) if own else [], strict=True)
            answers = iter([found[at] for at in range(len(asked))])
            for one in open_ones:
                one.answer([next(answers) for _ in one.questions])
        return running

    async def act_async(self, request: TurnRequest | str) -> Turn:
        """Answer one request; questions that don't wait for each other are asked at the same time."""

        async def ask(question: Question) -> Turn:
            player = self.players[question.player]
            if isinstance(player, AsyncPolicy):
                return await player.act_async(question.request)
            return (await asyncio.to_thread(player.act, [question.request]))[0]

        one = Decision(self.decide(as_request(request)))
        while one.turn is None:
            one.answer(await asyncio.gather(*map(ask, one.questions)))
        return one.turn

    async def aclose(self) -> None:
        for player in self.players:
            if (close := getattr(player, "aclose", None)) is not None:
                await close()


class Decision:
    """One decision on its way: its open questions, its turn if there is one, and what was ``asked`` with the answers:
    a list for all questions that were asked at the same time."""

    def __init__(self, deciding: Deciding) -> None:
        self._deciding = deciding
        self.asked: list[list[tuple[Question, Turn]]] = []
        self._seconds = 0.0
        self.turn: Turn | None = None
        self.questions = next(deciding)

    def answer(self, turns: Sequence[Turn]) -> None:
        """Continue with the answers; an error of a provider ends the decision."""
        self.asked.append(list(zip(self.questions, turns, strict=True)))
        self._seconds += max(turn.seconds for turn in turns)
        failed = [turn for turn in turns if turn.error is not None]
        try:
            if not failed:
                self.questions = self._deciding.send(list(turns))
                return
            self._deciding.close()
            turn = failed[0]
        except StopIteration as stopped:
            turn = stopped.value
        answers = [answer for together in self.asked for _, answer in together]
        usage, discarded = (total_usage(one.usage for one in answers), total_usage(one.discarded for one in answers))
        if not usage.cached and any(one.usage.cached for one in answers):  # known in part: what was paid stands apart
            usage, discarded = usage._replace(cached=True), total_usage(one.paid for one in answers)
        uncounted = any(one.uncounted for one in answers)
        self.turn = replace(turn, usage=usage, discarded=discarded, uncounted=uncounted, seconds=self._seconds)


def action_named(request: TurnRequest, response: str) -> str | None:
    """Return the action that a response names; if none are listed, the text in its action tag."""
    found = _read(request, response)
    return None if isinstance(found, Unreadable) else found


def _read(request: TurnRequest, response: str) -> str | Unreadable:
    if request.legal_actions:
        return parse_action(response, ActionNames(request.legal_actions))
    found = action_content(response)
    return found if isinstance(found, Unreadable) else found[0].strip().casefold()
