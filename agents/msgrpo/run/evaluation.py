"""Scoring the model during training: the fixed episodes of scenarios, played as the benchmark plays them."""

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from agents.episode import Episode, EpisodeTask
from agents.load import load_agent
from agents.msgrpo.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.trajectories import Game
from agents.regret import ExactRegret, Position, half_interval, random_positions
from agents.turn import Policy
from textgames import SCENARIOS, TRAINING_SEEDS, Scenario, game_of


class EvaluationResult(NamedTuple):
    """One scenario's scores; ``low`` and ``high`` are the 95% interval of the mean return (normal, over episodes).

    Attributes:
        seats: ``{player: mean return of the model in that seat}``; ``None`` in games for one.
        opponent: who had the other seats; empty where the model had all.
        regret: the model's exact mean regret per decision, where it is measured, with its 95% interval.
        regret_low: of that interval.
        regret_high: of that interval.
        random_regret: the regret of random legal play at the same positions.
        positions: how many positions these are.
    """

    scenario: str
    episodes: int
    mean_return: float
    low: float
    high: float
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

    @property
    def score(self) -> float:
        """What says which of two evaluations is better: less regret where it is measured, else a larger return."""
        return self.mean_return if self.regret is None else -self.regret

    def with_regret(self, regret: ExactRegret) -> "EvaluationResult":
        return self._replace(
            regret=regret.mean,
            regret_low=regret.low,
            regret_high=regret.high,
            random_regret=regret.uniform,
            positions=regret.positions,
        )


def evaluation_tasks(game: Game, episodes: int) -> list[EpisodeTask]:
    """Episode ``k`` has seed ``first_seed + k``; no format penalty. A bare environment starts where training ends."""
    scenario = SCENARIOS.get(game) if isinstance(game, str) else game
    first = TRAINING_SEEDS.stop if scenario is None else scenario.first_seed
    return [EpisodeTask.of(scenario or game, first + k, format_penalty=0.0) for k in range(episodes)]


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
    return EvaluationResult(
        scenario=name,
        episodes=len(episodes),
        mean_return=float(returns.mean()),
        low=float(returns.mean() - half),
        high=float(returns.mean() + half),
        success=float(np.mean([episode.successes[player] for episode, player in parts])),
        invalid_rate=float(np.mean([not step.valid for step in steps])),
        length=len(steps) / len(returns),
        layouts_seen_in_training=sum(layout_of(episode) in seen for episode in episodes),
        seats={player: float(np.mean(values)) for player, values in by_seat.items()} if len(by_seat) > 1 else None,
        opponent=opponent,
    )


def layout_of(episode: Episode) -> str:
    """A short digest of what the players of an episode saw first: equal layouts have equal ones."""
    first = "\n".join(step.observation for step in episode.steps if step.index == episode.steps[0].index)
    return blake2b(first.encode(), digest_size=8).hexdigest()


def game_name(game: Game) -> str:
    """The name under which metrics and evaluations speak of a game."""
    return game.name if isinstance(game, Scenario) else game


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
            getattr(opponent, "check_game", lambda game: None)(game_of(task.env_id, **task.kwargs))
    except (ValueError, OSError) as error:
        raise ConfigError(f"eval_opponent = {config.eval_opponent!r} can't be used: {error}") from error
    return opponent


def positions_of(config: MSGRPOConfig, games: Sequence[Game], sharded: bool) -> dict[str, list[Position]]:
    """``{name: positions}`` of the games on which regret is to be measured.

    Raises:
        ConfigError: it can't be measured: no exact yardstick, answers that aren't direct, or a model in pieces.
    """
    count = config.eval_regret_episodes
    if not count:
        return {}
    if config.response_mode != "direct" or sharded:
        raise ConfigError(
            f"eval_regret_episodes = {count}: regret is measured from exact action probabilities, which takes "
            f"response_mode = 'direct' and a model that isn't sharded; got {config.response_mode!r}"
            f"{' and a sharded model' if sharded else ''}"
        )
    try:
        return {game_name(game): random_positions(evaluation_tasks(game, count)) for game in games}
    except ValueError as error:
        raise ConfigError(f"eval_regret_episodes = {count}: {error}") from None
