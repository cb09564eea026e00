"""How good the model is by now: the fixed episodes of scenarios, played as the benchmark plays them.

:class:`Evaluator` plays them during a run, with the engine of the rollouts. A figure lies between two ends
(:func:`scale_of`): the best play that doesn't read, and the best play that is known. A success of 27% on the lake looks
like a beginning, and is what half right, half down gets without reading a word.
"""

from collections.abc import Callable, Collection, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from agents.analysis.action_probabilities import NOT_SUMMED
from agents.analysis.exploitability import measure
from agents.analysis.regret import DirectAnswers, Position, exact_regret, random_positions
from agents.baselines.search import find_search_player
from agents.common.intervals import half_interval, is_rounding
from agents.episode import Episode, EpisodeTask, invalid_rate
from agents.load import load_agent
from agents.loop.live import LiveEpisode, Policies
from agents.loop.rollout import rollout
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.rollouts import layout_of
from agents.msgrpo.trajectories import Game
from agents.policy import LanguageAgentPolicy
from agents.protocol import STANDARD
from agents.turn import Policy, TurnRequest, check_game
from textgames import TRAINING_SEEDS, Scenario, game_of, known_scenario, parallel_env
from textgames.solving.blind import blind_play_of

# ---------------------------------------------------------------- the scale

PLAYED = 20
"""Episodes of the planner, if nobody knows the optimum: seconds, once a run."""

NAMES = {"optimal": "optimum", "clairvoyant": "clairvoyant bound", "reference": "reference (planner)"}
"""What the upper end is called, by its kind."""


def scale_of(tasks: Sequence[EpisodeTask]) -> dict[str, Any]:
    """Return the ends of the scale of one game's episodes, as fields of :class:`EvaluationResult`.

    They are mean returns of two players without a model; an end that isn't known, as in games of several players, is
    left out.
    """
    env = parallel_env(tasks[0].env_id, **tasks[0].kwargs)
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
        value = np.mean([max(player.values(request).values()) for request in _first_requests(tasks)])
    return ends | {"reference": float(value), "reference_kind": player.kind}


def _first_requests(tasks: Sequence[EpisodeTask]) -> list[TurnRequest]:
    """Return what the player is asked at the start of each episode."""
    nobody = load_agent("random")
    requests: list[TurnRequest] = []
    for task in tasks:
        episode = LiveEpisode(task, nobody)
        requests += episode.requests().values()
        episode.finish()
    return requests


# ---------------------------------------------------------------- scores and yardsticks


class EvaluationResult(NamedTuple):
    """One scenario's scores.

    Attributes:
        low: of the 95% interval of the mean return, which is normal, over episodes; ``None`` if all returns are
            equal, which says nothing of the next one.
        high: of that interval.
        seats: ``{player: mean return of the model in that seat}``; ``None`` in games for one.
        opponent: who had the other seats; empty if the model had all.
        regret: the model's exact mean regret per decision, if it is measured, with its 95% interval.
        regret_low: of that interval.
        regret_high: of that interval.
        random_regret: the regret of random legal play at the same positions.
        positions: how many positions these are.
        exploitability: what a best response gains against the model, on average over the seats, if it is measured;
            exact.
        blind: the mean return of the best player who doesn't read, in games for one; and what it does.
        blind_policy: of that player.
        reference: the mean return of the best play that is known of.
        reference_kind: of that play; :data:`NAMES` has the kinds.
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

    @property
    def score(self) -> float:
        """What says which of two evaluations is better: a larger return, unless an exact yardstick is measured."""
        if self.exploitability is not None:
            return -self.exploitability
        return self.mean_return if self.regret is None else -self.regret


def score_of(results: Sequence[EvaluationResult]) -> float:
    """Return what evaluations of one moment are compared by: the mean over the scenarios."""
    return float(np.mean([result.score for result in results]))


def evaluation_tasks(game: Game, episodes: int, protocol: str = STANDARD["protocol"]) -> list[EpisodeTask]:
    """Episode ``k`` has seed ``first_seed + k``; no format penalty. A bare environment starts where training ends."""
    scenario = known_scenario(game) if isinstance(game, str) else game
    first = TRAINING_SEEDS.stop if scenario is None else scenario.first_seed
    return [EpisodeTask.of(scenario or game, first + k, format_penalty=0.0, protocol=protocol) for k in range(episodes)]


def evaluate(
    name: str,
    episodes: Sequence[Episode],
    seen: frozenset[str] | set[str] = frozenset(),
    *,
    seats: Sequence[Collection[str]] | None = None,
    opponent: str = "",
) -> EvaluationResult:
    """Scores of complete episodes.

    Args:
        name: of the scenario.
        episodes: what was played.
        seen: episodes whose :func:`layout_of` is among these are counted.
        seats: of each episode, the players whose part is scored; all of them when not given.
        opponent: who had the other seats.
    """
    scored = [episode.returns for episode in episodes] if seats is None else seats
    parts = [(episode, player) for episode, players in zip(episodes, scored, strict=True) for player in players]
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
        opponent=opponent,
    )


def game_name(game: Game) -> str:
    """Return the name under which metrics and evaluations speak of a game."""
    return game.name if isinstance(game, Scenario) else game


def without_success(games: Sequence[Game]) -> frozenset[str]:
    """Return the names of those games that know no success, so that 0% of their episodes have one."""
    tasks = {game_name(game): EpisodeTask.of(game, 0) for game in games}
    return frozenset(name for name, task in tasks.items() if not game_of(task.env_id, **task.kwargs).success_means)


def players_of(game: Game) -> tuple[str, ...]:
    """Return the players of a game that is evaluated on."""
    task = EpisodeTask.of(game, 0)
    return game_of(task.env_id, **task.kwargs).players


def opponent_of(config: MSGRPOConfig, games: Sequence[Game]) -> Policy | None:
    """Return the player that the config names for the other seats.

    Raises:
        ConfigError: there is no such player, it can't play one of the games, or no game has another seat.
    """
    if not config.eval_opponent:
        return None
    several = [game for game in games if len(players_of(game)) > 1]
    if not several:
        raise ConfigError(f"eval_opponent = {config.eval_opponent!r}: no game that is evaluated on has another seat")
    try:
        opponent = load_agent(config.eval_opponent)
        for game in several:
            task = EpisodeTask.of(game, 0)
            check_game(opponent, game_of(task.env_id, **task.kwargs))
    except (ValueError, OSError) as error:
        raise ConfigError(f"eval_opponent = {config.eval_opponent!r} can't be used: {error}") from error
    return opponent


def check_yardsticks(config: MSGRPOConfig, games: Sequence[Game], sharded: bool) -> None:
    """Refuse to measure what can't be measured, before anything is trained.

    Raises:
        ConfigError: answers that aren't direct or are held to legal ones, a model in pieces, a game of another kind.
    """
    for wanted in ("eval_regret_episodes", "eval_exploitability"):
        if getattr(config, wanted) and config.legal_only:
            raise ConfigError(f"{wanted} is measured from exact action probabilities; with legal_only {NOT_SUMMED}")
        if getattr(config, wanted) and (config.response_mode != "direct" or sharded):
            raise ConfigError(
                f"{wanted} is measured from exact action probabilities, which takes response_mode = 'direct' and a "
                f"model that isn't sharded; got {config.response_mode!r}{' and a sharded model' if sharded else ''}"
            )
    if config.eval_exploitability:
        for game in games:
            try:
                _exploitability(load_agent("random"), game)
            except ValueError as error:
                raise ConfigError(f"eval_exploitability = true: {error}") from None


def positions_of(config: MSGRPOConfig, games: Sequence[Game]) -> dict[str, list[Position]]:
    """Return ``{name: positions}`` of the games on which regret is to be measured.

    Raises:
        ConfigError: a game without an exact yardstick.
    """
    count = config.eval_regret_episodes
    try:
        return {game_name(game): random_positions(evaluation_tasks(game, count)) for game in games if count}
    except ValueError as error:
        raise ConfigError(f"eval_regret_episodes = {count}: {error}") from None


def with_yardsticks(
    result: EvaluationResult,
    config: MSGRPOConfig,
    game: Game,
    policy: LanguageAgentPolicy,
    positions: Sequence[Position],
) -> EvaluationResult:
    """Return the result with what is measured exactly of ``policy``, whose model is in this process."""
    if positions:
        regret = exact_regret(DirectAnswers(policy), positions)
        result = result._replace(
            regret=regret.mean, regret_low=regret.low, regret_high=regret.high,
            random_regret=regret.uniform, positions=regret.positions,
        )  # fmt: skip
    if config.eval_exploitability:
        result = result._replace(exploitability=_exploitability(DirectAnswers(policy), game))
    return result


def _exploitability(policy: Policy, game: Game) -> float:
    task = EpisodeTask.of(game, 0)
    env = parallel_env(task.env_id, **task.kwargs)
    return measure(policy, env.game, horizon=env.rules.max_steps).value


# ---------------------------------------------------------------- evaluations of a run

Evaluate = Callable[[LanguageAgentPolicy, Game, int], Sequence[Episode]]
"""An evaluation from outside: policy, game, number of episodes -> complete episodes."""


class Evaluator:
    """Plays the fixed evaluation episodes of every evaluation scenario.

    ``play`` takes policies and tasks and returns episodes in the tasks' order; ``outside`` plays in its place.
    ``model`` is the one that is trained, for what is computed from its exact probabilities.

    Raises:
        ConfigError: an opponent or a yardstick that can't be used with these games.
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
        sharded: bool = False,
        outside: Evaluate | None = None,
    ) -> None:
        self.config, self.games, self.policy = config, config.eval_scenarios or games, policy
        self.play, self._outside = play, outside
        self._model, self._tokenizer = model, tokenizer
        self._opponent = opponent_of(config, self.games)
        check_yardsticks(config, self.games, sharded)
        self._positions = positions_of(config, self.games)
        self._scales: dict[str, dict[str, Any]] = {}

    def evaluate(self, seen_layouts: set[str]) -> list[EvaluationResult]:
        """Return one result for each scenario; ``seen_layouts`` are those that were trained on."""
        return [self._evaluate_on(game, seen_layouts) for game in self.games]

    def _evaluate_on(self, game: Game, seen_layouts: set[str]) -> EvaluationResult:
        name, count = game_name(game), self.config.eval_episodes
        tasks = evaluation_tasks(game, count, self.config.eval_protocol)
        if name not in self._scales:
            self._scales[name] = scale_of(tasks)
        if self._outside is not None:
            result = evaluate(name, list(self._outside(self.policy, game, count)), seen_layouts)
        elif self._opponent is not None and len(players := players_of(game)) > 1:
            episodes, seats = [], []
            for seat in players:
                policies = {player: self.policy if player == seat else self._opponent for player in players}
                episodes += self.play(policies, tasks)
                seats += [(seat,)] * count
            opponent = self.config.eval_opponent
            result = evaluate(name, episodes, seen_layouts, seats=seats, opponent=opponent)
        else:
            result = evaluate(name, self.play(self.policy, tasks), seen_layouts)
        result = result._replace(**self._scales[name])
        # the engine may be anywhere; exact probabilities take the weights that are here
        reader = TransformersModel(self._model, self._tokenizer)
        legal_only = self.policy.legal_only
        policy = LanguageAgentPolicy(reader, self.policy.prompt_map, self.policy.decoding, legal_only=legal_only)
        return with_yardsticks(result, self.config, game, policy, self._positions.get(name, ()))
