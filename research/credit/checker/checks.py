"""Checks of a trainer's rows against each other: each passes, fails with a sentence, or lacks what it needs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from agents.msgrpo.credit import Floats
from research.credit.checker.explain import explain
from research.credit.checker.formulas import TOLERANCE
from research.credit.checker.rows import Dump, Row, place


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    result: Literal["passed", "failed", "not checked"]
    said: str = ""


class Stated(NamedTuple):
    """The statements about the trainer beside its rows."""

    method: str = ""
    normalizer: str = ""
    eos: tuple[int, ...] = ()
    most_kl: float = 0.01  # nats a token


class MissingError(Exception):
    """Says what rows lack for a check."""


def needs(dump: Dump, *names: str) -> None:
    """Raise a MissingError if the responses lack a field."""
    if lacking := [name for name in names if not dump.has(name)]:
        raise MissingError(f"responses have no {' and no '.join(lacking)}")


RARE = 7.0
"""Nats beyond those of all pairs of episodes: an equal pair is then a coincidence in one file of a thousand."""


def labels(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that an episode is in one group, with others if any group has some, and has each of its turns once."""
    members = defaultdict(set)
    for (update, episode), rows in dump.episodes.items():
        groups, turns = {row.group for row in rows}, [row.turn for row in rows]
        if len(groups) > 1:
            yield f"episode {episode!r} is in several groups, {', '.join(sorted(map(repr, groups)))}: accepted is one"
        if len(set(turns)) < len(turns):
            yield f"episode {episode!r} has {len(turns)} rows for {len(set(turns))} turns: a row is there twice"
        elif turns != list(range(len(turns))):
            missing = next(t for t, turn in enumerate(turns) if t != turn)
            yield f"episode {episode!r} has {len(turns)} turns and none numbered {missing}: a turn is left out"
        members[update, rows[0].group].add(episode)
    compared = {update for (update, _), episodes in members.items() if len(episodes) > 1}
    for (update, group), episodes in members.items():
        if len(episodes) == 1 and update in compared:  # if all are alone, the trainer compares no groups
            yield f"group {group!r} has a single episode: nothing is compared with it"


def starts(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the episodes of a group begin in one state."""
    begins: dict[Any, tuple[Any, ...]] = defaultdict(tuple)
    for row in dump.rows:
        if row.kind == "prompt" and row.turn == 0 and row.token_ids:  # a prompt may be several spans
            begins[row.update, row.group, row.episode] += row.token_ids
    states = {(row.update, row.group, row.episode): (row.state,) for row in dump.responses if row.turn == 0}
    begins = begins or {key: state for key, state in states.items() if state != (None,)}
    if not begins:
        raise MissingError("rows have neither states nor token_ids of the first prompts")
    first: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for (update, group, episode), start in begins.items():
        first[update, group].setdefault(start, episode)
    for (_, group), different in first.items():
        if len(different) > 1:
            one, other, *_ = different.values()
            yield (
                f"group {group!r} has {len(different)} starts, such as those of the episodes {one!r} and {other!r}: "
                "returns from different starts can't be compared"
            )


def repeats(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that no episode is trained in two updates: none with equal tokens, and an equal label or probabilities.

    Episodes that are likely by the sampler's own probabilities may well be played twice, and are left out.
    """
    seen: dict[Any, int] = {}
    for (update, episode), rows in dump.episodes.items():
        played = tuple((row.token_ids, row.length, row.state, row.action, row.reward) for row in rows)
        logprobs = tuple(row.sampler_logprobs for row in rows)
        keys: list[Any] = [(episode, played)]
        surprise = -sum(sum(own or ()) for own in logprobs)
        if None not in logprobs and surprise > RARE + 2 * np.log(len(dump.episodes)):
            keys.append((played, logprobs))
        earlier = [seen[key] for key in keys if seen.setdefault(key, update) != update]
        if earlier:
            yield f"episode {episode!r} of update {update} was there in update {earlier[0]}: it is trained again"


def rewards(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that there is a trained response for each reward."""
    for row in dump.rows:
        if row.reward and (row.update, row.episode) not in dump.episodes:
            yield f"a span of kind {row.kind} is paid {row.reward:g} in an episode without responses ({place(row)})"
    for rows in dump.episodes.values():
        counted, last = [row.trained.any() for row in rows], rows[-1]
        if any(counted) and not counted[-1] and last.reward and not last.cut_off:  # overlong responses are left out
            yield f"the last turn is paid {last.reward:g} and isn't trained ({place(last)})"


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


def check(dump: Dump, stated: Stated) -> list[Finding]:
    """Return the findings of all checks; a ConfigError if no method has the stated name."""
    findings = []
    for name, function in CHECKS.items():
        try:
            said = list(function(dump, stated))
        except MissingError as missing:
            findings.append(Finding(name, "not checked", str(missing)))
            continue
        more = f" (and {len(said) - 1:,} more like it)" if len(said) > 1 else ""
        findings.append(Finding(name, "failed", said[0] + more) if said else Finding(name, "passed"))
    return [*findings, _formula(dump, stated)]


def _formula(dump: Dump, stated: Stated) -> Finding:
    if any(row.advantage is None for row in dump.responses if row.trained.any()):
        return Finding("formula", "not checked", "responses that are trained have no advantage")
    with np.errstate(all="ignore"):  # numbers that overflow are those of no formula
        verdict = explain(dump, stated.method)
    if verdict.fault or verdict.lacks:
        return Finding("formula", "failed" if verdict.fault else "not checked", verdict.fault or verdict.lacks)
    (first, *others) = verdict.matches
    rounded = f", rounded to {verdict.rounded}" if verdict.rounded else ""
    also = f"; not told apart by these rows: {', '.join(each.name for each in others)}" if others else ""
    return Finding("formula", "passed", first.said + rounded + also)


CHECKS: dict[str, Callable[[Dump, Stated], Iterator[str]]] = {
    "labels": labels,
    "starts": starts,
    "repeats": repeats,
    "mask": mask,
    "end": end,
    "rewards": rewards,
    "loss weights": weights,
    "sampler": sampler,
    "first ratios": ratios,
}
