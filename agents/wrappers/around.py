"""What all players around other players have in common: they ask those inside, and answer with one of their turns.

A wrapper says what it asks in :meth:`Around.decide`, a generator: it yields questions, is sent the turns that answer
them, and returns its own. So it is written once for batches and for servers: :meth:`Around.act` puts the questions of a
whole batch to a player at once, :meth:`Around.act_async` asks for those of one decision at the same time.
"""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agents.policy import as_request, as_requests
from agents.turn import AsyncPolicy, Policy, Turn, TurnRequest, check_game, is_served, total_usage
from textgames.texts.actions import ActionNames, Unreadable, action_content, parse_action
from textgames.tsmg import TSMG


class Question(NamedTuple):
    """A request to one of the players inside, by its place.

    ``words`` says that any words answer it, and not one of its legal actions alone.
    """

    request: TurnRequest
    player: int = 0
    words: bool = False

    def why_unanswered(self, response: str) -> str | None:
        """Why a response is no answer (a value of ``textgames.UnreadableReason``); ``None`` where it is one."""
        found = None if self.words else _read(self.request, response)
        return str(found.reason) if isinstance(found, Unreadable) else None


Deciding = Generator[list[Question], list[Turn], Turn]
"""Yields questions, is sent their answers, and returns the turn of the decision."""


class Around:
    """A player around others. A subclass has ``decide``, and options of its own.

    Args:
        name: of the wrapper.
        players: those inside.
    """

    def __init__(self, name: str, *players: Policy) -> None:
        self.players = players
        self.name = f"{name}({', '.join(player.name for player in players)})"

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask whom it takes, and return a turn. Usage and seconds are filled in from all questions."""
        raise NotImplementedError

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        """How often each of so many players inside is asked for one decision at most, by the wrapper's own options."""
        return (1,) * players

    @property
    def settings(self) -> dict[str, Any]:
        """What results say of the wrapper's own options."""
        return {}

    @property
    def served(self) -> bool:
        """Whether one of the players inside is behind a server."""
        return any(is_served(player) for player in self.players)

    @property
    def history_turns(self) -> int | None:
        """The largest of the players inside; ``None`` where one reads all turns."""
        turns = [getattr(player, "history_turns", 0) for player in self.players]
        return None if None in turns else max(turns)

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game that one of the players inside can't play."""
        for player in self.players:
            check_game(player, game)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Answer every request; each player inside sees the questions of all of them as one batch."""
        return [one.turn for one in self.decisions(as_requests(requests)) if one.turn is not None]

    def decisions(self, requests: Sequence[TurnRequest]) -> "list[Decision]":
        """The whole decisions of a batch: the turn of each, and what was asked for it."""
        running = [Decision(self.decide(request)) for request in requests]
        while open_ones := [one for one in running if one.turn is None]:
            asked = [each for one in open_ones for each in one.questions]
            answers = iter(self._answers(asked))
            for one in open_ones:
                one.answer([next(answers) for _ in one.questions])
        return running

    def _answers(self, asked: Sequence[Question]) -> list[Turn]:
        """The turns that answer questions, in their order; each player inside gets its own in one batch."""
        found: dict[int, Turn] = {}
        for place, player in enumerate(self.players):
            own = [at for at, question in enumerate(asked) if question.player == place]
            found |= zip(own, player.act([asked[at].request for at in own]) if own else [], strict=True)
        return [found[at] for at in range(len(asked))]

    async def act_async(self, request: TurnRequest | str) -> Turn:
        """The turn of one request; the questions that don't wait for each other are asked at the same time."""
        one = Decision(self.decide(as_request(request)))
        while one.turn is None:
            one.answer(await asyncio.gather(*[self._ask(each) for each in one.questions]))
        return one.turn

    async def _ask(self, question: Question) -> Turn:
        player = self.players[question.player]
        if isinstance(player, AsyncPolicy):
            return await player.act_async(question.request)
        return (await asyncio.to_thread(player.act, [question.request]))[0]

    async def aclose(self) -> None:
        """Release the connections of the players inside."""
        for player in self.players:
            if (close := getattr(player, "aclose", None)) is not None:
                await close()


class Decision:
    """One decision on its way: its open questions, and its turn as soon as there is one.

    ``asked`` has the questions that were answered, each with its answer, in their order.
    """

    def __init__(self, deciding: Deciding) -> None:
        self._deciding = deciding
        self.asked: list[tuple[Question, Turn]] = []
        self._seconds = 0.0
        self.turn: Turn | None = None
        self.questions = next(deciding)

    def answer(self, turns: Sequence[Turn]) -> None:
        """Go on with the answers; an error of a provider ends the decision."""
        self.asked += zip(self.questions, turns, strict=True)
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
        answers = [answer for _, answer in self.asked]
        usage, discarded = (total_usage(one.usage for one in answers), total_usage(one.discarded for one in answers))
        if not usage.cached and any(one.usage.cached for one in answers):  # known in part: what was paid stands apart
            usage, discarded = usage._replace(cached=True), total_usage(one.paid for one in answers)
        uncounted = any(one.uncounted for one in answers)
        self.turn = replace(turn, usage=usage, discarded=discarded, uncounted=uncounted, seconds=self._seconds)


def check_reads_below(player: Policy) -> None:
    """Refuse a player whose prompts end before what a wrapper writes below the observation.

    Raises:
        ValueError: its prompts show observations up to some text alone.
    """
    prompt_map = getattr(player, "prompt_map", None)
    if prompt_map is not None and prompt_map.texts.cut_at:
        raise ValueError(
            f"{player.name} reads observations up to {prompt_map.texts.cut_at!r} alone, so it wouldn't see what is "
            "written below them: give it other prompts, such as --prompts brief"
        )


MOST_ASKED = 10_000
"""Questions or episodes for one decision, at most: more is a slip that would take days."""


def check_count(option: str, number: int) -> None:
    """Raise a ValueError for an option that says how often something is done for each decision, out of range."""
    if not 1 <= number <= MOST_ASKED:
        raise ValueError(f"{option} is a whole number from 1 to {MOST_ASKED:,}, got {number!r}")


def proposals_of(request: TurnRequest, count: int) -> list[TurnRequest]:
    """The request with other seeds; the first is the request itself: one proposal is the player's own answer."""
    return [request, *(replace(request, seed=(*request.seed, at)) for at in range(1, count))]


def action_named(request: TurnRequest, response: str) -> str | None:
    """The action that a response names; where none are listed, whatever stands in its action tag."""
    found = _read(request, response)
    return None if isinstance(found, Unreadable) else found


def _read(request: TurnRequest, response: str) -> str | Unreadable:
    if request.legal_actions:
        return parse_action(response, ActionNames(request.legal_actions))
    found = action_content(response)
    return found if isinstance(found, Unreadable) else found[0].strip().casefold()
