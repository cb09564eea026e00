"""Checks of a trainer's rows against each other: each passes, fails with a sentence, or lacks what it needs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.msgrpo.credit import Floats
from research.credit.checker.formulas import TOLERANCE, explain
from research.credit.checker.rows import Dump, Row, place

NORMALIZERS = ("token", "response", "step", "episode", "episode_mean")


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    result: Literal["passed", "failed", "not checked"]
    said: str = ""


class Stated(NamedTuple):
    """What is known of the trainer beside its rows."""

    method: str = ""
    normalizer: str = ""
    eos: tuple[int, ...] = ()
    most_kl: float = 0.01  # nats a token


class _MissingError(Exception):
    """Says what rows lack for a check."""


def check(dump: Dump, stated: Stated) -> list[Finding]:
    """Return the findings of all checks; a ConfigError if no method has the stated name."""
    findings = []
    for name, function in CHECKS.items():
        try:
            said = list(function(dump, stated))
        except _MissingError as missing:
            findings.append(Finding(name, "not checked", str(missing)))
            continue
        more = f" (and {len(said) - 1:,} more like it)" if len(said) > 1 else ""
        findings.append(Finding(name, "failed", said[0] + more) if said else Finding(name, "passed"))
    return [*findings, _formula(dump, stated)]


def _formula(dump: Dump, stated: Stated) -> Finding:
    if not dump.has("advantage"):
        return Finding("formula", "not checked", "responses have no advantage")
    verdict = explain(dump, stated.method)
    if verdict.fault:
        return Finding("formula", "failed", verdict.fault)
    (first, *others) = verdict.matches
    times = "" if first.factor == 1 else f", times {first.factor:.6g}"
    plus = f", plus {first.offset:.6g}" if first.offset else ""
    also = f"; not told apart by these rows: {', '.join(each.name for each in others)}" if others else ""
    return Finding("formula", "passed", first.name + times + plus + also)


def _needs(dump: Dump, *names: str) -> None:
    if lacking := [name for name in names if not dump.has(name)]:
        raise _MissingError(f"responses have no {' and no '.join(lacking)}")


def labels(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that an episode is in one group, with others, and has each of its turns once."""
    members = defaultdict(set)
    for (update, episode), rows in dump.episodes.items():
        groups, turns = {row.group for row in rows}, [row.turn for row in rows]
        if len(groups) > 1:
            yield f"episode {episode!r} is in several groups, {', '.join(sorted(map(repr, groups)))}: accepted is one"
        if len(set(turns)) < len(turns):
            yield f"episode {episode!r} has the turns {turns}: a row is there twice"
        elif turns != list(range(len(turns))):
            yield f"episode {episode!r} has the turns {turns}: a turn is left out"
        members[update, rows[0].group].add(episode)
    for (_, group), episodes in members.items():
        if len(episodes) == 1:
            yield f"group {group!r} has a single episode: nothing is compared with it"


def starts(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the episodes of a group begin in one state."""
    prompts = [row for row in dump.rows if row.kind == "prompt" and row.turn == 0 and row.token_ids]
    begins = prompts or [row for row in dump.responses if row.turn == 0 and row.state is not None]
    if not begins:
        raise _MissingError("rows have neither states nor token_ids of the first prompts")
    first: dict[Any, dict[Any, Row]] = defaultdict(dict)
    for row in begins:
        first[row.update, row.group].setdefault(row.token_ids if prompts else row.state, row)
    for (_, group), different in first.items():
        if len(different) > 1:
            one, other, *_ = different.values()
            yield (
                f"group {group!r} has {len(different)} starts, such as those of the episodes {one.episode!r} and "
                f"{other.episode!r}: returns from different starts can't be compared"
            )


def repeats(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that an episode is trained in one update, by its label, and by its tokens and their probabilities."""
    seen: dict[Any, int] = {}
    for (update, episode), rows in dump.episodes.items():
        sampled = tuple((row.token_ids, row.sampler_logprobs) for row in rows)
        keys = [episode] if any(None in each for each in sampled) else [episode, sampled]
        earlier = [seen[key] for key in keys if seen.setdefault(key, update) != update]
        if earlier:
            yield f"episode {episode!r} of update {update} was there in update {earlier[0]}: it is trained again"


def mask(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the loss counts the tokens of responses, and no others."""
    others = [row for row in dump.rows if row.kind != "response" and row.mask is None and row.advantage is not None]
    if all(row.mask is None for row in dump.rows) and not others:
        raise _MissingError("rows have no mask")
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
    _needs(dump, "token_ids")
    if not stated.eos:
        raise _MissingError("--eos ID says which tokens end a response")
    for row in dump.responses:
        last = (row.token_ids or (-1,))[-1]
        if not row.cut_off and last not in stated.eos:
            accepted = ", ".join(map(str, stated.eos))
            yield f"a response that wasn't cut off ends with the token {last}; accepted: {accepted} ({place(row)})"


def rewards(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that there is a trained response for each reward."""
    for row in dump.rows:
        if row.reward and (row.update, row.episode) not in dump.episodes:
            yield f"a span of kind {row.kind} is paid {row.reward:g} in an episode without responses ({place(row)})"
    for rows in dump.episodes.values():
        counted = [any(row.each("mask") or [True]) for row in rows]
        if any(counted) and not counted[-1] and rows[-1].reward:
            yield f"the last turn is paid {rows[-1].reward:g} and isn't trained ({place(rows[-1])})"


def weights(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that tokens weigh in the loss what its normaliser says, or that there is one which says so."""
    _needs(dump, "weight")
    for update in sorted({row.update for row in dump.responses}):
        rows = [row for row in dump.responses if row.update == update and any(row.each("mask") or [True])]
        if not rows:
            continue  # the mask's check says that nothing is trained
        given = np.concatenate([np.asarray(row.each("weight")) for row in rows])
        expected = {name: _weights(name, rows) for name in NORMALIZERS}
        exact = [name for name, each in expected.items() if np.allclose(given, each, rtol=1e-4, atol=1e-9)]
        alike = [name for name, each in expected.items() if np.allclose(given / given.sum(), each / each.sum(), 1e-4)]
        if stated.normalizer and stated.normalizer not in exact:
            total, own = expected[stated.normalizer].sum(), ", ".join(exact or alike) or "no known normaliser"
            yield (
                f"weights of update {update} are those of {own}: they add up to {given.sum():.6g}, and by "
                f"{stated.normalizer} to {total:.6g}"
            )
        elif not alike:
            yield f"weights of update {update} are in the proportions of no normaliser: {', '.join(NORMALIZERS)}"


def _weights(name: str, rows: Sequence[Row]) -> Floats:
    """Return (tokens,) what each token weighs by a normaliser."""
    lengths = np.array([row.length for row in rows])
    of_episode = defaultdict[Any, int](int)
    for row in rows:
        of_episode[row.episode] += row.length
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
    _needs(dump, "sampler_logprobs", "old_logprobs")
    apart = dump.values("sampler_logprobs") - dump.values("old_logprobs")
    mean, error = float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))
    if mean - 2 * error > stated.most_kl:
        yield (
            f"a token is {mean:.3g} nats likelier to the sampler than to the learner, of two standard errors of "
            f"{2 * error:.2g} (accepted: {stated.most_kl:g}): they differ in temperature, prompt or weights"
        )
    elif (worst := float(np.abs(apart).max())) > 1:
        yield f"a token's probability differs by up to {worst:.3g} nats between sampler and learner: accepted is 1"


def ratios(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the first ratio of new and old probabilities is 1."""
    _needs(dump, "old_logprobs", "new_logprobs")
    apart = np.abs(dump.values("new_logprobs") - dump.values("old_logprobs"))
    if apart.max() > 1e-3:
        yield (
            f"{(apart > 1e-3).mean():.0%} of the tokens have another probability in the first forward pass than before "
            f"it, by up to {apart.max():.3g} nats (accepted: 0.001): other weights, dropout or another temperature"
        )


CHECKS: dict[str, Callable[[Dump, Stated], Iterator[str]]] = {
    "labels": labels, "starts": starts, "repeats": repeats, "mask": mask, "end": end, "rewards": rewards,
    "loss weights": weights, "sampler": sampler, "first ratios": ratios,
}  # fmt: skip
