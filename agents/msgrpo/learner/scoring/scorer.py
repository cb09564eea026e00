"""Log-probabilities of the learner: a causal model wrapped so that one forward call scores a micro-batch's tokens.

Everything happens inside one ``forward`` of one module, so that data-parallel and sharding wrappers, which act at that
boundary, see all uses of the parameters.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local.forward.llama_forward import hidden_states, read_weights, unwrap, why_not
from agents.models.local.forward.path_attention import QUERIES, TreeAttention
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.learner.scoring.logprobs import Masks, head_logprobs, linear_logprobs, logprobs_from_logits
from agents.msgrpo.learner.scoring.packing import MicroBatch, pack
from agents.msgrpo.learner.scoring.tree_attention import TREE_ATTENTION, tree_blocks

LOGIT_SETTINGS = ("logit_scale", "logits_scaling", "final_logit_softcapping")
"""Settings of models that change their head's output: Cohere multiplies, Granite divides, Gemma caps."""

TOLERANCE = 5e-3
"""Nats per token that two ways of scoring the same token in float32 may differ by; a wrong mask differs by far more."""

LEAN_FROM = 5_000_000
"""Parameters from which the lean forward pass learns faster. The small trees of smaller models cost less with a dense
mask than the gathering of keys."""


class TokenScorer(nn.Module):
    """Scores response tokens under ``softmax(logits / temperature)``; the full logits never exist.

    If ``lean``, hidden states come from :mod:`agents.models.local.forward.llama_forward`, where trees cost no padding
    and no dense mask. The output head is ``"linear"`` (chunks with a hand-written gradient), ``"module"`` (checkpointed
    chunks through the head module and the model's known logit scaling or capping) or ``"logits"`` (the model's own
    forward at the scored places, whole), whichever gives the model's own logits.
    """

    def __init__(self, model: nn.Module, *, temperature: float, chunk: int, autocast: torch.dtype | None) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.chunk = chunk
        self.autocast = autocast
        self.head = "linear"
        self.lean = False

    @property
    def causal_lm(self) -> Any:
        """The transformers model itself, without the adapter's wrapper (its layers hold the adapter)."""
        return unwrap(self.model)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def width(self) -> int:
        return getattr(self.causal_lm.config.get_text_config(), "hidden_size", 256)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Any,
        position_ids: Tensor | None,
        index: Tensor,
        targets: Tensor,
        masks: Masks | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and entropies (n,) of ``targets`` (n,) at ``index`` (n,) of flat (B, L) input."""
        with self._autocast():
            if isinstance(attention_mask, TreeAttention) and position_ids is not None:
                weights = read_weights(self.model)
                hidden = hidden_states(weights, input_ids, position_ids, attention_mask, only=index)
                return self._reduced(hidden, targets, masks)
            inputs: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask, "use_cache": False}
            if position_ids is not None:
                inputs["position_ids"] = position_ids
            model = self.causal_lm
            if self.head == "logits":
                logits = model(**inputs).logits.flatten(0, 1)[index]
                return logprobs_from_logits(logits, targets, temperature=self.temperature, masks=masks)
            hidden = model.base_model(**inputs)[0].flatten(0, 1).index_select(0, index)
            return self._reduced(hidden, targets, masks)

    def _reduced(self, hidden: Tensor, targets: Tensor, masks: Masks | None) -> tuple[Tensor, Tensor]:
        model = self.causal_lm
        options: dict[str, Any] = {"temperature": self.temperature, "chunk": self.chunk, "masks": masks}
        head = model.get_output_embeddings()
        if self.head == "linear":
            # the whole reduction is hand-written, so autocast has no say in it
            with torch.autocast(hidden.device.type, enabled=False):
                return linear_logprobs(hidden, head.weight, getattr(head, "bias", None), targets, **options)
        multiply, divide, cap = (getattr(model.config, name, None) for name in LOGIT_SETTINGS)

        def shaped(rows: Tensor) -> Tensor:
            logits: Tensor = head(rows)
            if multiply is not None:
                logits = logits * multiply
            if divide is not None:
                logits = logits / divide
            return logits if cap is None else cap * torch.tanh(logits / cap)

        return head_logprobs(hidden, shaped, targets, **options)

    def score(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        return score_with(self, self, batch)

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=self.autocast) if self.autocast is not None else nullcontext()


def score_with(scorer: TokenScorer, forward: Callable[..., Any], batch: MicroBatch) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and entropies (tokens,) of the rows' response tokens, one row after another.

    ``forward`` is the scorer, or a wrapper of it (DDP, FSDP).
    """
    device, model = scorer.device, scorer.causal_lm
    masks = None
    if batch.allowed is not None:
        vocabulary = model.config.get_text_config().vocab_size
        masks = Masks.of(batch.allowed, vocabulary, device, whole=scorer.head != "linear")
    inputs = lean_inputs(batch, scorer) if scorer.lean else inputs_of(batch, model, scorer.autocast)
    logprobs, entropies = forward(*inputs, batch.targets.to(device), masks)
    places = batch.places.to(device)
    return logprobs[places], entropies[places]


def inputs_of(batch: MicroBatch, model: Any, autocast: torch.dtype | None) -> tuple[Tensor, Any, Tensor | None, Tensor]:
    """Return a micro-batch as a transformers model takes it: token ids, attention mask, positions, places to read.

    The mask is a tensor, or the blocks of trees if the model's attention takes them.
    """
    weight, attention = next(model.parameters()), model.config._attn_implementation
    mask: Any
    if batch.subtree_end is not None and attention == TREE_ATTENTION:
        mask = tree_blocks(batch.subtree_end, weight.device)
    else:
        eager_tree = batch.subtree_end is not None and attention == "eager"
        additive = (autocast or weight.dtype) if eager_tree else None
        mask = batch.attention_mask(additive=additive).to(weight.device)
    positions = None if batch.subtree_end is None else batch.position_ids.to(weight.device)
    return batch.input_ids.to(weight.device), mask, positions, batch.index.to(weight.device)


def lean_inputs(batch: MicroBatch, scorer: TokenScorer) -> tuple[Tensor, TreeAttention, Tensor, Tensor]:
    """Return the same as the lean forward pass takes it: trees and rows one after another as one sequence.

    It is filled up to whole blocks, as oneDNN keeps what it prepares for every shape of a product that it meets.
    """
    count, width = batch.input_ids.shape
    used = torch.arange(width) < batch.lengths[:, None]
    moved = (batch.lengths.cumsum(0) - batch.lengths)[:, None]  # where each row begins
    # a plain row is a tree of one branch
    end = batch.lengths[:, None].expand(count, width) if batch.subtree_end is None else batch.subtree_end
    index = moved[batch.index // width, 0] + batch.index % width
    filling = -int(used.sum()) % QUERIES
    tokens, positions = (F.pad(each[used], (0, filling)) for each in (batch.input_ids, batch.position_ids))
    ends = (end + moved)[used].numpy()
    alone = np.arange(len(ends) + 1, len(tokens) + 1)  # what fills up is a tree of its own, each
    with scorer._autocast():
        trunk = batch.trunk.layers(scorer.model) if batch.trunk else ()
    return tokens, TreeAttention(np.concatenate([ends, alone]), trunk), positions, index


@torch.no_grad()
def score_rows(scorer: TokenScorer, rows: Sequence[TokenRow], batches: Sequence[MicroBatch]) -> list[Tensor]:
    """Return log-probabilities (len(response),) of every row's response, in the rows' order; without a gradient."""
    scored: dict[int, Tensor] = {}
    for batch in batches:
        numbers, (logprobs, _) = batch.rows.tolist(), scorer.score(batch)
        parts = torch.split(logprobs, [len(rows[number].response) for number in numbers])
        scored.update(zip(numbers, parts, strict=True))
    return [scored[number] for number in range(len(rows))]


@torch.no_grad()
def choose_ways(scorer: TokenScorer, packing: str, *, longest: int = 0) -> str:
    """Try, on a few tokens, the fast ways of scoring against the model's own logits; keep those that agree.

    Sets ``scorer.head`` and ``scorer.lean`` and returns the packing to use: ``"tree"`` only if the model takes a
    4-dimensional mask and explicit positions, and if ``longest``, the most tokens of a row, is within its sliding
    window, which such a mask replaces. Warns about every way that had to be given up.
    """
    model = scorer.causal_lm
    try:
        embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        embedding = output = None
    if embedding is None or output is None or not hasattr(model, "base_model"):
        raise UnusableModelError(
            f"{type(model).__name__} is not a causal language model of transformers (it lacks an input embedding or an "
            "output head); load it with AutoModelForCausalLM.from_pretrained"
        )
    vocabulary = int(embedding.weight.shape[0])
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(0, vocabulary, (24,), generator=rng).tolist()
    rows = [
        TokenRow(tuple(ids[:8]), tuple(ids[8:14])),
        TokenRow(tuple(ids[:8]), (*ids[8:10], *ids[14:18])),
        TokenRow((*ids[:5], *ids[18:24]), tuple(ids[2:5])),
    ]
    was, scorer.temperature = (scorer.temperature, scorer.autocast), 1.0
    if all(weight.dtype == torch.float32 for weight in scorer.model.parameters()):
        # ways are compared without rounding: that of bfloat16 is larger the surer a model is, and looks like a mistake
        scorer.autocast = None
    try:
        plain = pack(rows, packing="rows", micro_batch_tokens=1, tree_tokens=1)
        scorer.head = "logits"
        wanted = torch.cat(score_rows(scorer, rows, plain))
        if not torch.isfinite(wanted).all():
            raise UnusableModelError(
                "the model's log-probabilities are not finite before any training: check its weights"
            )
        # a capped or scaled head may look linear on a few small logits, so these models are known by their settings
        shaped = any(getattr(model.config, name, None) is not None for name in LOGIT_SETTINGS)
        for scorer.head in ("linear", "module") if isinstance(output, nn.Linear) and not shaped else ("module",):
            if _agrees(scorer, rows, plain, wanted):
                break
        else:
            scorer.head = "logits"
        large = sum(weight.numel() for weight in scorer.model.parameters()) >= LEAN_FROM
        own_kernels = scorer.device.type != "cpu" or scorer.causal_lm.config._attn_implementation != "sdpa"
        # gradient checkpointing is the model's own, and takes place in training mode alone
        scorer.lean = scorer.head != "logits" and large and not own_kernels and not scorer.model.training
        scorer.lean = scorer.lean and why_not(scorer.model) is None
        if scorer.lean:
            trees = pack(rows, packing="tree", micro_batch_tokens=10_000, tree_tokens=10_000)
            scorer.lean = _agrees(scorer, rows, plain, wanted) and _agrees(scorer, rows, trees, wanted)
        if scorer.head == "logits":
            warnings.warn(
                f"{type(scorer.causal_lm).__name__}: its output head can't be computed in chunks; the update holds "
                "tokens x vocabulary logits: lower micro_batch_tokens",
                stacklevel=2,
            )
        if packing == "tree" and (reason := _why_no_trees(scorer, rows, wanted, longest)):
            warnings.warn(
                f"{type(scorer.causal_lm).__name__} doesn't take token trees: {reason}; using packing = 'rows'",
                stacklevel=2,
            )
            return "rows"
        return packing
    finally:
        scorer.temperature, scorer.autocast = was


def _why_no_trees(scorer: TokenScorer, rows: Sequence[TokenRow], wanted: Tensor, longest: int) -> str:
    config = scorer.causal_lm.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window and getattr(config, "use_sliding_window", True) and longest > window:
        return f"its attention slides over {window} tokens and rows may have {longest}"
    # branches of a tree would run into each other in layers that read tokens in order; on a few tokens of an untrained
    # model that can't be told from rounding, so these models are known by their settings
    kinds = {*(getattr(config, "layer_types", None) or ())} - {"full_attention", "sliding_attention"}
    if kinds or getattr(scorer.causal_lm, "_is_stateful", False):
        return f"not all of its layers are attention ({', '.join(sorted(kinds)) or 'it keeps a state'})"
    trees = pack(rows, packing="tree", micro_batch_tokens=10_000, tree_tokens=10_000)
    if _agrees(scorer, rows, trees, wanted):
        return ""
    if scorer.causal_lm.config._attn_implementation == TREE_ATTENTION:
        warnings.warn("FlexAttention changes the model's log-probabilities: using a dense mask", stacklevel=3)
        scorer.causal_lm.set_attn_implementation("sdpa")
        if _agrees(scorer, rows, trees, wanted):
            return ""
    return "it ignores 4-dimensional masks or positions"


def _agrees(scorer: TokenScorer, rows: Sequence[TokenRow], batches: Sequence[MicroBatch], wanted: Tensor) -> bool:
    try:
        got = torch.cat(score_rows(scorer, rows, batches))
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError):
        return False  # the model doesn't take such a mask, such positions, or has no such part
    half = next(scorer.model.parameters()).dtype in (torch.bfloat16, torch.float16)
    low_precision = half or scorer.autocast is not None or wanted.dtype != torch.float32
    allowed = 50 * TOLERANCE * (1 + wanted.abs() / 10) if low_precision else TOLERANCE
    return bool(((got - wanted).abs() < allowed).all())
