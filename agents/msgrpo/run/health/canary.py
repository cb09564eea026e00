"""The canary: after every update, one fixed prompt's answer is scored by the engine and by the learner and compared.

A version is a label; this is the proof. It finds weights that arrived in part or not at all, log-probabilities of
another distribution than the one sampled from, and models that differ (another tokenizer, type or rotary scaling).
"""

from collections.abc import Sequence

import torch

from agents.models.base import Decoding
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.engines.engine import Engine, answers_of
from agents.msgrpo.errors import RolloutError
from agents.msgrpo.learner.prepare import product_dtype
from agents.msgrpo.learner.update import Learner
from agents.msgrpo.rows import TokenRow
from agents.turn import Message, Turn

PROMPT = (
    Message("user", "The weights are compared by what they make of this sentence, which no game contains: 1 2 3"),
)
"""No game's prompt: a trained model is sure of its answers there, whatever its last update was."""
TOKENS = 16
SEED = (0xCA7A,)
FLOAT32_TOLERANCE, HALF_TOLERANCE = 1e-3, 0.1
"""Nats per token, on average over an answer, where both compute in float32 and where one doesn't."""


class Canary:
    """Compares the engine's weights with the learner's; call it after every update, in all processes.

    Attributes:
        difference: mean absolute difference per token in the latest comparison, of the worst answer; in nats.
    """

    def __init__(self, engine: Engine, learner: Learner, config: MSGRPOConfig) -> None:
        self.engine, self.learner = engine, learner
        exact = product_dtype(config) == "float32" and config.param_dtype == "float32"
        self.tolerance = config.engine_tolerance or (FLOAT32_TOLERANCE if exact else HALF_TOLERANCE)
        self._decoding = Decoding(temperature=config.temperature, max_tokens=TOKENS, stop=())
        self._tied = bool(getattr(learner.scorer.causal_lm.config, "tie_word_embeddings", False))
        self.difference = 0.0

    def __call__(self) -> None:
        """Have the fixed prompt answered by every engine, score the answers with the learner, and compare.

        Raises:
            RolloutError: they differ by more than the tolerance, or there was no answer.
        """
        processes = self.learner.processes
        asks = processes.rank == 0 or not getattr(self.engine, "shared", False)
        mine = answers_of(self.engine, PROMPT, self._decoding, SEED) if asks else []
        answers = [answer for part in processes.gather(mine) for answer in part]
        for number, answer in enumerate(answers, 1):
            if answer.error is not None:
                raise RolloutError(f"answer {number} of {self.engine.name} to the fixed prompt failed: {answer.error}")
            if not answer.prompt_ids or not answer.response_ids:
                raise RolloutError(f"{self.engine.name} returned no token ids, which are what the learner trains on")
        told = [answer for answer in answers if answer.logprobs is not None]
        if told:
            self._compare(told, len(answers))

    def _compare(self, answers: Sequence[Turn], places: int) -> None:
        rows = [TokenRow(answer.prompt_ids or (), answer.response_ids or ()) for answer in answers]
        scores = self.learner.logprobs(rows)
        theirs = [torch.tensor(answer.logprobs, dtype=torch.float64) for answer in answers]
        differences = [(mine - its).abs().mean().item() for mine, its in zip(scores, theirs, strict=True)]
        self.difference = max(differences)
        if self.difference <= self.tolerance:
            return
        worst = differences.index(self.difference)
        where = f" (place {worst + 1} of {places})" if places > 1 else ""
        raise RolloutError(
            f"the engine {self.engine.name!r}{where} doesn't have the learner's weights: on one fixed prompt their "
            f"log-probabilities differ by {self.difference:.3g} nats per token, and {self.tolerance:g} is allowed "
            f"(engine_tolerance). {self._likely(rows[worst], theirs[worst])}"
        )

    def _likely(self, row: TokenRow, theirs: torch.Tensor) -> str:
        """What is likely wrong, from how the scores differ."""
        scorer = self.learner.scorer
        temperature = scorer.temperature
        try:
            scorer.temperature = 1.0
            (unscaled,) = self.learner.logprobs([row])
        finally:
            scorer.temperature = temperature
        if temperature != 1 and (unscaled - theirs).abs().mean().item() <= self.tolerance:
            return (
                "They agree at temperature 1: the engine tells log-probabilities before the temperature is applied; "
                "start vLLM's server with --logprobs-mode processed_logprobs"
            )
        if self._tied:
            return (
                "The model's output layer is tied to its embedding: vLLM on a CPU keeps a packed copy of it, which a "
                "reload of weights doesn't renew (docs/engines.md has what works)"
            )
        return (
            "Likely causes: an update that didn't arrive, another model or tokenizer behind the engine, or another "
            "type of numbers (dtype); docs/engines.md tells how to find out"
        )
