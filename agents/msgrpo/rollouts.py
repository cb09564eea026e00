"""Playing for the update: an iteration's tasks, more of them where a sampler asks, and fresh rollouts from states.

What methods need of trajectories beyond what every rollout tells is added here; nothing is computed that none needs.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from torch import Tensor

from agents.episode import Episode, EpisodeStart, EpisodeTask
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Floats, Start, Trajectory
from agents.msgrpo.credit.fresh import refuse_history
from agents.msgrpo.critic.beside import Beside
from agents.msgrpo.errors import RolloutError
from agents.msgrpo.rows import TokenRow
from agents.msgrpo.segments import Segmenter
from agents.msgrpo.tasks import Hint
from agents.msgrpo.trajectories import Game, training_tasks, trajectories_of
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Prompt, TurnRequest

Play = Callable[[LanguageAgentPolicy, Sequence[EpisodeTask]], list[Episode]]
"""``policy, tasks -> complete episodes in the tasks' order``, shared by all processes."""

_FRESH = 0x5EED  # keeps the noise of fresh rollouts apart from that of the episodes themselves


@dataclass(frozen=True)
class HintedPromptMap(PromptMap):
    """A prompt map that tells a player what it wouldn't see otherwise, before the observation of each decision.

    Attributes:
        hint: ``request -> text``; empty where there is nothing to tell.
    """

    hint: Callable[[TurnRequest], str] = lambda request: ""

    def __call__(self, request: TurnRequest) -> Prompt:
        told = self.hint(request)
        return super().__call__(replace(request, observation=f"{told}\n\n{request.observation}") if told else request)


class Rollouts:
    """Everything that one iteration plays; see :class:`agents.msgrpo.tasks.Iteration`.

    Attributes:
        policy: the current policy.
        tokens: response tokens of fresh rollouts so far.
        played: all trajectories that were played so far, whatever a sampler makes of them; fresh rollouts aside.
    """

    def __init__(
        self,
        config: MSGRPOConfig,
        games: Sequence[Game],
        number: int,
        policy: LanguageAgentPolicy,
        play: Play,
        prompt_values: Callable[[Sequence[EpisodeTask]], Floats] | None = None,
    ) -> None:
        self.config, self.number, self.policy = config, number, policy
        self.tokens = 0
        self.played: list[Trajectory] = []
        self._games, self._play, self._prompt_values = games, play, prompt_values
        # every fresh episode of an iteration has a seed of its own, whatever method asks for it
        self._next_seed = int(np.random.SeedSequence((config.seed, number, _FRESH)).generate_state(1)[0])

    @property
    def rollouts(self) -> "Rollouts":
        return self

    def tasks(self, part: int = 0) -> list[EpisodeTask]:
        """The tasks of ``groups x group_size`` episodes on training layouts; another ``part`` gives others."""
        return training_tasks(self.config, self._games, self.number, part)

    def play(self, tasks: Sequence[EpisodeTask], hint: Hint | None = None) -> list[Trajectory]:
        """Play tasks with the current policy; ``hint`` adds to prompts what a player wouldn't see otherwise."""
        policy = self.policy
        if hint is not None:
            prompts = policy.prompt_map
            hinted = HintedPromptMap(prompts.mode, prompts.history_turns, prompts.texts, hint)
            policy = LanguageAgentPolicy(
                policy.model, hinted, policy.decoding, policy.name, legal_only=policy.legal_only
            )
        trajectories = trajectories_of(self._play(policy, tasks), tasks)
        if hint is not None:
            trajectories = [replace(each, hinted=True) for each in trajectories]
        self.played += trajectories
        return trajectories

    def prompt_values(self, tasks: Sequence[EpisodeTask]) -> Floats:
        """(n,) the critic's value of the first prompt of each task."""
        if self._prompt_values is None:
            raise RuntimeError('there is no critic: a method that asks for values says so with needs = {"values"}')
        return self._prompt_values(tasks)

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        """(S, count) undiscounted returns of each start's player from there on, in independent episodes.

        Raises:
            ConfigError: prompts that show earlier turns, which an episode that begins in a state doesn't have.
            RolloutError: a provider's error.
        """
        refuse_history(self.policy)
        tasks = []
        for start in starts:
            begin = EpisodeStart(start.state, start.elapsed_steps)
            for _ in range(count):
                task, seed = start.task, self._next_seed
                self._next_seed += 1
                tasks.append(EpisodeTask(task.scenario, task.env_id, seed, None, task.kwargs, (_FRESH,), begin))
        episodes = self._play(self.policy, tasks)
        if failed := next((episode.error for episode in episodes if episode.error is not None), None):
            raise RolloutError(f"a fresh rollout failed: {failed}")
        self.tokens += sum(len(step.turn.response_ids or ()) for episode in episodes for step in episode.steps)
        players = [start.player for start in starts for _ in range(count)]
        returns = [episode.returns[player] for episode, player in zip(episodes, players, strict=True)]
        return np.array(returns, dtype=np.float64).reshape(len(starts), count)


def completed(
    trajectories: Sequence[Trajectory],
    needs: Collection[str],
    scores_of: Callable[[Sequence[TokenRow]], Sequence[Sequence[Tensor]]],
    critic: Beside | None = None,
    segmenter: Segmenter | None = None,
) -> list[Trajectory]:
    """The trajectories with the old log-probabilities and entropies that ``needs`` names, values or what else a model
    beside the policy tells, and segments.

    ``scores_of`` tells the first two of every response token, in one pass without a gradient. Log-probabilities that
    the sampler told are kept. Values are those of ``critic``, and segments those of ``segmenter``, where there is one.
    """
    if segmenter is not None:
        trajectories = [replace(each, segments=tuple(map(segmenter, each.response_ids))) for each in trajectories]
    if critic is not None:
        trajectories = critic.complete(trajectories)
    missing = "old_logprobs" in needs and any(each.old_logprobs is None for each in trajectories)
    if not missing and "entropies" not in needs:
        return list(trajectories)
    rows = [row for each in trajectories for row in each.rows]
    scores = iter(scores_of(rows))
    result = []
    for each in trajectories:
        told = list(islice(scores, len(each)))
        old = each.old_logprobs or tuple(logprobs.numpy() for logprobs, _ in told)
        entropies = np.array([float(entropies.mean()) for _, entropies in told])
        result.append(replace(each, old_logprobs=old, entropies=entropies))
    return result
