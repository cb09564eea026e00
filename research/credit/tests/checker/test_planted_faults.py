"""``textbench check-credit`` finds planted faults of trainers, and nothing else is found."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from research.credit.tests.checker.small_trainer import (
    GROUPS,
    SIZE,
    Rows,
    by_token,
    changed,
    checked,
    grpo,
    last_of_each,
    over_steps,
    responses,
    returns,
    to_bfloat16,
    to_go_by_time,
    trained,
    weighed,
)  # fmt: skip
from research.credit.tests.checker.test_right_trainers import valued


def only_last(rows: Rows) -> Rows:
    last = last_of_each(rows)
    return changed(rows, lambda row: {} if id(row) in last else {"advantage": 0.0})


def shifted(rows: Rows) -> Rows:
    own = responses(rows)
    for row, after in pairwise(own):
        if row["episode"] == after["episode"]:
            row["advantage"] = after["advantage"]
    return rows


def rotated(rows: Rows) -> Rows:
    """Give each episode the advantage of the next of its group."""
    first = {row["episode"]: row["advantage"] for row in responses(rows)}
    names = list(first)
    nexts = {name: names[i // SIZE * SIZE + (i + 1) % SIZE] for i, name in enumerate(names)}
    return changed(rows, lambda row: {"advantage": first[nexts[row["episode"]]]})


def relabelled(rows: Rows) -> Rows:
    """Label groups as if they were every nth episode, while advantages are those of episodes in a row."""
    numbers = {name: i for i, name in enumerate(dict.fromkeys(row["episode"] for row in rows))}
    return [{**row, "group": numbers[row["episode"]] % GROUPS} for row in rows]


def samples(rewards: list[Any], own: bool = False) -> list[Any]:
    """Each turn as a sample of its own, paid the episode's return or its own reward."""
    flat = np.concatenate(rewards if own else over_steps(rewards, returns(rewards)))
    each = rewards if own else over_steps(rewards, returns(rewards))
    return [(one - flat.mean()) / (flat.std(ddof=1) + 1e-6) for one in each]


def late(rewards: list[Any]) -> list[Any]:
    return grpo([np.append(paid[:-1], 0.0) for paid in rewards])


def tempered(factor: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {"sampler_logprobs": [factor * one for one in row["sampler_logprobs"]]}


def unlike_first(row: dict[str, Any]) -> dict[str, Any]:
    first, *others = row["old_logprobs"]
    return {"sampler_logprobs": [first - 1.5, *others]}


def late_values(rows: Rows) -> Rows:
    """Give each turn the values of the one after it, as far as it has tokens."""
    for row, after in pairwise(responses(rows)):
        row["value"] = (after["value"] * 9)[: len(row["value"])] if isinstance(row["value"], list) else after["value"]
    return rows


def two_values(rows: Rows) -> Rows:
    """Pay every other episode 1 and credit it 5, the others 4.9; each group is an update."""
    last = last_of_each(rows)
    won = {id(row): int(row["episode"][-1]) % 2 for row in rows}
    own = changed(
        rows, lambda row: {"reward": float(id(row) in last and won[id(row)]), "advantage": 4.9 + 0.1 * won[id(row)]}
    )
    return weighed([{**row, "update": int(row["group"][2:])} for row in own])


FAULTS: dict[str, tuple[Callable[[], Rows], str, str]] = {
    "only the last turn": (lambda: only_last(trained(grpo)), "formula", "only the last turn"),
    "one turn off": (lambda: shifted(trained(to_go_by_time)), "formula", "to the turn after it"),
    "another episode's": (lambda: rotated(trained(grpo)), "formula", "other episodes of the same group"),
    "labels in another order": (lambda: relabelled(trained(grpo)), "formula", "labels and rows part"),
    "turns as samples": (lambda: trained(samples), "formula", "a longer episode counts more often"),
    "turns by own reward": (lambda: trained(lambda r: samples(r, True)), "formula", "isn't credited"),
    "late reward": (lambda: trained(late), "formula", "arrives too late"),
    "noise": (lambda: trained(lambda r: [np.arange(len(one)) ** 1.5 for one in r]), "formula", "no known formula"),
    "values of the turn after": (
        lambda: late_values(valued()), "formula", "they aren't GAE over the rows' values either",
    ),
    "values of the token after": (
        lambda: late_values(valued(by_turn=False)), "formula", "and they aren't GAE over the rows' values",
    ),
    "a critic's, with the opposite sign": (
        lambda: [{**row, "advantage": -row["advantage"]} if "value" in row else row for row in valued()],
        "formula", "they aren't GAE over the rows' values either",
    ),
    "a critic's values, and no advantage": (
        lambda: [{**row, "advantage": 0.0} if "value" in row else row for row in valued()],
        "formula", "all advantages are 0",
    ),
    "only the last turn's reward": (
        lambda: trained(lambda r: grpo([np.append(0 * paid[:-1], paid[-1]) for paid in r])),
        "formula", "what earlier turns were paid is left out",
    ),
    "noise in another update": (
        lambda: [
            {**row, "advantage": number % 5.0} if row["update"] and "advantage" in row else row
            for number, row in enumerate(trained(grpo, updates=2))
        ],
        "formula", "the nearest, msgrpo, has",
    ),
    "noise at a turn": (
        lambda: changed(trained(grpo), lambda row: {"advantage": row["advantage"] + 0.05}, 99),
        "formula", "has 97% of them",
    ),
    "small noise in bfloat16": (
        lambda: changed(trained(grpo), lambda row: {"advantage": to_bfloat16(len(row["token_ids"]) ** 2 / 1000)}),
        "formula", "no known formula",
    ),
    "prompt trained": (lambda: [{**row, "mask": True} for row in trained(grpo)], "mask", "of kind prompt are trained"),
    "end not trained": (
        lambda: changed(trained(grpo), lambda row: {"mask": [*[True] * (len(row["token_ids"]) - 1), False]}),
        "mask", "some aren't trained",
    ),
    "nothing trained": (lambda: changed(trained(grpo), lambda row: {"mask": False}), "mask", "no token"),
    "no end": (
        lambda: weighed(changed(trained(grpo), lambda row: {
            name: row[name][:-1] for name in ("token_ids", "sampler_logprobs", "old_logprobs", "new_logprobs")
        })),
        "end", "accepted: 2",
    ),
    "other starts": (
        lambda: [{**row, "token_ids": [9, 9]} if row["episode"] == "0.1.2" and row.get("kind") == "prompt" else row
                 for row in trained(grpo)],
        "starts", "2 starts",
    ),
    "trained again": (
        lambda: [*(rows := trained(grpo)), *[{**row, "update": 1} for row in rows]], "repeats", "trained again",
    ),
    "a row twice": (lambda: [*(rows := trained(grpo)), responses(rows)[0]], "labels", "twice"),
    "a turn left out": (lambda: [row for row in trained(grpo) if row["turn"] != 1], "labels", "left out"),
    "two groups": (lambda: changed(trained(grpo), lambda row: {"group": "0.0"}, 7), "labels", "several groups"),
    "the last turn masked": (
        lambda: (lambda rows, last: changed(rows, lambda row: {"mask": id(row) not in last}))(
            rows := trained(grpo), last_of_each(rows)
        ),
        "rewards", "isn't trained",
    ),
    "weights": (lambda: weighed(trained(grpo), "response"), "loss weights", "are those of response"),
    "temperature": (lambda: changed(trained(grpo), tempered(0.6)), "sampler", "differ in temperature"),
    "log-probabilities before the temperature": (
        lambda: changed(trained(grpo), tempered(1.5)), "sampler", "aren't of the distribution it drew from",
    ),
    "a few tokens' probabilities": (
        lambda: changed(trained(grpo), unlike_first, 40), "sampler", "more than 1 nat",
    ),
    "all 0": (lambda: changed(trained(grpo), lambda row: {"advantage": 0.0}), "formula", "differ in 3 of 3 groups"),
    "opposite sign": (
        lambda: changed(trained(grpo), lambda row: {"advantage": -row["advantage"]}), "formula", "the opposite sign",
    ),
    "the last token alone": (
        lambda: changed(trained(grpo), by_token(lambda n, a: [0.0] * (n - 1) + [a])), "formula", "at some tokens alone",
    ),
    "divided among tokens": (
        lambda: changed(trained(grpo), by_token(lambda n, a: [0.0] * (n - 1) + [n * a])),
        "formula", "in the mean of a response's tokens",
    ),
    "two values with an offset": (
        lambda: two_values(trained(grpo)),
        "formula", "no known formula",
    ),
    "weights changed": (
        lambda: changed(trained(grpo), lambda row: {"new_logprobs": [one - 0.1 for one in row["old_logprobs"]]}),
        "first ratios", "100% of them",
    ),
}  # fmt: skip


ALSO = {
    "labels in another order": {"starts"},
    "end not trained": {"loss weights"},
    "a row twice": {"loss weights", "formula"},
    "a turn left out": {"loss weights", "formula"},
    "two groups": {"formula"},
    "the last turn masked": {"loss weights"},
}
"""Other checks that a fault fails as well."""


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found_and_nothing_else(name, tmp_path, capsys):
    rows, check, said = FAULTS[name]
    found = checked(tmp_path, rows(), "--normalizer", "token", capsys=capsys)
    assert found[check][0] == "failed", found
    assert said in found[check][1]
    others = {name for name, each in found.items() if each[0] == "failed"} - {check}
    assert others == ALSO.get(name, set()), found
