"""Players that choose among answers of another: ``search(AGENT)`` and ``webpilot(AGENT)``."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from agents import (
    Around,
    Deciding,
    Policy,
    Question,
    SearchPlayer,
    SearchPlayers,
    Turn,
    TurnRequest,
    action_named,
    lists_actions,
    search_player_of,
)
from research.improve.around.questions import (
    Asking,
    below,
    check_count,
    check_readable,
    check_reads_below,
    proposals_of,
    said,
)
from research.improve.around.tree import check_searchable, searched, world_of
from research.improve.programs.players import RulesPlayer
from textgames import TSMG, did_you_mean, rounds_of_play

CERTAIN = 0.999
"""The most that is believed of a stated probability, and less than 1 - this: its log-odds are finite."""

ODDS_ASKED = (
    "If the player's next action is: {action}\nhow likely is it, from 0 to 100 percent, that the player does as well "
    "as can be in the end? Answer with the number."
)


def learned_value(folder: str | Path | None) -> tuple[SearchPlayer, str]:
    """Return a search player of a folder's step value, and the value's digest; a ValueError if it can't be read."""
    if folder is None:
        raise ValueError("rank_by = 'value' needs what textbench improve value leaves: --set NAME.value=DIR/value")
    try:
        from research.improve.values import ValuePlayer, digest_of, read_value
    except ModuleNotFoundError as error:
        raise ValueError(f"a step value needs {error.name}: pip install -e '.[train]'") from None
    value = read_value(folder)
    return ValuePlayer(value), digest_of(value)


def judged(request: TurnRequest, action: str, player: int) -> Question:
    """Return the question to a judge, at place ``player``, for an action's probability of success."""
    asked = below(
        request,
        ODDS_ASKED.format(action=action),
        legal_actions=(),
        action_help="a number from 0 to 100",
        sample_action=None,
        seed=(*request.seed, 3),  # its draws are apart from the agent's
    )
    return Question(asked, player, words=True)


def probability_in(turn: Turn) -> float:
    """Return the probability that an answer states, between 0.001 and 0.999; a half if it states none."""
    said = re.search(r"<action>(.*?)</action>", turn.response, re.DOTALL)
    found = re.search(r"-?\d+(?:\.\d+)?", said[1] if said else turn.response)
    if found is None or not 0 <= float(found[0]) <= 100:
        return 0.5
    return min(CERTAIN, max(1 - CERTAIN, float(found[0]) / 100))


def improved(proposed: Sequence[str], different: Sequence[str], told: Sequence[Turn]) -> dict[str, float]:
    """Return ``log pi(a) + log(p / (1 - p))`` of the different actions, of each of which a judge told ``p``.

    ``pi(a)`` is its share of the proposals.
    """
    votes, values = Counter(proposed), dict[str, float]()
    for action, turn in zip(different, told, strict=True):
        p = probability_in(turn)
        values[action] = log(votes[action] / len(proposed)) + log(p / (1 - p))
    return values


Rank = Callable[[TurnRequest, Sequence[str]], Mapping[str, float]]
"""``request, the action that each proposal names -> {action: value}``"""

RANKS = ("votes", "rollouts", "tree", "exact", "value", "judge")


class SearchPolicy(Around):
    """Plays the best of several proposals, which are sampled from one player.

    They are ranked (``rank_by``, one of :data:`RANKS` or a function; the first of equals is played) by:

    * ``votes``: how many of them name the action (self-consistency, Wang et al. 2022, arXiv 2203.11171);
    * ``rollouts``: the mean return of so many episodes of uniformly random play after it: flat Monte-Carlo search;
    * ``tree``: its visits in so many ``simulations`` of a tree search (:mod:`research.improve.around.tree`), at most
      ``depth`` rounds ahead, by the game's rules, or by those of a second player: ``search(AGENT, rules:FILE)``, or
      ``search(AGENT, WORLD)`` with a player that predicts what will be shown next;
    * ``exact``: the true value, the most that any value can give;
    * ``value``: a learned ``value``, a folder that ``textbench improve value`` leaves (Zhai et al., arXiv 2409.09345);
    * ``judge``: the votes times the odds of success that a second player states: ``search(AGENT, JUDGE)`` (Dong et al.
      2025, arXiv 2506.06376, whose odds are a language model's log-odds of success: ``pi(a) exp(Q(a))``).

    Raises:
        ValueError: an option that is out of range, or a second player that wouldn't read what it is asked.
    """

    def __init__(
        self,
        inner: Policy,
        second: Policy | None = None,
        *,
        proposals: int = 8,
        rank_by: str | Rank = "votes",
        rollouts: int = 32,
        simulations: int = 64,
        depth: int = 50,
        value: str | Path | None = None,
    ) -> None:
        counts = {"proposals": proposals, "rollouts": rollouts, "simulations": simulations, "depth": depth}
        for option, number in counts.items():
            check_count(option, number)
        if isinstance(rank_by, str) and rank_by not in RANKS:
            raise ValueError(f"rank_by is one of {', '.join(RANKS)}, got {rank_by!r}{did_you_mean(rank_by, RANKS)}")
        if second is not None and rank_by not in ("tree", "judge"):
            raise ValueError(
                f"rank_by = {rank_by!r} asks no second player: search(AGENT, WORLD) takes rank_by=tree, and "
                "search(AGENT, JUDGE) rank_by=judge"
            )
        if second is None and rank_by == "judge":
            raise ValueError("rank_by = 'judge' asks a second player: search(AGENT, JUDGE)")
        if value is not None and rank_by != "value":
            raise ValueError(f"value = {str(value)!r} decides nothing if rank_by = {rank_by!r}: add rank_by=value")
        if second is not None:
            check_reads_below(second)
        super().__init__("search", inner, *([] if second is None else [second]))
        self.proposals, self.rank_by, self.rollouts = proposals, rank_by, rollouts
        self.world, self.simulations, self.depth = second, simulations, depth
        self._searchers = SearchPlayers()
        self._learned = learned_value(value) if rank_by == "value" else None  # with its digest

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        proposals, asked_ahead = int(options["proposals"]), int(options["simulations"]) * int(options["depth"])
        return (proposals, *(proposals if options.get("rank_by") == "judge" else asked_ahead,) * (players - 1))

    @property
    def settings(self) -> dict[str, Any]:
        rank_by = self.rank_by if isinstance(self.rank_by, str) else getattr(self.rank_by, "__qualname__", "a function")
        of_rank: dict[str, dict[str, Any]] = {
            "rollouts": {"rollouts": self.rollouts},
            "tree": {"simulations": self.simulations, "depth": self.depth},
            "value": {"value": self._learned and self._learned[1]},
        }
        return {"proposals": self.proposals, "rank_by": rank_by} | of_rank.get(rank_by, {})

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose actions can't be ranked so."""
        super().check_game(game)
        if self.rank_by not in ("exact", "rollouts", "tree"):
            return
        name, instead = type(game).__name__, "rank proposals by votes"
        if not lists_actions(game):
            raise ValueError(f"{name} doesn't list its actions, whose values could be compared: {instead}")
        if self.rank_by == "exact" and not search_player_of(game).exact:
            raise ValueError(f"{name} has no exact values: {instead} or by rollouts")
        if self.rank_by == "tree":
            check_searchable(game, self.world)
        if self.rank_by == "rollouts" or (self.rank_by == "tree" and not isinstance(self.world, RulesPlayer)):
            try:
                check_readable(game)
            except ValueError as error:
                raise ValueError(f"{name} can't be played on from what it shows ({error}): {instead}") from None

    def proposing(self, request: TurnRequest) -> Asking[TurnRequest]:
        """Return the request that proposals are asked for with; a subclass may ask the players for more first."""
        yield from ()
        return request

    def decide(self, request: TurnRequest) -> Deciding:
        shown = yield from self.proposing(request)
        turns = yield [Question(one) for one in proposals_of(shown, self.proposals)]
        read = [(action, turn) for turn in turns if (action := action_named(request, turn.response)) is not None]
        if not read:
            return turns[0]
        proposed = [action for action, _ in read]
        values: Mapping[str, Any]
        if self.rank_by == "tree" and len(set(proposed)) > 1:
            searched_in = world_of(request, self._searchers, self.world)
            values = yield from searched(searched_in, request, Counter(proposed), self.simulations, self.depth)
        elif self.rank_by == "judge":
            different = list(dict.fromkeys(proposed))
            values = improved(proposed, different, (yield [judged(request, action, player=1) for action in different]))
        else:
            values = self._values(request, proposed)
        return max(read, key=lambda one: values[one[0]])[1]

    def _values(self, request: TurnRequest, proposed: Sequence[str]) -> Mapping[str, float]:
        if callable(self.rank_by):
            return self.rank_by(request, proposed)
        if self.rank_by == "votes":
            return {action: proposed.count(action) for action in proposed}
        different = list(dict.fromkeys(proposed))
        if len(different) == 1:
            return {different[0]: 0.0}  # there is nothing to choose
        if self._learned is not None:
            return self._learned[0].values_with(request, different)
        game = request.game
        if game is None:
            raise ValueError(f"{self.name} ranks by {self.rank_by}, which takes the game: ask it with a TurnRequest")
        searcher = self._searchers.of(request)
        if self.rank_by == "exact":
            return searcher.values(request)
        state = searcher.state(request)

        def random_return(action: str, at: int) -> float:
            """Return what the player gets that takes an action, if all play at random after it."""
            first, rng = [action], np.random.default_rng([*request.seed, at])

            def choose(here: Any, player: str) -> str:
                return first.pop() if first and player == request.player else game.sample_action(here, player, rng)

            played = rounds_of_play(game, state, request.steps_left, rng, choose)
            return sum(one.rewards.get(request.player, 0.0) for one in played)

        # the same draws follow every action, so that these are compared in pairs
        numbers = range(self.rollouts)
        return {action: sum(random_return(action, at) for at in numbers) / self.rollouts for action in different}


PLAN = "Before the first move, write a plan for the whole episode in a few words."
PLANNED = "Your plan: {told}"
REFLECT = (
    "You answered: {response}\nThen you saw:\n{after}\n"
    "Say in a few words how that went and what follows for the next move."
)
REFLECTED = "Your reflection on the last step: {told}"

MOST_PLANS = 10_000
"""Plans that are kept, one an episode; all are forgotten above that, and asked for again."""


class WebPilotPolicy(SearchPolicy):
    """A search whose proposals are made below the agent's own plan and its reflection on the last step.

    Our reading of WebPilot (arXiv 2408.15978), whose global optimisation plans and reflects, and whose local one is a
    tree search: the plan is asked for once an episode, below its first observation, and the reflection before every
    later decision, below the last observation, with the answer and what came of it. Both are told to the proposals,
    which are the priors of the tree.

    Raises:
        ValueError: an option that is out of range, or a player that wouldn't read what stands below an observation.
    """

    def __init__(
        self,
        inner: Policy,
        world: Policy | None = None,
        *,
        proposals: int = 8,
        simulations: int = 64,
        depth: int = 50,
        plan: bool = True,
        reflect: bool = True,
    ) -> None:
        check_reads_below(inner)
        super().__init__(inner, world, proposals=proposals, rank_by="tree", simulations=simulations, depth=depth)
        self.name = self.name.replace("search", "webpilot", 1)
        self.plan, self.reflect = plan, reflect
        self._plans: dict[tuple[tuple[int, ...], str, str], str] = {}

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        own, *others = super().asks(players, options)
        return (own + bool(options["plan"]) + bool(options["reflect"]), *others)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "plan": self.plan, "reflect": self.reflect}

    @property
    def history_turns(self) -> int | None:
        """All of them: the first observation names the episode, and the last step is reflected on."""
        return None

    def proposing(self, request: TurnRequest) -> Asking[TurnRequest]:
        """Return the request with the plan and the reflection below its observation, after asking for them."""
        told = list[str]()
        if self.plan:
            first = request.history[0][0] if request.history else request.observation
            key = (request.seed[:1], request.player, first)
            if key not in self._plans:
                plan = yield from self._told(request, f"{first}\n\n{PLAN}", (*request.seed[:1], 3))
                if len(self._plans) >= MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = plan
            told.append(PLANNED.format(told=self._plans[key]))
        if self.reflect and request.history:
            observation, response = request.history[-1]
            question = REFLECT.format(response=response, after=request.observation)
            words = yield from self._told(request, "\n\n".join([observation, *told, question]), (*request.seed, 4))
            told.append(REFLECTED.format(told=words))
        return below(request, *told)

    @staticmethod
    def _told(request: TurnRequest, observation: str, seed: tuple[int, ...]) -> Asking[str]:
        asked = replace(request, observation=observation, history=(), history_steps_left=(), seed=seed)
        (turn,) = yield [Question(asked, words=True)]
        return said(turn)
