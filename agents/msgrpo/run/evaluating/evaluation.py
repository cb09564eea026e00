"""Scoring the model during training: the fixed episodes of scenarios, played as the benchmark plays them."""

from collections.abc import Collection, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from agents.analysis.action_probabilities import NOT_SUMMED
from agents.analysis.exploitability import measure
from agents.analysis.regret import DirectAnswers, ExactRegret, Position, exact_regret, random_positions
from agents.common.intervals import half_interval, is_rounding
from agents.episode import Episode, EpisodeTask, invalid_rate
from agents.load import load_agent
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.episodes import layout_of
from agents.msgrpo.trajectories import Game
from agents.policy import LanguageAgentPolicy
from agents.protocol import STANDARD
from agents.turn import Policy, check_game
from textgames import TRAINING_SEEDS, Scenario, game_of, known_scenario, parallel_env


class EvaluationResult(NamedTuple):
    """One scenario's scores.

    Attributes:
        low: of the 95% interval of the mean return, which is normal, over episodes; ``None`` where all returns are
            equal, which says nothing of the next one.
        high: of that interval.
        seats: ``{player: mean return of the model in that seat}``; ``None`` in games for one.
        opponent: who had the other seats; empty where the model had all.
        regret: the model's exact mean regret per decision, where it is measured, with its 95% interval.
        regret_low: of that interval.
        regret_high: of that interval.
        random_regret: the regret of random legal play at the same positions.
        positions: how many positions these are.
        exploitability: what a best response gains against the model, on average over the seats, where it is measured;
            exact.
        blind: the mean return of the best player who doesn't read, in games for one; and what it does.
        blind_policy: of that player.
        reference: the mean return of the best play that is known of.
        reference_kind: of that play; :mod:`agents.msgrpo.run.evaluating.scale` has the kinds.
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

    def with_regret(self, regret: ExactRegret) -> "EvaluationResult":
        return self._replace(
            regret=regret.mean,
            regret_low=regret.low,
            regret_high=regret.high,
            random_regret=regret.uniform,
            positions=regret.positions,
        )


def score_of(results: Sequence[EvaluationResult]) -> float:
    """What evaluations of one moment are compared by: the mean over the scenarios."""
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
    """The name under which metrics and evaluations speak of a game."""
    return game.name if isinstance(game, Scenario) else game


def without_success(games: Sequence[Game]) -> frozenset[str]:
    """Return the names of those games that know no success, so that 0% of their episodes have one."""
    tasks = {game_name(game): EpisodeTask.of(game, 0) for game in games}
    return frozenset(name for name, task in tasks.items() if not game_of(task.env_id, **task.kwargs).success_means)


def players_of(game: Game) -> tuple[str, ...]:
    """The players of a game that is evaluated on."""
    task = EpisodeTask.of(game, 0)
    return game_of(task.env_id, **task.kwargs).players


def opponent_of(config: MSGRPOConfig, games: Sequence[Game]) -> Policy | None:
    """The player that the config names for the other seats.

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
    """``{name: positions}`` of the games on which regret is to be measured.

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
    """The result with what is measured exactly of ``policy``, whose model is in this process."""
    if positions:
        result = result.with_regret(exact_regret(DirectAnswers(policy), positions))
    if config.eval_exploitability:
        result = result._replace(exploitability=_exploitability(DirectAnswers(policy), game))
    return result


def _exploitability(policy: Policy, game: Game) -> float:
    task = EpisodeTask.of(game, 0)
    env = parallel_env(task.env_id, **task.kwargs)
    return measure(policy, env.game, horizon=env.rules.max_steps).value
