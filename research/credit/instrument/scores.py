"""Score gradients: the derivative of a response's log-probability by the weights of the model that gave it.

Every policy gradient is a weighted sum of them, one for each step of each episode. So they are computed once, and then
every method of credit, every draw rule and every number of episodes is a matrix product away.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from agents import Policy
from agents.analysis import has_local_model, plays_legal_only
from agents.msgrpo import TokenRow
from agents.msgrpo.learner import MicroBatch, TokenScorer, choose_ways, pack

SKETCH = 2**16
"""Numbers that a gradient is shortened to, if the model has more than :data:`SKETCH_ABOVE` parameters."""

SKETCH_ABOVE = 1_000_000

_CHUNK_BYTES = 2**28  # of per-row gradients that are held at once
_TREE_TOKENS, _MICRO_BATCH_TOKENS = 1024, 8192


class ScoreModel:
    """The model of a policy, for gradients of what it says; a ValueError says what a policy lacks for that.

    Attributes:
        parameters: ``{name: tensor}`` of all that gradients are taken by: an adapter's weights if there is one.
        size: how many numbers a gradient has; fewer than parameters if gradients are sketched.
        sketched: whether gradients are shortened by a count sketch (Charikar, Chen and Farach-Colton, 2002): every
            number is added, with a random sign, to one of :data:`SKETCH` places. Inner products keep their mean, and a
            cosine gets an error of about ``1 / sqrt(SKETCH)``, 0.004.
    """

    def __init__(self, policy: Policy) -> None:
        if (reason := why_no_gradient(policy)) is not None:
            raise ValueError(reason)
        local: Any = policy
        self.module: nn.Module = local.model.model
        self.temperature: float = local.decoding.temperature
        named = dict(self.module.named_parameters())
        adapter = {name: p for name, p in named.items() if "lora_" in name}
        self.parameters = adapter or named
        count = sum(p.numel() for p in self.parameters.values())
        self.sketched = count > SKETCH_ABOVE
        self.size = SKETCH if self.sketched else count
        self.device = next(self.module.parameters()).device
        self._scorer = TokenScorer(self.module, temperature=self.temperature, chunk=1024, autocast=None)
        with _evaluating(self.module, self.parameters):
            self._packing = choose_ways(self._scorer, "tree")

    def weighted(self, rows: Sequence[TokenRow], weights: Sequence[float | Tensor]) -> Tensor:
        """Return (size,) the gradient of ``sum_r sum_k w_rk log pi(token k of row r)``, a weight for a row or (K_r,)
        each."""
        total = torch.zeros(self.size, dtype=torch.float64)
        batches = self._packed(rows)
        with _evaluating(self.module, self.parameters):
            for batch in batches:
                numbers, (logprobs, _) = batch.rows.tolist(), self._scorer.score(batch)
                spread = [
                    torch.as_tensor(weights[i], dtype=logprobs.dtype).expand(len(rows[i].response)) for i in numbers
                ]
                objective = (logprobs * torch.cat(spread).to(self.device)).sum()
                total += self._flat(torch.autograd.grad(objective, list(self.parameters.values()))).double().cpu()
        return total

    def logprobs_and_entropies(self, rows: Sequence[TokenRow]) -> list[tuple[Tensor, Tensor]]:
        """Return for every row the log-probability and the entropy in nats of each response token, (K_r,) each."""
        found: dict[int, tuple[Tensor, Tensor]] = {}
        with torch.no_grad():
            for batch in self._packed(rows):
                numbers, (logprobs, entropies) = batch.rows.tolist(), self._scorer.score(batch)
                lengths = [len(rows[i].response) for i in numbers]
                parts = [torch.split(each.double().cpu(), lengths) for each in (logprobs, entropies)]
                found.update(zip(numbers, zip(*parts, strict=True), strict=True))
        return [found[number] for number in range(len(rows))]

    def _packed(self, rows: Sequence[TokenRow]) -> list[MicroBatch]:
        return pack(rows, packing=self._packing, micro_batch_tokens=_MICRO_BATCH_TOKENS, tree_tokens=_TREE_TOKENS)

    def chunks(self, rows: Sequence[TokenRow]) -> Iterator[tuple[list[int], Tensor]]:
        """Yield the gradients of rows' log-probabilities, like lengths together: the rows' numbers, and (c, size)."""
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].prompt) + len(rows[i].response))
        at_once = max(1, min(64, _CHUNK_BYTES // (4 * sum(p.numel() for p in self.parameters.values()))))
        for start in range(0, len(order), at_once):
            numbers = order[start : start + at_once]
            part = [rows[i] for i in numbers]
            with _evaluating(self.module, self.parameters):
                found = None
                with suppress(RuntimeError):  # of a model with operations that torch.func doesn't know
                    found = self._vectorised(part) if len(part) > 1 else None
                if found is None:
                    found = torch.stack([self.weighted([row], [1.0]).float() for row in part])
                yield numbers, found

    def _vectorised(self, rows: Sequence[TokenRow]) -> Tensor:
        longest = max(len(row.prompt) + len(row.response) for row in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long, device=self.device)
        scored = torch.zeros(
            len(rows), longest - 1, dtype=next(iter(self.parameters.values())).dtype, device=self.device
        )
        for index, row in enumerate(rows):  # padding on the right: causal attention never looks there
            ids[index, : len(row.prompt) + len(row.response)] = torch.tensor((*row.prompt, *row.response))
            scored[index, len(row.prompt) - 1 : len(row.prompt) + len(row.response) - 1] = 1

        everything = torch.ones(1, longest, dtype=torch.long, device=self.device)

        def logprob(parameters: dict[str, Tensor], ids: Tensor, scored: Tensor) -> Tensor:
            inputs = {"input_ids": ids[None], "attention_mask": everything, "use_cache": False}
            logits = torch.func.functional_call(self.module, parameters, (), inputs).logits[0, :-1]
            logprobs = (logits / self.temperature).log_softmax(-1).gather(-1, ids[1:, None])[:, 0]
            total: Tensor = (logprobs * scored).sum()
            return total

        values = {name: p.detach() for name, p in self.parameters.items()}
        with sdpa_kernel(SDPBackend.MATH):  # the others can't be batched
            found = torch.func.vmap(torch.func.grad(logprob), in_dims=(None, 0, 0))(values, ids, scored)
        return torch.stack([self._flat([found[name][i] for name in values]) for i in range(len(rows))])

    def _flat(self, gradients: Sequence[Tensor]) -> Tensor:
        """Return (size,) one vector of all parameters' gradients, sketched if there are too many."""
        if not self.sketched:
            return torch.cat([gradient.flatten() for gradient in gradients])
        total = torch.zeros(SKETCH, device=self.device)
        generator = torch.Generator(self.device)
        for number, gradient in enumerate(gradients):
            generator.manual_seed(number)  # the same places and signs for every row
            shape = (gradient.numel(),)
            places = torch.randint(SKETCH, shape, generator=generator, device=self.device)
            signs = torch.randint(2, shape, generator=generator, device=self.device) * 2 - 1
            total.index_add_(0, places, gradient.flatten().float() * signs)
        return total


def why_no_gradient(policy: Policy) -> str | None:
    """Return why there is no gradient of a policy's return; ``None`` if there is one."""
    decoding = getattr(policy, "decoding", None)
    if not has_local_model(policy) or decoding is None:
        return f"{policy.name} has no model in this process, so its return has no gradient that could be computed"
    if plays_legal_only(policy):
        return f"{policy.name} plays legal-only, and gradients are computed of free responses alone"
    if decoding.deterministic:
        return "at temperature 0 a policy's return has no gradient; accepted: a temperature above 0, as in training"
    if decoding.top_p != 1:
        return f"with top_p = {decoding.top_p} the log-probabilities aren't the model's own; accepted: top_p = 1"
    return None


@contextmanager
def _evaluating(module: nn.Module, parameters: dict[str, Tensor]) -> Iterator[None]:
    """Switch dropout off and the parameters' gradients on; leave all as it was found."""
    training, required = module.training, {name: p.requires_grad for name, p in parameters.items()}
    module.eval()
    for p in parameters.values():
        p.requires_grad_(True)
    try:
        with torch.enable_grad():
            yield
    finally:
        module.train(training)
        for name, p in parameters.items():
            p.requires_grad_(required[name])
