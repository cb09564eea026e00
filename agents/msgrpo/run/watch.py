"""Dead runs are called dead: signs, in the metrics of its iterations, that a run doesn't learn any more.

Each sign has to stand for several iterations in a row, since a single one means little: batches are small, and a good
run has iterations without an advantage or with a large gradient. What counts as a sign is relative to the run itself
where a good run may begin anywhere (a base that answers validly one time in five may learn the form).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from agents.msgrpo.config import MSGRPOConfig
from agents.msgrpo.errors import DeadRunError
from agents.msgrpo.run.advice import another_start

NORMS_KEPT = 100
"""Iterations whose gradient norms say what is usual."""


class Watch:
    """Looks at every iteration's metrics in turn.

    Args:
        config: ``[stopping]`` and the number of iterations.
        history: metrics of the iterations done before.

    Attributes:
        rows: of each sign that the latest iterations show, how many of them in a row did.
    """

    def __init__(self, config: MSGRPOConfig, history: Iterable[Mapping[str, Any]] = ()) -> None:
        self.config = config
        half = max(5, config.iterations // 2)  # in a short run half of it, or it would end before a sign stands
        self._patience = min(config.stop_after, half)
        self._skips = min(config.stop_after_skipped, half)
        self.rows = {"skipped": 0, "invalid": 0, "entropy": 0, "gradient": 0}
        self._valid: list[float] = []  # of the iterations without the sign, at most as many as are patience
        self._best_valid = 0.0
        self._returns: list[float] = []
        self._norms: deque[float] = deque(maxlen=NORMS_KEPT)
        for metrics in history:
            self.see(metrics)
        self.rows = dict.fromkeys(self.rows, 0)  # who resumes a run that was stopped gives it the time to recover

    def answers_validly(self, invalid_rate: float) -> bool:
        """Whether this share of invalid responses is usual in this run."""
        return 1 - invalid_rate >= max(self.config.min_valid_share, self._best_valid / 2)

    @property
    def suspects(self) -> bool:
        """Whether the latest iteration shows a sign that its weights are worse than earlier ones."""
        return any(self.rows[sign] and self._spoils(sign) for sign in self.rows)

    def trusts(self, invalid_rate: float) -> bool:
        """Whether weights that have just played with this share of invalid responses are worth keeping."""
        return not self.suspects and (self.answers_validly(invalid_rate) or not self._spoils("invalid"))

    def see(self, metrics: Mapping[str, Any]) -> None:
        """Take an iteration's metrics into account."""
        learnt, entropy, norm = bool(metrics["optimizer_steps"]), metrics["entropy"], metrics["grad_norm"]
        self._returns.append(metrics["return"])
        # an update is also skipped where everything is won, which is the end of learning and not its failure
        self._count("skipped", bool(metrics["skipped"]) and metrics["success"] < 1)
        if self.config.min_valid_share:
            self._count("invalid", not self.answers_validly(metrics["invalid_rate"]))
        if learnt:  # else neither is known
            self._count("entropy", entropy < self.config.min_entropy and not self._gained())
            self._count("gradient", self._far_out(norm))
        if not self.rows["gradient"] and learnt:
            self._norms.append(norm)
        if not self.rows["invalid"]:
            self._valid = [*self._valid, 1 - metrics["invalid_rate"]][-max(1, self.config.stop_after) :]
            self._best_valid = max(self._best_valid, float(np.mean(self._valid)))

    def check(self) -> None:
        """Stop a dead run.

        Raises:
            DeadRunError: a sign has stood for long enough.
        """
        if not self.config.stop_after:
            return
        if self._skips and self.rows["skipped"] >= self._skips and not self.rows["invalid"]:
            raise self._dead("skipped")
        for sign in ("invalid", "entropy", "gradient"):
            if self.rows[sign] >= self._patience:
                raise self._dead(sign)

    def check_end(self, skipped: int) -> None:
        """Don't call a run done in which no update was ever made; ``skipped`` were.

        Raises:
            DeadRunError: all were skipped, and not because everything was won.
        """
        if self.config.stop_after and self.rows["skipped"] == skipped == len(self._returns) > 0:
            raise self._dead("skipped")

    def _spoils(self, sign: str) -> bool:
        """Whether weights that show this sign are worse than those before: not so where there were no better ones."""
        return bool(self._best_valid) if sign == "invalid" else sign != "skipped"

    def _count(self, sign: str, shown: bool) -> None:
        self.rows[sign] = self.rows[sign] + 1 if shown else 0

    def _gained(self) -> bool:
        """Whether the latest returns are above those that the run began with."""
        some = max(1, self.config.stop_after)
        return len(self._returns) > some and np.mean(self._returns[-some:]) > np.mean(self._returns[:some])

    def _far_out(self, norm: float) -> bool:
        rise = self.config.max_grad_norm_rise
        known = rise and len(self._norms) >= max(1, self.config.stop_after)
        return bool(known) and norm > rise * float(np.median(self._norms))

    def _dead(self, sign: str) -> DeadRunError:
        config, count = self.config, self.rows[sign]
        lower = f"Lower learning_rate (now {config.learning_rate:g})"
        told, advice = {
            "skipped": (
                f"all updates of the last {count} iterations were skipped, as the episodes of every group had equal "
                f"returns (the last mean is {self._returns[-1]:g}): there was nothing to learn from",
                f"Give it more to compare (group_size, now {config.group_size}; temperature, now "
                f"{config.temperature:g}), an easier scenario, or {another_start(config)}",
            ),
            "invalid": (
                f"for {count} iterations nearly all responses were invalid"
                + (f" (before, {self._best_valid:.1%} were valid)" if self._best_valid else ""),
                f"{lower} or raise format_penalty (now {config.format_penalty:g})"
                if self._best_valid
                else f"The model doesn't know the form of answers: {another_start(config)}",
            ),
            "entropy": (
                f"for {count} iterations the entropy was below min_entropy = {config.min_entropy:g} nats per token, "
                "with no more return than at the start: the model answers the same whatever happens",
                f"{lower} or raise entropy_coefficient (now {config.entropy_coefficient:g})",
            ),
            "gradient": (
                f"for {count} iterations the gradient norm was above max_grad_norm_rise = "
                f"{config.max_grad_norm_rise:g} times what is usual in this run",
                f"{lower} or max_grad_norm (now {config.max_grad_norm:g})",
            ),
        }[sign]
        return DeadRunError(
            f"iteration {len(self._returns)}: the run is dead: {told}. {advice}; stop_after = 0 trains on regardless",
            spoiled=self._spoils(sign),
        )
