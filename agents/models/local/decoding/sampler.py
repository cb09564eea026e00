"""Drawing responses token by token: which token is drawn, when a response ends, which rows continue.

A token is the inverse of the cumulative distribution at a uniform number of the row's seed, so a response depends on
its prompt and its seed alone, up to rounding: matrix products of other batch sizes may differ in the last bits, which
changes a token only if its number lies within about 1e-6 of a boundary.

Only the text tells whether a response has ended, on the host, which has to wait for a device's tokens. So a GPU is
asked for the tokens of several steps at once: rows that end between two looks make a few more, which are thrown away.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.models.answers import Guide, Rules
from agents.models.base import Decoding
from agents.models.reasoning import Opening, end_of_response, still_reasons
from agents.turn import Allowed, TokenSet

_BLOCK = 128  # tokens of the vocabulary that are summed up together to find a drawn one


def uniforms(seeds: Sequence[tuple[int, ...]], count: int) -> NDArray[np.float64]:
    """Return ``(rows, count)`` numbers in [0, 1), each row's from its seed alone (PCG64)."""
    return np.stack([np.random.default_rng(seed).random(count) for seed in seeds])


def choose(logits: Tensor, decoding: Decoding, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row of ``logits (N, V)``, at ``uniform (N,)`` in [0, 1), float64; return tokens ``(N,)`` and
    their natural log-probabilities ``(N,)`` under that distribution (at temperature 0: the model's own)."""
    logits = logits.float()
    if decoding.temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    logprobs = (logits / decoding.temperature).log_softmax(-1)
    if decoding.top_p < 1:
        logprobs = nucleus(logprobs, decoding.top_p)
    tokens = inverse_cumulative(logprobs.exp(), uniform)
    return tokens, logprobs.gather(1, tokens[:, None])[:, 0]


def choose_allowed(
    logits: Tensor, decoding: Decoding, uniform: Tensor, sets: Sequence[TokenSet | None]
) -> tuple[Tensor, Tensor]:
    """Draw as :func:`choose` among the tokens of each row's set, over which log-probabilities are renormalised. Few are
    allowed inside of an action: there the softmax and the draw are over those alone."""
    device = logits.device
    few = [row for row, each in enumerate(sets) if each is not None and not each.others]
    many = [row for row, each in enumerate(sets) if each is None or each.others]
    tokens = torch.empty(len(sets), dtype=torch.long, device=device)
    logprobs = torch.empty(len(sets), device=device)
    if few:
        at = torch.tensor(few, device=device)
        ids = [each.ids for row in few if (each := sets[row])]
        sizes = torch.tensor([len(own) for own in ids], device=device)
        most = int(sizes.max())
        padded = torch.tensor([own + own[:1] * (most - len(own)) for own in ids], device=device)
        unused = torch.arange(most, device=device) >= sizes[:, None]
        columns = logits[at].gather(1, padded).float().masked_fill(unused, float("-inf"))
        places, logprobs[at] = choose(columns, decoding, uniform[at])
        tokens[at] = padded.gather(1, places[:, None])[:, 0]
    if many:
        at = torch.tensor(many, device=device)
        rest = logits[at].float()
        pairs = [(place, token) for place, row in enumerate(many) if (each := sets[row]) for token in each.ids]
        if pairs:
            rows, excluded = torch.tensor(pairs, device=device).unbind(1)
            rest[rows, excluded] = float("-inf")
        tokens[at], logprobs[at] = choose(rest, decoding, uniform[at])
    return tokens, logprobs


def inverse_cumulative(weights: Tensor, uniform: Tensor) -> Tensor:
    """Return ``(N,)`` the place in each row of ``weights (N, V)`` at which their cumulative sum passes the share
    ``uniform``, in double precision, as rounding would lose the rare tokens of a large vocabulary. Only the block that
    the sums of blocks find is summed up place by place: a table of doubles costs as much as the model's products."""
    count, size = weights.shape
    if size % _BLOCK or size < 4 * _BLOCK:
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        return _place(cumulative, uniform * cumulative[:, -1])
    blocks = weights.view(count, -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    target = uniform * sums[:, -1]
    block = _place(sums, target)
    rest = target - sums.gather(1, (block - 1).clamp(min=0)[:, None])[:, 0].where(block > 0, 0.0)
    inside = blocks.gather(1, block[:, None, None].expand(-1, 1, _BLOCK))[:, 0].cumsum(-1, dtype=torch.float64)
    return block * _BLOCK + _place(inside, rest)


def _place(cumulative: Tensor, target: Tensor) -> Tensor:
    """Return the first place of each row above ``target``; the last one that isn't empty if rounding leaves none."""
    place = torch.searchsorted(cumulative, target[:, None], right=True)[:, 0]
    last = torch.searchsorted(cumulative, cumulative[:, -1:].contiguous())[:, 0]
    return torch.minimum(place, last)


def nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    """Keep each row's most probable tokens, as few as reach ``top_p`` together, and renormalise. ``(N, V)``."""
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()  # probability of all more probable tokens
    dropped = torch.zeros_like(logprobs, dtype=torch.bool).scatter(1, order, before >= top_p)
    return logprobs.masked_fill(dropped, float("-inf")).log_softmax(-1)


TokenIds = tuple[int, ...]

COMPACT_AT = 0.75  # rows that have ended are dropped once they are a quarter; copying costs about a step
_LOOK_EVERY = 8  # tokens that a GPU makes between two looks at them


class Batch(Protocol):
    """Rows that are being continued, with what their tokens so far have left in caches."""

    @property
    def compact_at(self) -> float:
        """The share of live rows below which it pays to drop the others."""

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token ``(rows,)`` to every row; return the logits ``(rows, vocabulary)`` of the next."""

    def keep(self, rows: Tensor) -> None:
        """Continue these rows alone, in this order."""


class Decoder(Protocol):
    """Next-token logits for batches of growing sequences: the part of generation that knows about caches."""

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> tuple[Batch, Tensor]:
        """Read distinct prompts, none empty, and begin a batch whose ``rows`` are their indices; return it and the
        logits ``(rows, vocabulary)`` of every row's first token."""


class Sampled(NamedTuple):
    """One response: its tokens, their log-probabilities (nats), whether it ended by itself, and the allowed tokens."""

    ids: TokenIds
    logprobs: tuple[float, ...]
    stopped: bool
    allowed: Allowed | None = None


class Budget(NamedTuple):
    """Behind so many ``tokens`` of a response that are all reasoning, by the row's opening, those of ``closing``
    follow."""

    tokens: int
    closing: TokenIds
    openings: Sequence[Opening]


class StopCheck:
    """Tells when a row's last token completes a stop string or is an end-of-sequence token.

    A stop string may be spread over tokens, and its last token may have text after it. The row's last tokens are
    decoded only if the new token's text can complete a stop string; if one is found, the whole response is decoded, as
    one inside of an open ``<think>`` ends nothing. ``texts`` are those of the vocabulary's tokens
    (:func:`~agents.models.answers.token_texts`), and ``decode`` writes special tokens out.
    """

    def __init__(
        self,
        texts: Sequence[bytes],
        decode: Callable[[Sequence[int]], str],
        eos_ids: Sequence[int],
        stop: Sequence[str],
    ) -> None:
        self.decode, self.stop = decode, tuple(stop)
        self._begun: Sequence[str] = ()
        stops = [text.encode() for text in stop]
        # a token is at least one byte of text, but for a few empty ones
        self._tail = max(map(len, stops), default=0) + 8
        self.is_eos = np.zeros(len(texts), bool)
        self.is_eos[[token for token in eos_ids if token < len(texts)]] = True
        self.may_end = np.array([not text or any(_can_end(text, each) for each in stops) for text in texts], bool)

    def of(self, begun: Sequence[str]) -> "StopCheck":
        """Return the check for rows whose response has ``begun`` in the prompt."""
        check = copy(self)
        check._begun = begun
        return check

    def ended(self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
        """Return which ``rows`` of the table ``ids (all rows, max_tokens)`` have ended after ``length`` tokens."""
        last = ids[rows, length - 1]
        done: NDArray[np.bool_] = self.is_eos[last]
        for index in np.flatnonzero(self.may_end[last] & ~done) if self.stop else ():
            row = int(rows[index])
            tokens = ids[row, :length].tolist()
            tail = self.decode(tokens[-self._tail :])
            if any(text in tail for text in self.stop):
                begun = self._begun[row] if self._begun else ""
                done[index] = end_of_response(self.decode(tokens), self.stop, begun) is not None
        return done

    def trim(self, text: str, begun: str = "") -> str:
        """Return the response without the text that its last token has after the stop string."""
        return text[: end_of_response(text, self.stop, begun)]


def _can_end(text: bytes, stop: bytes) -> bool:
    """Report whether a stop string can end in a token, begun before it or in it, with or without text after it."""
    return stop in text or any(text.startswith(stop[-n:]) for n in range(1, min(len(stop), len(text) + 1)))


def sample(
    decoder: Decoder,
    prompts: Sequence[TokenIds],
    decoding: Decoding,
    seeds: Sequence[tuple[int, ...]],
    check: StopCheck,
    limits: Sequence[int],
    *,
    look_every: int | None = None,
    rules: Sequence[Rules | None] | None = None,
    budget: Budget | None = None,
) -> list[Sampled]:
    """Return one response per prompt, each with its own seed; equal prompts are computed once.

    ``limits`` are the most tokens of each row. The host looks at the tokens every ``look_every`` steps: 1 on a CPU and
    with ``rules`` (one for each row, ``None`` for a free one), which go by the text; else 8.
    """
    number: dict[TokenIds, int] = {}
    which = [number.setdefault(prompt, len(number)) for prompt in prompts]
    batch, logits = decoder.start(list(number), which)
    device = logits.device
    if look_every is None:
        look_every = 1 if device.type == "cpu" or rules is not None else _LOOK_EVERY
    record = _Record(check, limits)
    guides = {row: Guide(one, limits[row]) for row, one in enumerate(rules or ()) if one is not None}
    allowed: dict[int, list[TokenSet | None]] = {row: [] for row in guides}
    draws = torch.from_numpy(uniforms(seeds, record.longest)).to(device, non_blocking=True)  # (rows, steps)
    look_at = looks(limits, look_every)
    closed = torch.zeros(len(prompts), dtype=torch.bool, device=device)  # rows whose reasoning the budget closes
    unseen: list[tuple[Tensor, Tensor]] = []
    for step in range(record.longest):
        if not guides:
            tokens, chosen = choose(logits, decoding, draws[:, step])
        else:
            guided = [(at, row) for at, row in enumerate(record.rows.tolist()) if record.live[at] and row in guides]
            sets: list[TokenSet | None] = [None] * len(record.rows)
            for at, row in guided:
                sets[at] = guides[row].allowed()
                allowed[row].append(sets[at])
            tokens, chosen = choose_allowed(logits, decoding, draws[:, step], sets)
            seen = tokens.tolist()
            for at, row in guided:
                guides[row].take(seen[at])
        if budget is not None and 0 <= step - budget.tokens < len(budget.closing):
            tokens = tokens.masked_fill(closed, budget.closing[step - budget.tokens])
            chosen = chosen.masked_fill(closed, 0.0)
        unseen.append((tokens, chosen))
        at_budget = budget is not None and step + 1 == budget.tokens
        if at_budget or step + 1 in look_at:
            record.write(*_fetch(unseen))
            unseen.clear()
            if not record.live.any():
                break
            if (going := record.compact(batch.compact_at)) is not None:
                keep = torch.from_numpy(going).to(device, non_blocking=True)
                batch.keep(keep)
                tokens, draws, closed = (each.index_select(0, keep) for each in (tokens, draws, closed))
            if budget is not None and at_budget:
                closed = torch.tensor(record.close(budget), device=device)
        logits = batch.step(tokens)
    sampled = record.sampled()
    for row, sets_of_row in allowed.items():
        sampled[row] = sampled[row]._replace(allowed=tuple(sets_of_row))
    return sampled


def looks(limits: Sequence[int], every: int) -> frozenset[int]:
    """Return after how many tokens the host looks at them: multiples of ``every``, more often at first, as most answers
    are short, and every limit, at which the model's context may end."""
    doubling = {2**power for power in range(every.bit_length()) if 2**power < every}
    return frozenset({*range(every, max(limits) + 1, every), *doubling, *limits})


def _fetch(steps: Sequence[tuple[Tensor, Tensor]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return tokens and log-probabilities of some steps, ``(steps, rows)`` each, in one copy from the device."""
    tokens, chosen = steps[0]
    if len(steps) == 1 and tokens.device.type == "cpu":
        return tokens.numpy()[None], chosen.numpy()[None]
    # a double holds token ids and single-precision numbers alike exactly
    both = torch.stack([part.double() for step in steps for part in step]).cpu().numpy()
    return both[0::2].astype(np.int64), both[1::2].astype(np.float32)


class _Record:
    """All tokens of a batch so far, on the host; ``rows`` are the decoder's, ``live`` those that still continue."""

    def __init__(self, check: StopCheck, limits: Sequence[int]) -> None:
        count, self.longest = len(limits), max(limits)
        self.rows, self.live = np.arange(count), np.ones(count, bool)
        self._check, self._limit = check, np.array(limits)
        self._ids = np.zeros((count, self.longest), np.int64)
        self._logprobs = np.zeros((count, self.longest), np.float32)
        self._lengths, self._stopped = np.zeros(count, np.intp), np.zeros(count, bool)
        self._written, self._forced = 0, dict[int, Allowed]()

    def write(self, tokens: NDArray[np.int64], logprobs: NDArray[np.float32]) -> None:
        """Write down the next steps of all rows, ``(steps, rows)``, and see which have ended."""
        for new, chosen in zip(tokens, logprobs, strict=True):
            going = self.rows[self.live]
            self._ids[going, self._written] = new[self.live]
            self._logprobs[going, self._written] = chosen[self.live]
            self._written += 1
            done = self._check.ended(self._ids, going, self._written)
            self._lengths[going], self._stopped[going] = self._written, done
            self.live[self.live] = ~(done | (self._limit[going] <= self._written))

    def compact(self, at: float) -> NDArray[np.intp] | None:
        """Drop ended rows if at most a share ``at`` continues, or if it must be; return which of the rows continue."""
        must = (self._limit[self.rows] <= self._written).any()  # its next token may be beyond the model's context
        if not must and self.live.sum() > at * len(self.rows):
            return None
        going = np.flatnonzero(self.live)
        self.rows, self.live = self.rows[going], np.ones(len(going), bool)
        return going

    def close(self, budget: Budget) -> list[bool]:
        """Return which of the rows the budget closes now, and note the tokens that are forced there."""
        texts = [self._check.decode(self._ids[row, : budget.tokens].tolist()) for row in self.rows]
        rows = zip(self.rows.tolist(), texts, self.live.tolist(), strict=True)
        closed = [live and still_reasons(text, budget.openings[row]) for row, text, live in rows]
        sets = (None,) * budget.tokens + tuple(TokenSet((token,)) for token in budget.closing)
        self._forced = dict.fromkeys(self.rows[closed].tolist(), sets)
        return closed

    def sampled(self) -> list[Sampled]:
        found = []
        for row, n in enumerate(self._lengths.tolist()):
            forced = self._forced.get(row)
            allowed = None if forced is None else (forced + (None,) * n)[:n]
            ids, scores = tuple(self._ids[row, :n].tolist()), tuple(self._logprobs[row, :n].tolist())
            found.append(Sampled(ids, scores, bool(self._stopped[row]), allowed))
        return found
