"""``search(AGENT)``: several proposals of another player for every decision, of which the best by a value is played.

``request -> n proposals -> value of each -> one of them``. The proposals are sampled from the player inside, so it has
to answer differently when asked again; one proposal is what it would have answered. What proposals are ranked by:

* ``votes``: how many of them name the action (self-consistency, Wang et al. 2022, arXiv 2203.11171);
* ``rollouts``: the mean return of uniformly random play after it, by the game's true rules: flat Monte-Carlo search;
* ``exact``: the true value, which is the most that any value can give (Zhai et al. 2024, arXiv 2409.09345, learn one).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agents.baselines.search import SearchPlayers, search_player_of
from agents.policy import lists_actions
from agents.turn import Policy, Turn, TurnRequest, request_in
from agents.wrappers.around import Around, Deciding, Question, action_named, check_count, proposals_of
from textgames.names import did_you_mean
from textgames.rounds import rounds_of_play
from textgames.tsmg import TSMG

Rank = Callable[[TurnRequest, Sequence[str]], Mapping[str, float]]
"""``request, the action that each proposal names -> {action: value}``"""

RANKS = ("votes", "rollouts", "exact")


class SearchPolicy(Around):
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
            check_count(option, number)
        if isinstance(rank_by, str) and rank_by not in RANKS:
            raise ValueError(f"rank_by is one of {', '.join(RANKS)}, got {rank_by!r}{did_you_mean(rank_by, RANKS)}")
        super().__init__("search", inner)
        self.proposals, self.rank_by, self.rollouts = proposals, rank_by, rollouts
        self._searchers = SearchPlayers()

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        """The player inside is asked for every proposal."""
        return (int(options["proposals"]),)

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

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask for all proposals, and play the best of them."""
        turns = yield [Question(one) for one in proposals_of(request, self.proposals)]
        return self._chosen(request, turns)

    def _chosen(self, request: TurnRequest, turns: Sequence[Turn]) -> Turn:
        """The proposal of the largest value; the first of all where none can be read."""
        read = [(action, turn) for turn in turns if (action := action_named(request, turn.response)) is not None]
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
        searcher = self._searchers.of(request)
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
