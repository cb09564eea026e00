"""Who plays a run's evaluations: the model as it is, against itself or an opponent, with the engine of the rollouts."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from agents.episode import Episode, EpisodeTask
from agents.loop.live import Policies
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.run.evaluating.evaluation import (
    EvaluationResult,
    check_yardsticks,
    evaluate,
    evaluation_tasks,
    game_name,
    opponent_of,
    players_of,
    positions_of,
    with_yardsticks,
)
from agents.msgrpo.run.evaluating.scale import EvaluationScale, scale_of
from agents.msgrpo.trajectories import Game
from agents.policy import LanguageAgentPolicy

Evaluate = Callable[[LanguageAgentPolicy, Game, int], Sequence[Episode]]
"""An evaluation from outside: policy, game, number of episodes -> complete episodes."""


class Evaluator:
    """Plays the fixed evaluation episodes of every evaluation scenario.

    Args:
        config: which scenarios, how many episodes, which opponent and yardsticks.
        games: that the run trains on, and that are evaluated where the config names no others.
        play: ``policies, tasks -> episodes`` in the tasks' order.
        policy: the model as it plays in evaluations.
        model: the one that is trained, for what is computed from its exact probabilities.
        tokenizer: its tokenizer.
        sharded: whether the model's weights are in parts in several processes.
        outside: plays the episodes in place of ``play``.

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
        self._scales: dict[str, EvaluationScale] = {}

    def evaluate(self, seen_layouts: set[str]) -> list[EvaluationResult]:
        """One result for each scenario; ``seen_layouts`` are those that were trained on."""
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
        result = result._replace(**self._scales[name]._asdict())
        # the engine may be anywhere; exact probabilities take the weights that are here
        reader = TransformersModel(self._model, self._tokenizer)
        legal_only = self.policy.legal_only
        policy = LanguageAgentPolicy(reader, self.policy.prompt_map, self.policy.decoding, legal_only=legal_only)
        return with_yardsticks(result, self.config, game, policy, self._positions.get(name, ()))
