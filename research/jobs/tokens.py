"""What a training run costs in tokens, from the metrics of its iterations."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agents.msgrpo import MSGRPOConfig


class TokensTaken(NamedTuple):
    """How many tokens a model read and wrote in a run."""

    rollout: int  # prompts and responses of the episodes that it played to learn
    update: int  # of the rows of its updates, every pass over them counted

    @property
    def all(self) -> int:
        return self.rollout + self.update


def tokens_taken(history: Iterable[Mapping[str, Any]], config: MSGRPOConfig) -> TokensTaken:
    """Return the tokens of the iterations of a run, by its metrics as in ``metrics.jsonl``.

    Evaluations aren't counted, nor are fresh rollouts that a method of credit plays on its own account (``vine``).
    """
    played = [metrics for metrics in history if "prompt_tokens" in metrics]
    rollout = sum(metrics["prompt_tokens"] + metrics["response_tokens"] for metrics in played)
    update = config.update_passes * sum(metrics["update_tokens"] for metrics in played)
    return TokensTaken(int(rollout), int(update))
