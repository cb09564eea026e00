"""Checks of tokens: which are trained, their weights in the loss and their probabilities."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agents.msgrpo.credit import Floats
from research.credit.checker.finding import MissingError, Stated, needs
from research.credit.checker.formula.played import TOLERANCE
from research.credit.checker.rows import Dump, Row, place

NORMALIZERS = ("token", "response", "step", "episode", "episode_mean")


def mask(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the loss counts the tokens of responses, and no others."""
    others = [row for row in dump.rows if row.kind != "response" and row.mask is None and row.advantage is not None]
    if all(row.mask is None for row in dump.rows) and not others:
        raise MissingError("rows have no mask")
    for row in others:
        if np.any(np.abs(row.each("advantage")) > TOLERANCE):
            yield f"a span of kind {row.kind} has the advantage {row.advantage} and no mask ({place(row)})"
    for row in dump.rows:
        counted = row.each("mask") or ()
        if row.kind != "response" and any(counted):
            yield f"{sum(counted)} of {len(counted)} tokens of kind {row.kind} are trained ({place(row)})"
        if row.kind == "response" and any(counted) and not all(counted):
            left = [at for at, one in enumerate(counted) if not one]
            yield f"of a response's {len(counted)} tokens some aren't trained, from 0 on: {left[:5]} ({place(row)})"
    if dump.has("mask") and not dump.values("mask").any():
        yield "no token of any response is trained"


def end(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that each response that wasn't cut off ends with an end-of-sequence token."""
    needs(dump, "token_ids")
    if not stated.eos:
        raise MissingError("--eos ID says which tokens end a response")
    for row in dump.responses:
        last = (row.token_ids or (-1,))[-1]
        if not row.cut_off and last not in stated.eos:
            accepted = ", ".join(map(str, stated.eos))
            yield f"a response that wasn't cut off ends with the token {last}; accepted: {accepted} ({place(row)})"


def weights(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that tokens weigh in the loss what its normaliser says, or that there is one which says so."""
    needs(dump, "weight")
    for update in sorted({row.update for row in dump.responses}):
        rows = [row for row in dump.responses if row.update == update and row.trained.any()]
        if not rows:
            continue  # the mask's check says that nothing is trained
        given = np.concatenate([np.asarray(row.each("weight"))[row.trained] for row in rows])
        expected = {name: _weights(name, rows) for name in NORMALIZERS}
        exact = [name for name, each in expected.items() if np.allclose(given, each, rtol=1e-4, atol=1e-12)]
        total = given.sum() or 1.0
        alike = [name for name, each in expected.items() if np.allclose(given / total, each / each.sum(), 1e-4, 1e-12)]
        if stated.normalizer and stated.normalizer not in exact:
            own = ", ".join(exact or alike) or "no known normaliser"
            yield (
                f"weights of update {update} are those of {own}: they add up to {given.sum():.6g}, and by "
                f"{stated.normalizer} to {expected[stated.normalizer].sum():.6g}"
            )
        elif not alike:
            yield f"weights of update {update} are in the proportions of no normaliser: {', '.join(NORMALIZERS)}"


def _weights(name: str, rows: Sequence[Row]) -> Floats:
    """Return (tokens,) what each token weighs by a normaliser."""
    lengths = np.array([int(row.trained.sum()) for row in rows])
    of_episode = defaultdict[Any, int](int)
    for row, length in zip(rows, lengths.tolist(), strict=True):
        of_episode[row.episode] += length
    divisors = {
        "token": np.full(len(rows), lengths.sum()),
        "response": len(rows) * lengths,
        "step": np.full(len(rows), len(rows)),
        "episode": np.full(len(rows), len(of_episode)),
        "episode_mean": np.array([len(of_episode) * of_episode[row.episode] for row in rows]),
    }
    return np.repeat(1 / divisors[name], lengths)


def sampler(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the sampler and the learner mean one policy: its temperature, template and weights."""
    needs(dump, "sampler_logprobs", "old_logprobs")
    apart = dump.values("sampler_logprobs") - dump.values("old_logprobs")
    mean, error = float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))
    unlike = (np.abs(apart) > 1).mean()
    for sign, one, other in ((1, "sampler", "learner"), (-1, "learner", "sampler")):
        if sign * mean - 2 * error > stated.most_kl:
            why = "weights" if sign == 1 else "the sampler's log-probabilities aren't of the distribution it drew from"
            yield (
                f"a token is {sign * mean:.3g} nats likelier to the {one} than to the {other}, of two standard errors "
                f"of {2 * error:.2g} (accepted: {stated.most_kl:g}): they differ in temperature, prompt or {why}"
            )
            return
    if unlike > 1e-3:
        yield (
            f"the probabilities of {unlike:.1%} of the tokens differ by more than 1 nat between sampler and learner, "
            f"by up to {np.abs(apart).max():.3g}: accepted are 0.1%"
        )


def ratios(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the first ratio of new and old probabilities is 1, but for what half precision rounds."""
    needs(dump, "old_logprobs", "new_logprobs")
    apart = np.abs(dump.values("new_logprobs") - dump.values("old_logprobs"))
    if apart.mean() > stated.most_kl:
        yield (
            f"tokens' probabilities differ by {apart.mean():.3g} nats on average between the first forward pass and "
            f"the one before it, {(apart > 1e-3).mean():.0%} of them by more than 0.001 (accepted: {stated.most_kl:g} "
            "on average): other weights, dropout or another temperature"
        )
