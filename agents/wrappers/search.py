"""``search(AGENT)``: several proposals of another player for every decision, of which the best by a value is played.

``request -> n proposals -> value of each -> one of them``. The proposals are sampled from the player inside, so it has
to answer differently when asked again; one proposal is what it would have answered. What proposals are ranked by:

* ``votes``: how many of them name the action (self-consistency, Wang et al. 2022, arXiv 2203.11171);
* ``rollouts``: the mean return of uniformly random play after it, by the game's true rules: flat Monte-Carlo search;
* ``exact``: the true value, which is the most that any value can give (Zhai et al. 2024, arXiv 2409.09345, learn one).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agents.baselines.search import PlannerPlayer, search_player_of
from agents.policy import as_request, as_requests, lists_actions
from agents.turn import AsyncPolicy, Policy, Turn, TurnRequest, Usage, request_in
from agents.wrappers.around import PlayerAround, named_action
from textgames.names import did_you_mean
from textgames.rounds import rounds_of_play
from textgames.tsmg import TSMG

Rank = Callable[[TurnRequest, Sequence[str]], Mapping[str, float]]
"""``request, the action that each proposal names -> {action: value}``"""

RANKS = ("votes", "rollouts", "exact")


class SearchPolicy(PlayerAround):
    """Plays the best of several proposals of another player.

    Args:
        inner: the player that proposes.
        proposals: how many it is asked for at each decision.
        rank_by: what they are ranked by, one of :data:`RANKS`, or a function; of equals the first is played.
        rollouts: episodes of random play after each action, where proposals are ranked by them.

    Raises:
        ValueError: an option that is out of range.
    """

    def __init__(self, inner: Policy, *, proposals: int = 8, rank_by: str | Rank = "votes", rollouts: int = 32) -> None:
        for option, number in (("proposals", proposals), ("rollouts", rollouts)):
            if number < 1:
                raise ValueError(f"{option} is a whole number of at least 1, got {number!r}")
        if isinstance(rank_by, str) and rank_by not in RANKS:
            raise ValueError(f"rank_by is one of {', '.join(RANKS)}, got {rank_by!r}{did_you_mean(rank_by, RANKS)}")
        super().__init__(inner)
        self.proposals, self.rank_by, self.rollouts = proposals, rank_by, rollouts
        self.name = f"search({inner.name})"
        self._planner = PlannerPlayer()  # keeps the search player of every game

    @property
    def settings(self) -> dict[str, Any]:
        rank_by = self.rank_by if isinstance(self.rank_by, str) else getattr(self.rank_by, "__qualname__", "a function")
        return {"proposals": self.proposals, "rank_by": rank_by} | (
            {"rollouts": self.rollouts} if rank_by == "rollouts" else {}
        )

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose actions can't be ranked so."""
        super().check_game(game)
        if self.rank_by not in ("exact", "rollouts"):
            return
        name, instead = type(game).__name__, "rank proposals by votes"
        if not lists_actions(game):
            raise ValueError(f"{name} doesn't list its actions, whose values could be compared: {instead}")
        searcher = search_player_of(game)
        if self.rank_by == "exact" and not searcher.exact:
            raise ValueError(f"{name} has no exact values: {instead} or by rollouts")
        if self.rank_by == "rollouts":
            start = game.initial_state(np.random.default_rng(0))
            try:
                searcher.state(request_in(game, start, game.to_move(start)[0]))
            except ValueError as error:
                raise ValueError(f"{name} can't be played on from what it shows ({error}): {instead}") from None

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        """Answer every request with the best of its proposals; the player inside sees all of them as one batch."""
        asked = as_requests(requests)
        turns = self.inner.act([one for request in asked for one in self._questions(request)])
        n = self.proposals
        return [self._best(request, turns[at * n : (at + 1) * n]) for at, request in enumerate(asked)]

    async def act_async(self, request: TurnRequest | str) -> Turn:
        """The best of a request's proposals, for which a server is asked at the same time."""
        asked = as_request(request)
        if not isinstance(self.inner, AsyncPolicy):
            return (await asyncio.to_thread(self.act, [asked]))[0]
        turns = await asyncio.gather(*map(self.inner.act_async, self._questions(asked)))
        return self._best(asked, turns)

    def _questions(self, request: TurnRequest) -> list[TurnRequest]:
        """The first is the request itself, so that a single proposal is what the player inside would have played."""
        return [request, *(replace(request, seed=(*request.seed, at)) for at in range(1, self.proposals))]

    def _best(self, request: TurnRequest, turns: Sequence[Turn]) -> Turn:
        failed = [turn for turn in turns if turn.error is not None]
        chosen = failed[0] if failed else self._chosen(request, turns)
        return replace(chosen, usage=_sum(turns), seconds=max(turn.seconds for turn in turns))

    def _chosen(self, request: TurnRequest, turns: Sequence[Turn]) -> Turn:
        """The proposal of the largest value; the first of all where none can be read."""
        read = [(action, turn) for turn in turns if (action := named_action(request, turn.response)) is not None]
        if not read:
            return turns[0]
        values = self._values(request, [action for action, _ in read])
        return max(read, key=lambda one: values[one[0]])[1]

    def _values(self, request: TurnRequest, proposed: Sequence[str]) -> Mapping[str, float]:
        if callable(self.rank_by):
            return self.rank_by(request, proposed)
        if self.rank_by == "votes":
            return {action: proposed.count(action) for action in proposed}
        different = list(dict.fromkeys(proposed))
        if len(different) == 1:
            return {different[0]: 0.0}  # there is nothing to choose
        game = request.game
        if game is None:
            raise ValueError(f"{self.name} ranks by {self.rank_by}, which takes the game: ask it with a TurnRequest")
        searcher = self._planner.searcher(request)
        if self.rank_by == "exact":
            return searcher.values(request)
        state = searcher.state(request)
        # the same draws follow every action, so that these are compared in pairs
        return {
            action: sum(
                _random_return(game, state, request, action, np.random.default_rng([*request.seed, at]))
                for at in range(self.rollouts)
            )
            / self.rollouts
            for action in different
        }


def _random_return(game: TSMG[Any], state: Any, request: TurnRequest, action: str, rng: np.random.Generator) -> float:
    """What the player gets who takes an action where everybody plays at random after it."""
    first = [action]

    def choose(here: Any, player: str) -> str:
        return first.pop() if first and player == request.player else game.sample_action(here, player, rng)

    played = rounds_of_play(game, state, request.steps_left, rng, choose)
    return sum(one.rewards.get(request.player, 0.0) for one in played)


def _sum(turns: Sequence[Turn]) -> Usage:
    """All tokens that were read and written for one decision."""
    usages = [turn.usage for turn in turns]
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in usages),
        completion_tokens=sum(one.completion_tokens for one in usages),
        cached=all(one.cached for one in usages),
        reasoning_tokens=sum(one.reasoning_tokens for one in usages),
        cached_prompt_tokens=sum(one.cached_prompt_tokens for one in usages),
    )
