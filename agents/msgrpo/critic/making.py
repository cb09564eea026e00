"""What a run's methods need beside the policy, if anything: a critic, or a reward model."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from agents.episode import EpisodeTask
from agents.loop.live import EnvironmentPool, LiveEpisode
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Heads
from agents.msgrpo.critic import DEFAULT_HEADS
from agents.msgrpo.critic.beside import Beside, Lesson
from agents.msgrpo.critic.critic import Critic
from agents.msgrpo.critic.reward_model import RewardModel
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer
from agents.policy import LanguageAgentPolicy

PromptValues = Callable[[Sequence[EpisodeTask]], Floats]
"""``tasks -> (n,)`` values of their first prompts."""


def heads_of(method: Any) -> Heads:
    """The heads that a method of credit or a task sampler wants; none where it needs no values.

    Raises:
        ConfigError: it wants none although it needs values, or one that is neither "step" nor "token".
    """
    if "values" not in method.needs:
        return {}
    heads: Heads = getattr(method, "heads", DEFAULT_HEADS)
    if not heads or not set(heads.values()) <= {"step", "token"}:
        raise ConfigError(
            f"{type(method).__name__}.heads = {dict(heads)!r} can't be used; accepted: a name for each value, with "
            "'step' (read at the prompt's last token) or 'token' (read before each response token)"
        )
    return heads


def make_beside(
    methods: Methods,
    scorer: TokenScorer,
    config: MSGRPOConfig,
    processes: Processes,
    packing: str,
    autocast: torch.dtype | None,
) -> Beside | None:
    """The critic for the heads of the method of credit and of the task sampler, or the method's reward model.

    Raises:
        ConfigError: both have a head of the same name, which would be taught two things; a reward model and values are
            needed; or see :class:`Critic`.
    """
    credit, sampler = heads_of(methods.credit), heads_of(methods.sampler)
    if "reward_model" in methods.credit.needs:
        if credit or sampler:
            raise ConfigError(
                f"credit = {config.credit!r} learns a reward model, and task_sampling = {config.task_sampling!r} or "
                "its base method needs a critic: accepted is one model beside the policy"
            )
        rate: float = getattr(methods.credit, "rate", 1.0)
        return RewardModel(scorer, config, processes, packing=packing, rate=rate)
    if same := credit.keys() & sampler.keys():
        raise ConfigError(
            f"credit = {config.credit!r} and task_sampling = {config.task_sampling!r} both have a value named "
            f"{', '.join(map(repr, sorted(same)))}: rename one of them in its class's heads"
        )
    if not credit and not sampler:
        return None
    return Critic(scorer.model, {**credit, **sampler}, config, processes, packing=packing, autocast=autocast)


def lessons(methods: Methods, played: Batch, batch: Batch, credit: Credit) -> list[Lesson]:
    """What the critic or the reward model is to learn from an iteration.

    The method of credit teaches on the trajectories that it was given, whether they are drawn for the policy's update
    or not; a sampler that needs values teaches on all that were played, with ``value_targets(batch)``.
    """
    if "reward_model" in methods.credit.needs:
        return [(batch.trajectories, credit.preferences)]
    taught: list[Lesson] = [(batch.trajectories, credit.value_targets)]
    if "values" in methods.sampler.needs:
        taught.append((played.trajectories, methods.sampler.value_targets(played)))  # type: ignore[attr-defined]
    return taught


def first_prompt_values(
    critic: Beside | None, methods: Methods, policy: LanguageAgentPolicy, model: nn.Module, tokenizer: Any
) -> PromptValues | None:
    """Values of the first prompts of episodes that weren't played yet, by the sampler's first head.

    ``None`` for a sampler that needs no values. Of several players that begin together, the first one's prompt is read.
    """
    heads = heads_of(methods.sampler)
    if not isinstance(critic, Critic) or not heads:
        return None
    pool, reader = EnvironmentPool(), TransformersModel(model, tokenizer)

    def values(tasks: Sequence[EpisodeTask]) -> Floats:
        prompts = []
        for task in tasks:
            requests = LiveEpisode(task, policy, pool).requests()
            prompts.append(policy.prompt_map(next(iter(requests.values()))))
        return critic.prompt_values(reader.encode(prompts), next(iter(heads)))

    return values
