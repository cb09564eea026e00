"""Drawing responses token by token: which token, when a response ends, which rows go on.

Randomness: a row's ``t``-th token is the inverse of the cumulative distribution at the ``t``-th uniform number of the
row's own generator (PCG64 seeded with the row's seed). So a row's response depends on its prompt and its seed and on
nothing else in the batch, up to rounding: matrix products of other batch sizes may differ in the last bits, which
changes a token only if its uniform number lies within about 1e-6 of a boundary.

Whether a response has ended can only be told from its text, on the host, and asking a device for its tokens makes the
host wait until it has made them. So a GPU is asked for the tokens of several steps at once (:func:`looks`): rows that
end between two looks make a few tokens more, which are thrown away. What a row says doesn't depend on it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.models.base import Decoding
from agents.models.reasoning import end_of_response
from agents.turn import Allowed

TokenIds = tuple[int, ...]

COMPACT_AT = 0.75
"""Rows that have ended are dropped from the caches once they are a quarter; copying costs about a step."""
_BLOCK = 128  # tokens of the vocabulary that are summed up together to find a drawn one
_LOOK_EVERY = 8  # tokens that a GPU makes between two looks at them


class Batch(Protocol):
    """Rows that are being continued, with what their tokens so far have left in caches."""

    @property
    def compact_at(self) -> float:
        """The share of rows that go on from which on it pays to drop the others."""

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token ``(rows,)`` to every row; the logits ``(rows, vocabulary)`` of the next."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows alone, in this order, so that no time is spent on those that are finished."""


class Decoder(Protocol):
    """Next-token logits for batches of growing sequences: the part of generation that knows about caches."""

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> tuple[Batch, Tensor]:
        """Read distinct prompts, none empty; ``rows`` holds, for every row of the batch, the index of its prompt.

        Returns the batch, and the logits ``(rows, vocabulary)`` of every row's first token.
        """

    def bytes_per_token(self) -> int:
        """Memory of one token of one row in the caches."""


class Constraint(Protocol):
    """What holds rows to some tokens: the draw in place of :func:`choose`; it is in the module ``guided``."""

    def choose(
        self, logits: Tensor, decoding: Decoding, uniform: Tensor, rows: NDArray[np.intp], live: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        """Draw one token for each of the decoder's rows, of which ``rows`` says which they were at the beginning.

        What rows that aren't ``live`` draw is of no interest.
        """

    def allowed(self, row: int) -> Allowed | None:
        """Return what might stand at every token of a row so far; ``None`` for one that is free."""


class Sampled(NamedTuple):
    """One response: its token ids, their log-probabilities (nats), whether it ended by itself, and what was allowed."""

    ids: TokenIds
    logprobs: tuple[float, ...]
    stopped: bool
    allowed: Allowed | None = None


def uniforms(seeds: Sequence[tuple[int, ...]], count: int) -> NDArray[np.float64]:
    """Return ``(rows, count)`` numbers in [0, 1), each row's from its seed alone."""
    return np.stack([np.random.default_rng(seed).random(count) for seed in seeds])


def choose(logits: Tensor, decoding: Decoding, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row.

    Args:
        logits: ``(N, V)``.
        decoding: temperature and top-p.
        uniform: ``(N,)`` float64 in [0, 1); not used at temperature 0.

    Returns:
        tokens ``(N,)`` and their natural log-probabilities ``(N,)`` under the distribution that they are drawn from. At
        temperature 0, which has no such distribution, log-probabilities are the model's own (temperature 1).
    """
    logits = logits.float()
    if decoding.temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    logprobs = (logits / decoding.temperature).log_softmax(-1)
    if decoding.top_p < 1:
        logprobs = nucleus(logprobs, decoding.top_p)
    tokens = inverse_cumulative(logprobs.exp(), uniform)
    return tokens, logprobs.gather(1, tokens[:, None])[:, 0]


def inverse_cumulative(weights: Tensor, uniform: Tensor) -> Tensor:
    """Return ``(N,)`` the place in each row of ``weights (N, V)`` at which their cumulative sum passes ``uniform`` of
    it all.

    In double precision, as large vocabularies would otherwise lose their rare tokens to rounding. The sums of blocks
    find the block, and only that one is summed up place by place: a table of doubles of the whole vocabulary costs as
    much as the model's products.
    """
    count, size = weights.shape
    if size % _BLOCK or size < 4 * _BLOCK:
        return _passed(weights.cumsum(-1, dtype=torch.float64), uniform)[0]
    blocks = weights.view(count, -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    block, target = _passed(sums, uniform)
    rest = target - sums.gather(1, (block - 1).clamp(min=0)[:, None])[:, 0].where(block > 0, 0.0)
    inside = blocks.gather(1, block[:, None, None].expand(-1, 1, _BLOCK))[:, 0].cumsum(-1, dtype=torch.float64)
    return block * _BLOCK + _place(inside, rest)


def _passed(cumulative: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Return where each row passes ``uniform`` of its last number, and what it passes there."""
    target = uniform * cumulative[:, -1]
    return _place(cumulative, target), target


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


def can_end(piece: str, stop: str) -> bool:
    """Return whether a stop string can end within a piece of text: begun before it or in it, with or without text after
    it."""
    if stop in piece:
        return True
    return any(piece.startswith(stop[-length:]) for length in range(1, min(len(stop), len(piece) + 1)))


class Check(Protocol):
    """Tells which rows have ended."""

    def ended(self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
        """Return which of ``rows`` of the table ``ids (all rows, max_tokens)`` have ended, with ``length`` tokens so
        far."""


class StopCheck:
    """Tells when a row's last token completes a stop string or is an end-of-sequence token.

    A stop string may be spread over tokens, and its last token may have text after it. Both are found by decoding the
    row's last tokens, which is done only when the new token's piece of text can complete a stop string; for other
    tokens the check is one table look-up. One inside of a ``<think>`` that is open ends nothing: where a stop string is
    found, the whole response is decoded.

    Args:
        pieces: the vocabulary's pieces by token id, as the tokenizer stores them.
        decode: token ids to text, special tokens included.
        encode: text to token ids, without special tokens.
        eos_ids: token ids that end a response.
        stop: stop strings.
        plain: pieces are written as they read, but for spaces and what isn't ASCII (byte-level BPE).
    """

    def __init__(
        self,
        pieces: Sequence[str],
        decode: Callable[[Sequence[int]], str],
        encode: Callable[[str], Sequence[int]],
        eos_ids: Sequence[int],
        stop: Sequence[str],
        *,
        plain: bool = False,
    ) -> None:
        self.decode, self.stop = decode, tuple(stop)
        # a token is at least one byte of text, but for a few empty ones
        self._tail = max((len(text.encode()) for text in stop), default=0) + 8
        last = {text[-1] for text in stop}
        exact = plain and all(text.isascii() and text.isprintable() and " " not in text for text in stop)
        self.is_eos = np.zeros(len(pieces), bool)
        self.is_eos[[token for token in eos_ids if token < len(pieces)]] = True
        self.may_end = np.array(
            [any(can_end(piece, text) for text in stop) if exact else not last.isdisjoint(piece) for piece in pieces],
            bool,
        )
        # pieces are written in the tokenizer's own alphabet; if that isn't plain text, look at every token
        if not all(character.isascii() for character in last) or any(
            not self.may_end[list(encode(text))[-1:]].any() for text in stop
        ):
            self.may_end[:] = True

    def ended(self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
        """Return which of ``rows`` of the table ``ids (all rows, max_tokens)`` have ended, with ``length`` tokens so
        far."""
        return self.ended_as(ids, rows, length, lambda row, tokens: self.stops(tokens))

    def ended_as(
        self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int, stops: Callable[[int, list[int]], bool]
    ) -> NDArray[np.bool_]:
        """Return the same where ``stops(row, its tokens)`` says of those that may have ended whether they have."""
        last = ids[rows, length - 1]
        done: NDArray[np.bool_] = self.is_eos[last]
        for index in np.flatnonzero(self.may_end[last] & ~done) if self.stop else ():
            done[index] = stops(int(rows[index]), ids[rows[index], :length].tolist())
        return done

    def stops(self, ids: list[int], begun: str = "") -> bool:
        """Return whether a response has come to a stop string; ``begun`` is what of it stands in its prompt."""
        tail = self.decode(ids[-self._tail :])
        if not any(text in tail for text in self.stop):
            return False
        return end_of_response(self.decode(ids), self.stop, begun) is not None

    def trim(self, text: str, begun: str = "") -> str:
        """Return the response without what its last token has after the stop string."""
        return text[: end_of_response(text, self.stop, begun)]


def sample(
    decoder: Decoder,
    prompts: Sequence[TokenIds],
    decoding: Decoding,
    seeds: Sequence[tuple[int, ...]],
    check: Check,
    limits: Sequence[int],
    *,
    look_every: int | None = None,
    guided: Constraint | None = None,
    drawn: int = 0,
) -> list[Sampled]:
    """Return one response per prompt, each with its own seed; equal prompts are computed once.

    Args:
        decoder: the model.
        prompts: token ids.
        decoding: temperature and top-p.
        seeds: one per prompt.
        check: tells when a response has ended.
        limits: the most tokens for each row: ``max_tokens``, or less where the context ends before.
        look_every: tokens made between two looks at them; by default 1 on a CPU and 8 elsewhere.
        guided: where rows are constrained, what says which tokens they may draw; every token is then looked at.
        drawn: how many tokens of each response were drawn before, and stand in its prompt.
    """
    number: dict[TokenIds, int] = {}
    which = [number.setdefault(prompt, len(number)) for prompt in prompts]
    batch, logits = decoder.start(list(number), which)
    device = logits.device
    if look_every is None:
        look_every = 1 if device.type == "cpu" or guided is not None else _LOOK_EVERY
    record = _Record(check, limits)
    draws = torch.from_numpy(uniforms(seeds, drawn + record.longest)[:, drawn:]).to(
        device, non_blocking=True
    )  # (rows, steps)
    look_at = looks(limits, look_every)
    unseen: list[tuple[Tensor, Tensor]] = []
    for step in range(record.longest):
        if guided is None:
            tokens, chosen = choose(logits, decoding, draws[:, step])
        else:
            tokens, chosen = guided.choose(logits, decoding, draws[:, step], record.rows, record.live)
        unseen.append((tokens, chosen))
        if step + 1 in look_at:
            record.write(*_fetch(unseen))
            unseen.clear()
            if not record.live.any():
                break
            if (going := record.compact(batch.compact_at)) is not None:
                keep = torch.from_numpy(going).to(device, non_blocking=True)
                batch.keep(keep)
                tokens, draws = tokens.index_select(0, keep), draws.index_select(0, keep)
        logits = batch.step(tokens)
    sampled = record.sampled()
    if guided is None:
        return sampled
    return [each._replace(allowed=guided.allowed(row)) for row, each in enumerate(sampled)]


def looks(limits: Sequence[int], every: int) -> frozenset[int]:
    """After how many tokens the host looks at them: the multiples of ``every``, more often at first, and every limit.

    Short answers would otherwise make a multiple of their tokens. A row at its limit may be at the end of the model's
    context and must not go on.
    """
    doubling = {2**power for power in range(every.bit_length()) if 2**power < every}
    return frozenset({*range(every, max(limits) + 1, every), *doubling, *limits})


def _fetch(steps: Sequence[tuple[Tensor, Tensor]]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Tokens and log-probabilities of some steps, ``(steps, rows)`` each, in one copy from the device."""
    tokens, chosen = steps[0]
    if len(steps) == 1 and tokens.device.type == "cpu":
        return tokens.numpy()[None], chosen.numpy()[None]
    # a double holds token ids and single-precision numbers alike exactly
    both = torch.stack([part.double() for step in steps for part in step]).cpu().numpy()
    return both[0::2].astype(np.int64), both[1::2].astype(np.float32)


class _Record:
    """What the host knows of a batch: all tokens so far, and which rows go on.

    Attributes:
        rows: what stands in the decoder's rows, as indices into the batch as it began.
        live: ``(len(rows),)`` which of those still go on.
        longest: the most tokens of any row.
    """

    def __init__(self, check: Check, limits: Sequence[int]) -> None:
        count, self.longest = len(limits), max(limits)
        self.rows, self.live = np.arange(count), np.ones(count, bool)
        self._check, self._limit = check, np.array(limits)
        self._ids = np.zeros((count, self.longest), np.int64)
        self._logprobs = np.zeros((count, self.longest), np.float32)
        self._lengths, self._stopped = np.zeros(count, np.intp), np.zeros(count, bool)
        self._written = 0

    def write(self, tokens: NDArray[np.int64], logprobs: NDArray[np.float32]) -> None:
        """Take down the next steps of all rows, ``(steps, rows)``, and see which have ended."""
        for new, chosen in zip(tokens, logprobs, strict=True):
            going = self.rows[self.live]
            self._ids[going, self._written] = new[self.live]
            self._logprobs[going, self._written] = chosen[self.live]
            self._written += 1
            done = self._check.ended(self._ids, going, self._written)
            self._lengths[going], self._stopped[going] = self._written, done
            self.live[self.live] = ~(done | (self._limit[going] <= self._written))

    def compact(self, at: float) -> NDArray[np.intp] | None:
        """Drop the rows that have ended where only a share ``at`` goes on or it must be; which of the rows go on."""
        must = (self._limit[self.rows] <= self._written).any()  # its next token may be beyond the model's context
        if not must and self.live.sum() > at * len(self.rows):
            return None
        going = np.flatnonzero(self.live)
        self.rows, self.live = self.rows[going], np.ones(len(going), bool)
        return going

    def sampled(self) -> list[Sampled]:
        """Return the sampled responses of all rows."""
        return [
            Sampled(tuple(row[:n].tolist()), tuple(scores[:n].tolist()), bool(end))
            for row, scores, n, end in zip(self._ids, self._logprobs, self._lengths, self._stopped, strict=True)
        ]
