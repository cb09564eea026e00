"""Drawing tokens among those that are allowed: the sampler's part of legal-only decoding.

What may follow is told by text (:mod:`agents.models.answers`), so the host has to see every token before the next one
is drawn, on a GPU as well. In return few tokens are allowed where an action stands: the softmax and the draw are over
those alone, which costs a fraction of the whole vocabulary's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.models.answers import Guide, LegalAnswers, Rules, Vocabulary
from agents.models.base import Decoding
from agents.models.local.decoding.sampler import TokenIds, choose
from agents.models.reasoning import Begun
from agents.turn import Allowed, TokenSet


class Reader(Protocol):
    """What a model knows of its tokens and its context."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    def limit(self, prompt: TokenIds, max_tokens: int) -> int:
        """Return the most tokens of a response."""

    def too_long(self, prompt: TokenIds) -> str | None:
        """Return what to say of a prompt that leaves no room for a response."""


def rules_of(
    model: Reader,
    prompts: Sequence[TokenIds],
    answers: Sequence[LegalAnswers | None],
    begun: Sequence[Begun],
    max_tokens: int,
) -> tuple[list[Rules | None], list[str | None]]:
    """Return the rules of each prompt's response, and what to say of those that can't be answered.

    A model that reasons by itself does so freely, whatever the mode of the prompt.
    """
    rules: list[Rules | None] = [None] * len(prompts)
    wrong = [model.too_long(prompt) for prompt in prompts]
    for row, (prompt, legal, own) in enumerate(zip(prompts, answers, begun, strict=True)):
        if legal is None or wrong[row] is not None:
            continue
        if own.opening != "none":
            legal = replace(legal, reasons=True, begun=own.text)
        try:
            found = rules[row] = model.vocabulary.rules(legal)
        except ValueError as error:
            wrong[row] = str(error)
            continue
        if (room := model.limit(prompt, max_tokens)) < found.reserve:
            wrong[row] = (
                f"a legal answer may need {found.reserve} tokens and there is room for {room}: raise max_tokens, or "
                "shorten the prompt"
            )
    return rules, wrong


class Guided:
    """A :class:`~agents.models.local.decoding.sampler.Constraint`: a guide for every row, and what it chose from.

    Args:
        rules: one per row of the batch as it begins; ``None`` for rows that are free.
        limits: the most tokens of each row.
    """

    def __init__(self, rules: Sequence[Rules | None], limits: Sequence[int]) -> None:
        self._guides = [None if one is None else Guide(one, limit) for one, limit in zip(rules, limits, strict=True)]
        self._sets: list[list[TokenSet | None]] = [[] for _ in rules]

    def choose(
        self, logits: Tensor, decoding: Decoding, uniform: Tensor, rows: NDArray[np.intp], live: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Draw one token per row as :func:`agents.models.local.decoding.sampler.choose` does, of those allowed."""
        going = [
            (place, guide, self._sets[row])
            for place, row in enumerate(rows.tolist())
            if live[place] and (guide := self._guides[row]) is not None
        ]
        sets: list[TokenSet | None] = [None] * len(rows)
        for place, guide, given in going:
            sets[place] = guide.allowed()
            given.append(sets[place])
        tokens, logprobs = choose_allowed(logits, decoding, uniform, sets)
        seen = tokens.tolist()
        for place, guide, _ in going:
            guide.take(seen[place])
        return tokens, logprobs

    def allowed(self, row: int) -> Allowed | None:
        """Return what was allowed at every token of a row; ``None`` for a free one."""
        return None if self._guides[row] is None else tuple(self._sets[row])


def choose_allowed(
    logits: Tensor, decoding: Decoding, uniform: Tensor, sets: Sequence[TokenSet | None]
) -> tuple[Tensor, Tensor]:
    """Draw one token per row among those of its set; log-probabilities are renormalised over it. ``logits (N, V)``."""
    few = [row for row, each in enumerate(sets) if each is not None and not each.others]
    tokens = torch.empty(len(sets), dtype=torch.long, device=logits.device)
    logprobs = torch.empty(len(sets), device=logits.device)
    if few:
        at = torch.tensor(few, device=logits.device)
        drawn = _choose_few(logits[at], decoding, uniform[at], [each for row in few if (each := sets[row])])
        tokens[at], logprobs[at] = drawn
    if len(few) < len(sets):
        many = [row for row in range(len(sets)) if (each := sets[row]) is None or each.others]
        at = torch.tensor(many, device=logits.device)
        some = without(logits[at].float(), [sets[row] for row in many])
        tokens[at], logprobs[at] = choose(some, decoding, uniform[at])
    return tokens, logprobs


def _choose_few(logits: Tensor, decoding: Decoding, uniform: Tensor, sets: Sequence[TokenSet]) -> tuple[Tensor, Tensor]:
    """Return the same where every set names its tokens: only those columns are looked at."""
    sizes = torch.tensor([len(each.ids) for each in sets], device=logits.device)
    most = int(sizes.max())
    padded = torch.tensor([each.ids + each.ids[:1] * (most - len(each.ids)) for each in sets], device=logits.device)
    unused = torch.arange(most, device=logits.device) >= sizes[:, None]
    columns = logits.gather(1, padded).float().masked_fill(unused, float("-inf"))
    places, logprobs = choose(columns, decoding, uniform)
    return padded.gather(1, places[:, None])[:, 0], logprobs


def without(logits: Tensor, sets: Sequence[TokenSet | None]) -> Tensor:
    """Logits ``(N, V)``, changed in place, whose rows give no probability to what their sets exclude."""
    pairs = [(row, token) for row, each in enumerate(sets) if each is not None for token in each.ids]
    if pairs:
        rows, tokens = torch.tensor(pairs, device=logits.device).unbind(1)
        logits[rows, tokens] = float("-inf")
    return logits
