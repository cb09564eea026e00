"""How good the model is by now: the fixed episodes of scenarios, played as the benchmark plays them.

A figure lies between two ends (:func:`scale_of`): the best play that doesn't read, and the best play that is known. A
success of 27% on the lake looks like a beginning, and half right, half down gets it without reading a word.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from agents.analysis.action_probabilities import NOT_SUMMED
from agents.analysis.exploitability import measure
from agents.analysis.inspection import DirectAnswers, exact_regret, random_positions
from agents.baselines.search import find_search_player
from agents.common.intervals import half_interval, is_rounding
from agents.episode import Episode, EpisodeTask, invalid_rate
from agents.load import load_agent
from agents.loop.live import LiveEpisode, Policies, environment_of
from agents.loop.rollout import rollout
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch
from agents.msgrpo.errors import ConfigError, refused
from agents.msgrpo.rewards import Reward, per_episode
from agents.msgrpo.rollouts import layout_of
from agents.msgrpo.trajectories import (
    LEARNER,
    Game,
    game_name,
    game_task,
    learners,
    opponents_in,
    trajectory_of,
    tsmg_of,
    with_settings,
)
from agents.policy import LanguageAgentPolicy
from agents.protocol import STANDARD
from agents.turn import Policy, TurnRequest
from textgames import TRAINING_SEEDS, known_scenario
from textgames.solving.blind import blind_play_of

# ---------------------------------------------------------------- the scale

PLAYED = 20
"""Episodes of the planner, if no optimum is known."""

NAMES = {"optimal": "optimum", "clairvoyant": "clairvoyant bound", "reference": "reference (planner)"}
"""The names of the upper end, by its kind."""


def scale_of(tasks: Sequence[EpisodeTask]) -> dict[str, Any]:
    """Return the ends of the scale of one game's episodes, as far as they are known, as fields of a result."""
    env = environment_of(tasks[0])
    if len(env.possible_agents) > 1:
        return {}
    try:
        blind = blind_play_of(env.game, env.rules.max_steps)
    except (ValueError, NotImplementedError):  # actions that can't be listed
        blind = None
    ends: dict[str, Any] = {} if blind is None else {"blind": blind.value, "blind_policy": blind.text}
    player = find_search_player(env.game)
    if player is None:
        return ends
    if player.kind == "reference":
        played = rollout(load_agent("planner"), tasks[:PLAYED])
        value = np.mean([sum(episode.returns.values()) for episode in played])
    else:
        requests = list[TurnRequest]()
        for task in tasks:
            episode = LiveEpisode(task, load_agent("random"))
            requests += episode.requests().values()
            episode.finish()
        value = np.mean([max(player.values(request).values()) for request in requests])
    return ends | {"reference": float(value), "reference_kind": player.kind}


# ---------------------------------------------------------------- scores and yardsticks


class EvaluationResult(NamedTuple):
    """One scenario's scores.

    Attributes:
        low: of the normal 95% interval of the mean return, up to ``high``; ``None`` if all returns are equal.
        seats: ``{player: mean return of the model in that seat}``; ``None`` in games for one.
        opponent: the player in the other seats; empty if the model had all.
        regret: the model's exact mean regret per decision with its 95% interval; that of random legal play at the same
            positions is ``random_regret``.
        exploitability: what a best response gains against the model, on average over the seats; exact.
        blind: the mean return of the best player that doesn't read, ``blind_policy``, in games for one.
        reference: the mean return of the best play that is known, of a kind of :data:`NAMES`.
        reward: what the reward rule of training pays an episode on average; no part of any score.
    """

    scenario: str
    episodes: int
    mean_return: float
    low: float | None
    high: float | None
    success: float
    invalid_rate: float
    length: float
    layouts_seen_in_training: int
    seats: dict[str, float] | None = None
    opponent: str = ""
    regret: float | None = None
    regret_low: float | None = None
    regret_high: float | None = None
    random_regret: float | None = None
    positions: int = 0
    exploitability: float | None = None
    blind: float | None = None
    blind_policy: str = ""
    reference: float | None = None
    reference_kind: str = ""
    reward: float | None = None

    @property
    def score(self) -> float:
        """The figure that two evaluations are compared by: the return, unless an exact yardstick is measured."""
        if self.exploitability is not None:
            return -self.exploitability
        return self.mean_return if self.regret is None else -self.regret


def score_of(results: Sequence[EvaluationResult]) -> float:
    """Return the figure that evaluations of one moment are compared by: the mean over the scenarios."""
    return float(np.mean([result.score for result in results]))


def evaluation_tasks(game: Game, episodes: int, protocol: str = STANDARD["protocol"]) -> list[EpisodeTask]:
    """Return tasks with the seeds ``first_seed + k`` and no format penalty."""
    scenario = known_scenario(game) if isinstance(game, str) else game
    first = TRAINING_SEEDS.stop if scenario is None else scenario.first_seed
    return [game_task(scenario or game, first + k, format_penalty=0.0, protocol=protocol) for k in range(episodes)]


def evaluate(name: str, episodes: Sequence[Episode], seen: frozenset[str] | set[str] = frozenset()) -> EvaluationResult:
    """Score the model's parts of complete episodes, and count those whose :func:`layout_of` is among ``seen``."""
    parts = [(episode, player) for episode in episodes for player in learners(episode)]
    by_seat: dict[str, list[float]] = {}
    for episode, player in parts:
        by_seat.setdefault(player, []).append(episode.returns[player])
    returns = np.array([episode.returns[player] for episode, player in parts])
    steps = [step for episode, player in parts for step in episode.steps_of(player)]
    half = half_interval(returns.tolist(), [episode.seed for episode, _ in parts])
    varies = isfinite(half) and not is_rounding(half, float(returns.mean()))
    return EvaluationResult(
        scenario=name,
        episodes=len(episodes),
        mean_return=float(returns.mean()),
        low=float(returns.mean() - half) if varies else None,
        high=float(returns.mean() + half) if varies else None,
        success=float(np.mean([episode.successes[player] for episode, player in parts])),
        invalid_rate=invalid_rate(steps),
        length=len(steps) / len(returns),
        layouts_seen_in_training=sum(layout_of(episode) in seen for episode in episodes),
        seats={player: float(np.mean(values)) for player, values in by_seat.items()} if len(by_seat) > 1 else None,
        opponent=", ".join(opponents_in(name for episode in episodes for name in episode.team)),
    )


def without_success(games: Sequence[Game]) -> frozenset[str]:
    """Return the names of those games that know no success, so that 0% of their episodes have one."""
    return frozenset(game_name(game) for game in games if not tsmg_of(game).success_means)


def check_yardsticks(config: MSGRPOConfig, games: Sequence[Game], sharded: bool) -> None:
    """Refuse to measure what can't be measured, before anything is trained."""
    for wanted in ("eval_regret_episodes", "eval_exploitability"):
        if not getattr(config, wanted):
            continue
        if config.legal_only:
            raise ConfigError(f"{wanted} is measured from exact action probabilities; with legal_only {NOT_SUMMED}")
        if config.response_mode != "direct" or sharded:
            raise ConfigError(
                f"{wanted} is measured from exact action probabilities, which takes response_mode = 'direct' and a "
                f"model that isn't sharded; got {config.response_mode!r}{' and a sharded model' if sharded else ''}"
            )
    for game in games if config.eval_exploitability else ():
        with refused("eval_exploitability = true"):
            _exploitability(load_agent("random"), game)


def _exploitability(policy: Policy, game: Game) -> float:
    env = environment_of(EpisodeTask.of(game, 0))
    return measure(policy, env.game, horizon=env.rules.max_steps).value


# ---------------------------------------------------------------- evaluations of a run


class Evaluator:
    """Plays the fixed evaluation episodes of every evaluation scenario.

    ``model`` is the one that is trained, for what is computed from its exact probabilities; ``rule`` pays its rewards.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        games: Sequence[Game],
        play: Callable[[Policies, Sequence[EpisodeTask]], list[Episode]],
        policy: LanguageAgentPolicy,
        model: nn.Module,
        tokenizer: Any,
        *,
        rule: Reward,
        sharded: bool,
    ) -> None:
        self.games = [with_settings(one, config.eval_game) for one in config.eval_scenarios or games]
        self.config, self.policy, self.play, self._rule = config, policy, play, rule
        self._model, self._tokenizer = model, tokenizer
        check_yardsticks(config, self.games, sharded)
        count = config.eval_regret_episodes
        wanted = self.games if count else ()
        with refused(f"eval_regret_episodes = {count}"):
            self._positions = {game_name(game): random_positions(evaluation_tasks(game, count)) for game in wanted}
        self._scales: dict[str, dict[str, Any]] = {}

    def evaluate(self, seen_layouts: set[str]) -> list[EvaluationResult]:
        return [self._evaluate(game, seen_layouts) for game in self.games]

    def _evaluate(self, game: Game, seen_layouts: set[str]) -> EvaluationResult:
        name = game_name(game)
        tasks = evaluation_tasks(game, self.config.eval_episodes, self.config.eval_protocol)
        if name not in self._scales:
            self._scales[name] = scale_of(tasks)
        episodes, players, other = list[Episode](), tsmg_of(game).players, self.config.eval_opponent
        if other and len(players) > 1 and not tasks[0].team:
            for seat in players:
                team = tuple(LEARNER if player == seat else other for player in players)
                episodes += self.play(self.policy, [replace(task, team=team) for task in tasks])
        else:
            episodes += self.play(self.policy, tasks)
        result = evaluate(name, episodes, seen_layouts)
        result = result._replace(**self._scales[name], reward=self._reward(episodes, tasks))
        positions = self._positions.get(name, ())
        if not positions and not self.config.eval_exploitability:
            return result
        # the engine may be anywhere, and exact probabilities take the weights that are here
        reader, own = TransformersModel(self._model, self._tokenizer), self.policy
        answers = DirectAnswers(LanguageAgentPolicy(reader, own.prompt_map, own.decoding, legal_only=own.legal_only))
        if positions:
            regret = exact_regret(answers, positions)
            result = result._replace(
                regret=regret.mean, regret_low=regret.low, regret_high=regret.high,
                random_regret=regret.uniform, positions=regret.positions,
            )  # fmt: skip
        if self.config.eval_exploitability:
            result = result._replace(exploitability=_exploitability(answers, game))
        return result

    def _reward(self, episodes: Sequence[Episode], tasks: Sequence[EpisodeTask]) -> float | None:
        """Return what the rule of training pays an episode, if there is one that can be asked about this game."""
        if not self._rule.evaluates:
            return None
        try:
            self._rule.check(tasks[0])
        except ConfigError:  # only evaluations have this game
            return None
        played = zip(episodes, cycle(tasks), strict=False)
        parts = [
            trajectory_of(each, task, one) for each, task in played for one in learners(each) if each.steps_of(one)
        ]
        return per_episode(self._rule.pay(Batch([replace(each, group=number) for number, each in enumerate(parts)])))
