"""What methods need of trajectories beyond what every rollout tells; nothing is computed that no method needs."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from agents.msgrpo.credit.batch import Trajectory
from agents.msgrpo.critic.critic import Critic
from agents.msgrpo.learner.update import Learner
from agents.msgrpo.segments import Segmenter


def completed(
    trajectories: Sequence[Trajectory],
    needs: Collection[str],
    learner: Learner,
    critic: Critic | None = None,
    segmenter: Segmenter | None = None,
) -> list[Trajectory]:
    """The trajectories with the old log-probabilities and entropies that ``needs`` names, values and segments.

    One pass of the learner without a gradient tells the first two. Log-probabilities that the sampler told are kept.
    Values are those of ``critic``, and segments those of ``segmenter``, where there is one.
    """
    if segmenter is not None:
        trajectories = [replace(each, segments=tuple(map(segmenter, each.response_ids))) for each in trajectories]
    if critic is not None:
        trajectories = critic.complete(trajectories)
    missing = "old_logprobs" in needs and any(each.old_logprobs is None for each in trajectories)
    if not missing and "entropies" not in needs:
        return list(trajectories)
    rows = [row for each in trajectories for row in each.rows]
    scores = iter(learner.logprobs_and_entropies(rows))
    result = []
    for each in trajectories:
        told = list(islice(scores, len(each)))
        old = each.old_logprobs or tuple(logprobs.numpy() for logprobs, _ in told)
        entropies = np.array([float(entropies.mean()) for _, entropies in told])
        result.append(replace(each, old_logprobs=old, entropies=entropies))
    return result
