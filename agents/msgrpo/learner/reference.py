"""The reference model, which the KL term and some surrogates hold the policy to.

It is the model as it was at the start, or follows the policy as a moving average (TRL's ``ref_model_mixup_alpha``).
In self-play such a reference is a magnet: with it regularised play comes to an equilibrium in the last iterate and not
only on average (magnetic mirror descent, Sokota et al. 2023, arXiv 2206.05825).
"""

import copy
from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import begins_as_base, copy_of_trained
from agents.msgrpo.learner.scoring.packing import MicroBatch
from agents.msgrpo.learner.scoring.scorer import TokenScorer, score_with


def make_reference(
    scorer: TokenScorer, processes: Processes, config: MSGRPOConfig, needs: Collection[str]
) -> "Reference | None":
    """The reference of a training; ``None`` where neither the KL term nor the surrogate, by its needs, wants it.

    Raises:
        ConfigError: it is to move and nothing is held to it, or no process has all weights.
    """
    if config.kl_coefficient or "reference" in needs:
        return Reference(scorer, processes, config.reference_mixup)
    if config.reference_mixup:
        raise ConfigError(
            f"reference_mixup = {config.reference_mixup:g} moves a reference that nothing is held to: set "
            "kl_coefficient above 0 as well"
        )
    return None


class Reference:
    """Make it before the first update and before a checkpoint is loaded.

    With a fresh adapter it is the same model with the adapter switched off, as long as it stays what it is. Otherwise
    it is a frozen copy of what is trained, which shares the rest. Sharding takes the rest apart, so there the copy is
    whole.

    Args:
        scorer: of the model that is trained.
        processes: those that share the work.
        mixup: the share that it moves towards the policy after every update; 0 leaves it as it is.

    Raises:
        ConfigError: it is to move where no process has all weights.
    """

    def __init__(self, scorer: TokenScorer, processes: Processes, mixup: float = 0.0) -> None:
        if mixup and processes.sharded:
            raise ConfigError(
                f"reference_mixup = {mixup:g} with sharded weights: accepted where every process has all of them (DDP)"
            )
        self._scorer, self._processes, self._mixup = scorer, processes, mixup
        switch_off = getattr(scorer.model, "disable_adapter", None)
        self._switch_off = None if mixup or switch_off is None or not begins_as_base(scorer.model) else switch_off
        if self._switch_off is None:
            own = copy.deepcopy(scorer) if processes.sharded else copy_of_trained(scorer)
            self._frozen = own.requires_grad_(False).eval()

    def score(self, batch: MicroBatch) -> Tensor:
        """Log-probabilities of a micro-batch's response tokens, shape (tokens,)."""
        if self._switch_off is None:
            return self._frozen.score(batch)[0]
        with self._switch_off():
            return score_with(self._scorer, self._processes.forward, batch)[0]

    @torch.no_grad()
    def follow(self) -> None:
        """Move towards the policy, weight by weight."""
        if self._mixup:
            policy = dict(self._scorer.named_parameters())
            for name, own in self._moving().items():
                own.lerp_(policy[name], self._mixup)

    def state_dict(self) -> dict[str, Tensor]:
        """The weights that have moved, by name; empty where it stays what it was."""
        return self._moving() if self._mixup else {}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor] | None) -> None:
        """Take up what :meth:`state_dict` told; nothing, in checkpoints from before references moved.

        Raises:
            ConfigError: it has moved, and isn't to any more. Where it has got to would be lost at the next resume.
        """
        if state and not self._mixup:
            raise ConfigError(
                "reference_mixup = 0, but the checkpoint's reference was moved by a reference_mixup above 0: accepted "
                "is above 0, or a new run from the checkpoint's model"
            )
        own = self._moving() if state else {}
        for name, weights in (state or {}).items():
            own[name].copy_(weights)

    def _moving(self) -> dict[str, Tensor]:
        trained = {name for name, each in self._scorer.named_parameters() if each.requires_grad}
        return {name: each for name, each in self._frozen.named_parameters() if name in trained}
