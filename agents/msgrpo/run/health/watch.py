"""Dead runs are called dead: signs, in the metrics of its iterations, that a run doesn't learn any more.

Each sign has to stand for several iterations in a row, since a single one means little: batches are small, and a good
run has iterations without an advantage or with a large gradient. What counts as a sign is relative to the run itself
where a good run may begin anywhere (a base that answers validly one time in five may learn the form).
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import DeadRunError
from agents.msgrpo.run.health.advice import against_collapse, another_start

NORMS_KEPT = 100
"""Iterations whose gradient norms say what is usual."""

FIRST = 3
"""Iterations that say what a run began with, for format collapse, which may take no more than a dozen."""
FORM_GAINED, ENTROPY_LEFT, ONE_ANSWER = 0.2, 0.5, 0.9
"""What format collapse is: the valid share is so much higher than at first, the entropy at most this share of what it
was, and one action this share of all valid answers, while the game pays no more than at first."""


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
        self.rows = {"skipped": 0, "invalid": 0, "entropy": 0, "gradient": 0, "collapse": 0}
        self._valid: list[float] = []  # of the iterations without the sign, at most as many as are patience
        self._best_valid = 0.0
        self._returns: list[float] = []
        self._in_vain = 0  # iterations whose update was skipped though not everything was won
        self._paid: list[float] = []  # without the format penalty
        self._first: list[tuple[float, float]] = []  # valid share and entropy of the first iterations with an update
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
        self._paid.append(metrics.get("game_return", metrics["return"]))  # which runs of before don't tell
        # an update is also skipped where everything is won, which is the end of learning and not its failure
        in_vain = bool(metrics["skipped"]) and metrics["success"] < 1
        self._in_vain += in_vain
        self._count("skipped", in_vain)
        if self.config.min_valid_share:
            self._count("invalid", not self.answers_validly(metrics["invalid_rate"]))
        if learnt:  # else neither is known
            self._count("entropy", entropy < self.config.min_entropy and not self._gained(self._returns))
            self._count("gradient", self._far_out(norm))
            self._count("collapse", self._collapsed(metrics))
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
        for sign in ("collapse", "invalid", "entropy", "gradient"):
            if self.rows[sign] >= self._patience:
                raise self._dead(sign)

    def check_end(self) -> None:
        """Don't call a run done in which no update was ever made.

        Raises:
            DeadRunError: all were skipped, and not because everything was won.
        """
        if self.config.stop_after and self._in_vain == len(self._returns) > 0:
            self.rows["skipped"] = self._in_vain  # in a resumed run as well
            raise self._dead("skipped")

    def _spoils(self, sign: str) -> bool:
        """Whether weights that show this sign are worse than those before: not so where there were no better ones."""
        return bool(self._best_valid) if sign == "invalid" else sign not in ("skipped", "collapse")

    def _count(self, sign: str, shown: bool) -> None:
        self.rows[sign] = self.rows[sign] + 1 if shown else 0

    def _gained(self, returns: Sequence[float]) -> bool:
        """Whether the latest returns are above those that the run began with."""
        some = max(1, self.config.stop_after)
        return len(returns) > some and np.mean(returns[-some:]) > np.mean(returns[:some])

    def _collapsed(self, metrics: Mapping[str, Any]) -> bool:
        """Whether the form has been learnt and nothing else: one answer to everything, which the game doesn't pay."""
        valid, entropy = 1 - metrics["invalid_rate"], metrics["entropy"]
        if len(self._first) < FIRST:
            self._first.append((valid, entropy))
            return False
        first_valid, first_entropy = np.mean(self._first, axis=0)
        return bool(
            valid >= first_valid + FORM_GAINED
            and entropy <= ENTROPY_LEFT * first_entropy
            and metrics.get("most_frequent_action", 0.0) >= ONE_ANSWER
            and np.mean(self._paid[-FIRST:]) <= np.mean(self._paid[:FIRST])  # known sooner than by stop_after
        )

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
            "collapse": (
                f"format collapse: for {count} iterations one action has been nearly all of the valid answers, and the "
                "game pays no more than at the start. The format penalty was the only signal, so the form was learnt "
                "and the first answer that had it",
                f"What helps, from the base again: {against_collapse(config)}",
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
