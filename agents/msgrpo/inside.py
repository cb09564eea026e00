"""Training a model inside a player around it: ``around = "advised(tiny, learner)"``, for an advisor or a router.

The update sees the learner's own turns in each decision, and whether it answered in the form that *it* was asked for.
So a router's answer is invalid that names neither player, and an advisor may write any words. ``cost`` charges the
second player's answers to the learner. If a decision asks the learner several times, one after another, each of its
turns is a step: the game pays the last, and a method of credit finds all of them in one state. Several answers at once
are refused: a return would praise those that weren't played.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from agents.episode import Episode, EpisodeTask, Step
from agents.load import check_agent, load_agent
from agents.loop.live import Policies
from agents.loop.rollout import rollout
from agents.models.provider import call_with
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.engines.engine import Engine, each_policy
from agents.msgrpo.errors import ConfigError, refused
from agents.msgrpo.trajectories import LEARNER, Game, game_name, tsmg_of
from agents.policy import LanguageAgentPolicy, as_requests
from agents.turn import Policy, Turn, TurnRequest, check_game
from agents.wrappers import Around, Decision, action_named, innermost, with_innermost, wrapped_in, wrapper

SECOND = 1
"""The place of the player whose answers ``cost`` is paid for."""


class Own(NamedTuple):
    """One answer of the learner within a decision."""

    turn: Turn
    named: str  #: the answer among those that it was asked for; empty for words, and if it is none of them
    unreadable: str | None  #: why it isn't an answer
    bought: int  #: how often the second player was asked after it (and, for the first one, before it)


@dataclass(slots=True, unsafe_hash=True)
class TurnAround(Turn):
    """The answer of the player around, and what is learnt from it: the learner's ``own`` turns."""

    own: tuple[Own, ...] = ()


class PlayedAround:
    """A player around the model, whose turns also hold what the model answered. It is asked for whole batches."""

    def __init__(self, config: MSGRPOConfig, around: Around, learner: Policy) -> None:
        self._config, self._around, self._place = config, around, around.players.index(learner)
        self.name = around.name

    @property
    def history_turns(self) -> int | None:
        return self._around.history_turns

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [self._turn(one) for one in self._around.decisions(as_requests(requests))]

    def _turn(self, decision: Decision) -> Turn:
        turn = decision.turn
        assert turn is not None, "decisions are whole"
        if turn.error is not None:
            return turn
        own, bought = list[Own](), 0
        for together in decision.asked:
            mine = [one for one in together if one[0].player == self._place]
            if len(mine) > 1:
                raise self._refused(f"{len(mine)} times at once")
            for question, answer in mine:
                unreadable = question.why_unanswered(answer.response)
                named = None if question.words else action_named(question.request, answer.response)
                own.append(Own(answer, named or "", unreadable, 0))
            bought += sum(question.player == SECOND for question, _ in together)
            if own:
                own[-1], bought = own[-1]._replace(bought=own[-1].bought + bought), 0
        if not own:
            raise self._refused("0 times")
        return TurnAround(**{each.name: getattr(turn, each.name) for each in fields(Turn)}, own=tuple(own))

    def _refused(self, often: str) -> ConfigError:
        return ConfigError(
            f"around = {self._config.around!r} asks the learner {often} for one decision, and an answer is learnt from "
            "if what follows depends on it; accepted: a player that asks it at least once, for one answer at a time"
        )


class Inside:
    """Plays episodes with the model inside the player that a config names."""

    def __init__(self, config: MSGRPOConfig, engine: Engine, games: Sequence[Game]) -> None:
        check_around(config)
        if engine.plays_elsewhere:
            raise ConfigError(
                f"around = {config.around!r} with the engine {engine.name!r}, which plays whole episodes in other "
                "places; accepted: engine = 'live' or 'vllm'"
            )
        self._config, self._engine = config, engine
        wrapped = wrapped_in(config.around)
        assert wrapped is not None, "checked above"
        self._make: Callable[..., Around] = wrapper(wrapped.name)
        options = config.around_options
        with refused(f"around = {config.around!r}", ValueError, TypeError, OSError):
            self._others = [None if one == LEARNER else load_agent(one, **options) for one in wrapped.inside]
        stand_in = self._around(load_agent("random"))
        for game in (*games, *config.eval_scenarios):
            with refused(f"around = {config.around!r} can't play {game_name(game)}"):
                check_game(stand_in, tsmg_of(game))

    def rollout(
        self,
        policies: Policies,
        tasks: Sequence[EpisodeTask],
        *,
        max_concurrency: int,
        on_step: Callable[[EpisodeTask, Step], None] | None = None,
    ) -> Iterator[Episode]:
        """Play as :func:`agents.loop.rollout.rollout` does, with the player around in the place of the model.

        Steps have the learner's turns, one each, and rewards: the format penalty is for its own answers, so the game
        charges none.
        """
        penalties = {task.seed: task.kwargs.get("format_penalty", 0.0) for task in tasks}
        free = [replace(task, kwargs={**task.kwargs, "format_penalty": 0.0}) for task in tasks]
        played = each_policy(policies, self._played)
        has_second = len(self._others) > SECOND and self._others[SECOND] is not None
        for episode in rollout(played, free, max_concurrency=max_concurrency, on_step=on_step):
            steps, returns = list[Step](), dict(episode.returns)
            for step in episode.steps:
                own = step.turn.own if isinstance(step.turn, TurnAround) else ()
                for number, (turn, named, unreadable, bought) in enumerate(own, 1):
                    charged = self._config.cost * bought + penalties[episode.seed] * (unreadable is not None)
                    returns[step.player] -= charged
                    last = number == len(own)
                    steps.append(
                        replace(
                            step,
                            turn=turn,
                            action=step.action if last else named,
                            valid=unreadable is None,
                            unreadable=unreadable,
                            reward=step.reward * last - charged,
                            bought=bought if has_second else None,
                        )
                    )
                if not own:
                    steps.append(step)
            yield replace(episode, steps=tuple(steps), returns=returns)

    def _played(self, policy: Policy) -> Policy:
        is_model = isinstance(policy, LanguageAgentPolicy) and policy.model is self._engine
        return PlayedAround(self._config, self._around(policy), policy) if is_model else policy

    def _around(self, learner: Policy) -> Around:
        players = [learner if other is None else other for other in self._others]
        with refused(f"around = {self._config.around!r}", ValueError, TypeError):
            around: Around = call_with(self._make, self._config.around_options, *players)
        return around


def check_around(config: MSGRPOConfig) -> None:
    """Refuse an unknown player around, or a wrong option of it, as far as is known without loading anything."""
    if not config.around:
        return
    wrapped = wrapped_in(config.around)
    if wrapped is None or LEARNER not in wrapped.inside or innermost(config.around).count(LEARNER) != 1:
        raise ConfigError(
            f"around = {config.around!r} is no player around the model; accepted: a wrapper (docs/research/improve.md) "
            f"with {LEARNER} once directly inside, such as advised(tiny, {LEARNER})"
        )
    if config.cost and (len(wrapped.inside) <= SECOND or wrapped.inside[SECOND] == LEARNER):
        raise ConfigError(
            f"cost = {config.cost:g} is paid for the answers of the second player inside, and around = "
            f"{config.around!r} has none but the learner; accepted: router(AGENT, AGENT, {LEARNER}), or cost = 0"
        )
    with refused(f"around = {config.around!r}", ValueError, TypeError):
        spec = with_innermost(config.around, lambda one: "random" if one == LEARNER else one)
        check_agent(spec, **config.around_options)
