"""``textbench check-credit`` finds the planted faults of a small trainer and passes trainers that are right."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, load
from agents.msgrpo.credit import gae
from benchmark.cli import main
from research.credit.checker.checks import Stated, check
from research.credit.checker.rows import Dump, Row
from research.credit.checker.writers.write_rows import write_episode

EOS, GROUPS, SIZE = 2, 3, 4
Rows = list[dict[str, Any]]


def trained(credit: Callable[..., Any], updates: int = 1) -> Rows:
    """Play a corridor at random and write the rows of a small trainer; ``credit(rewards)`` makes its advantages.

    Rewards of a group are lists of (T,) arrays, and so are its advantages.
    """
    rng, rows = np.random.default_rng(0), Rows()
    for update, g in np.ndindex(updates, GROUPS):
        lengths = rng.integers(2, 5, SIZE)
        rewards = [np.round(rng.normal(0, 0.3, n) + (np.arange(n) == n - 1) * rng.integers(0, 2), 3) for n in lengths]
        for i, (paid, advantages) in enumerate(zip(rewards, credit(rewards), strict=True)):
            own = {"group": f"{update}.{g}", "episode": f"{update}.{g}.{i}", "update": update}
            for t, (reward, advantage) in enumerate(zip(paid, advantages, strict=True)):
                prompt = [5, 6, 7 + g] if t == 0 else [5, *rng.integers(10, 20, 2).tolist()]
                ids = [*rng.integers(10, 20, rng.integers(1, 4)).tolist(), EOS]
                logprobs = np.round(-rng.exponential(1.0, len(ids)), 5).tolist()
                kind = "observation" if t else "prompt"
                rows.append({**own, "turn": t, "kind": kind, "token_ids": prompt, "mask": False})
                rows.append({
                    **own, "turn": t, "token_ids": ids, "reward": float(reward), "advantage": float(advantage),
                    "mask": True, "sampler_logprobs": logprobs, "old_logprobs": logprobs, "new_logprobs": logprobs,
                    "state": f"{t}:{prompt}",
                })  # fmt: skip
    return weighed(rows)


def weighed(rows: Rows, by: str = "token") -> Rows:
    """Give all trained tokens the weight of a normaliser."""
    for update in {row["update"] for row in rows}:
        responses = [row for row in rows if row["update"] == update and "advantage" in row]
        tokens, episodes = sum(len(row["token_ids"]) for row in responses), {row["episode"] for row in responses}
        for row in responses:
            per_response = 1 / len(responses) / len(row["token_ids"])
            row["weight"] = {"token": 1 / tokens, "response": per_response, "episode": 1 / len(episodes)}[by]
    return rows


def returns(rewards: list[Any]) -> Any:
    return np.array([paid.sum() for paid in rewards])


def over_steps(rewards: list[Any], each: Any) -> list[Any]:
    return [np.full(len(paid), one) for paid, one in zip(rewards, each, strict=True)]


def grpo(rewards: list[Any], eps: float = 1e-6, ddof: int = 1) -> list[Any]:
    own = returns(rewards)
    return over_steps(rewards, (own - own.mean()) / (own.std(ddof=ddof) + eps))


def to_go(rewards: list[Any]) -> list[Any]:
    return [paid[::-1].cumsum()[::-1] for paid in rewards]


def to_go_by_time(rewards: list[Any]) -> list[Any]:
    """REINFORCE with returns-to-go, less the mean of the group's at the same time."""
    own = to_go(rewards)
    return [np.array([g - np.mean([o[t] for o in own if len(o) > t]) for t, g in enumerate(each)]) for each in own]


def all_steps(rewards: list[Any]) -> list[Any]:
    """Returns-to-go, normalised over all steps of the group."""
    flat = np.concatenate(to_go(rewards))
    return [(each - flat.mean()) / (flat.std(ddof=1) + 1e-8) for each in to_go(rewards)]


def checked(rows: Rows, normalizer: str = "") -> dict[str, tuple[str, str]]:
    dump = Dump([Row.model_validate(row) for row in rows])
    return {each.check: (each.result, each.said) for each in check(dump, Stated("", normalizer, (EOS,)))}


def responses(rows: Rows) -> Rows:
    return [row for row in rows if "advantage" in row]


def changed(rows: Rows, change: Callable[[dict[str, Any]], dict[str, Any] | None], every: int = 1) -> Rows:
    """Change every nth response."""
    chosen = {id(row) for row in responses(rows)[::every]}
    return [{**row, **(change(row) or {})} if id(row) in chosen else row for row in rows]


def last_of_each(rows: Rows) -> set[int]:
    return {id(row) for row in {row["episode"]: row for row in responses(rows)}.values()}


def by_token(make: Callable[[int, float], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Make a response's advantages from its number of tokens and the advantage that it had."""
    return lambda row: {"advantage": make(len(row["token_ids"]), row["advantage"])}


def to_bfloat16(value: float) -> float:
    bits = np.array([value], np.float32).view(np.uint32) + 0x8000 & 0xFFFF0000
    return float(bits.astype(np.uint32).view(np.float32)[0])


# ---------------------------------------------------------------- faults


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


def samples(rewards: list[Any]) -> list[Any]:
    """Each turn as a sample of its own, paid its own reward."""
    flat = np.concatenate(rewards)
    return [(one - flat.mean()) / (flat.std(ddof=1) + 1e-6) for one in rewards]


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

    def paid(row: dict[str, Any]) -> dict[str, Any]:
        won = int(row["episode"][-1]) % 2
        return {"reward": float(won and id(row) in last), "advantage": 4.9 + 0.1 * won}

    return weighed([{**row, "update": int(row["group"][2:])} for row in changed(rows, paid)])


def valued(by_turn: bool = True) -> Rows:
    """Credit by GAE over random values, of turns or of tokens."""
    rng, episodes = np.random.default_rng(4), dict[str, Rows]()
    for row in responses(rows := trained(grpo, updates=2)):
        episodes.setdefault(row["episode"], []).append(row)
    for own in episodes.values():
        sizes = [1 if by_turn else len(row["token_ids"]) for row in own]
        paid = [[0.0] * (size - 1) + [row["reward"]] for size, row in zip(sizes, own, strict=True)]
        values = rng.normal(0.5, 0.2, sum(sizes))
        advantages, ends = gae(np.concatenate(paid), values, 0.0, 0.97, 0.9), np.cumsum(sizes)
        for row, size, end in zip(own, sizes, ends, strict=True):
            v, a = values[end - size : end].tolist(), advantages[end - size : end].tolist()
            row |= {"value": v[0], "advantage": a[0]} if by_turn else {"value": v, "advantage": a}
    return rows


def last_masked(rows: Rows) -> Rows:
    last = last_of_each(rows)
    return changed(rows, lambda row: {"mask": id(row) not in last})


FAULTS: dict[str, tuple[Callable[[Rows], Rows], str, str]] = {
    "only the last turn": (only_last, "formula", "only the last turn"),
    "one turn off": (lambda _: shifted(trained(to_go_by_time)), "formula", "to the turn after it"),
    "another episode's": (rotated, "formula", "other episodes of the same group"),
    "labels in another order": (relabelled, "formula", "labels and rows part"),
    "turns by own reward": (lambda _: trained(samples), "formula", "isn't credited"),
    "late reward": (
        lambda _: trained(lambda r: grpo([np.append(paid[:-1], 0.0) for paid in r])), "formula", "arrives too late",
    ),
    "noise": (lambda _: trained(lambda r: [np.arange(len(one)) ** 1.5 for one in r]), "formula", "no known formula"),
    "values of the turn after": (
        lambda _: late_values(valued()), "formula", "they aren't GAE over the rows' values either",
    ),
    "values of the token after": (
        lambda _: late_values(valued(by_turn=False)), "formula", "and they aren't GAE over the rows' values",
    ),
    "a critic's, with the opposite sign": (
        lambda _: changed(valued(), lambda row: {"advantage": -row["advantage"]}),
        "formula", "they aren't GAE over the rows' values either",
    ),
    "a critic's values, and no advantage": (
        lambda _: changed(valued(), lambda row: {"advantage": 0.0}), "formula", "all advantages are 0",
    ),
    "noise in another update": (
        lambda _: [
            {**row, "advantage": number % 5.0} if row["update"] and "advantage" in row else row
            for number, row in enumerate(trained(grpo, updates=2))
        ],
        "formula", "the nearest, msgrpo, has",
    ),
    "noise at a turn": (
        lambda rows: changed(rows, lambda row: {"advantage": row["advantage"] + 0.05}, 99), "formula", "has 97% of them"
    ),
    "small noise in bfloat16": (
        lambda rows: changed(rows, by_token(lambda n, a: to_bfloat16(n**2 / 1000))), "formula", "no known formula",
    ),
    "prompt trained": (lambda rows: [{**row, "mask": True} for row in rows], "mask", "of kind prompt are trained"),
    "end not trained": (
        lambda rows: changed(rows, lambda row: {"mask": [*[True] * (len(row["token_ids"]) - 1), False]}),
        "mask", "some aren't trained",
    ),
    "nothing trained": (lambda rows: changed(rows, lambda row: {"mask": False}), "mask", "no token"),
    "no end": (
        lambda rows: weighed(changed(rows, lambda row: {
            name: row[name][:-1] for name in ("token_ids", "sampler_logprobs", "old_logprobs", "new_logprobs")
        })),
        "end", "accepted: 2",
    ),
    "other starts": (
        lambda rows: [{**row, "token_ids": [9, 9]} if row["episode"] == "0.1.2" and row.get("kind") == "prompt" else row
                      for row in rows],
        "starts", "2 starts",
    ),
    "trained again": (lambda rows: [*rows, *[{**row, "update": 1} for row in rows]], "repeats", "trained again"),
    "a row twice": (lambda rows: [*rows, responses(rows)[0]], "labels", "twice"),
    "a turn left out": (lambda rows: [row for row in rows if row["turn"] != 1], "labels", "left out"),
    "two groups": (lambda rows: changed(rows, lambda row: {"group": "0.0"}, 7), "labels", "several groups"),
    "the last turn masked": (last_masked, "rewards", "isn't trained"),
    "weights": (lambda rows: weighed(rows, "response"), "loss weights", "are those of response"),
    "temperature": (lambda rows: changed(rows, tempered(0.6)), "sampler", "differ in temperature"),
    "log-probabilities before the temperature": (
        lambda rows: changed(rows, tempered(1.5)), "sampler", "aren't of the distribution it drew from",
    ),
    "a few tokens' probabilities": (lambda rows: changed(rows, unlike_first, 40), "sampler", "more than 1 nat"),
    "all 0": (lambda rows: changed(rows, lambda row: {"advantage": 0.0}), "formula", "differ in 3 of 3 groups"),
    "opposite sign": (
        lambda rows: changed(rows, lambda row: {"advantage": -row["advantage"]}), "formula", "the opposite sign",
    ),
    "the last token alone": (
        lambda rows: changed(rows, by_token(lambda n, a: [0.0] * (n - 1) + [a])), "formula", "at some tokens alone",
    ),
    "divided among tokens": (
        lambda rows: changed(rows, by_token(lambda n, a: [0.0] * (n - 1) + [n * a])),
        "formula", "in the mean of a response's tokens",
    ),
    "two values with an offset": (two_values, "formula", "no known formula"),
    "weights changed": (
        lambda rows: changed(rows, lambda row: {"new_logprobs": [one - 0.1 for one in row["old_logprobs"]]}),
        "first ratios", "100% of them",
    ),
}  # fmt: skip
"""What is changed of a right trainer's rows, the check that has to find it, and what it has to say."""
ALSO = {
    "labels in another order": {"starts"}, "end not trained": {"loss weights"}, "two groups": {"formula"},
    "a row twice": {"loss weights", "formula"}, "a turn left out": {"loss weights", "formula"},
    "the last turn masked": {"loss weights"},
}  # fmt: skip
"""Other checks that a fault fails as well."""


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found_and_nothing_else(name):
    change, check, said = FAULTS[name]
    found = checked(change(trained(grpo)), "token")
    assert said in found[check][1]
    assert {name for name, each in found.items() if each[0] == "failed"} == {check} | ALSO.get(name, set()), found


# ---------------------------------------------------------------- right trainers


CORRECT = {
    "msgrpo": (grpo, "msgrpo"),
    "TRL's eps": (lambda r: grpo(r, 1e-4), "eps = 0.0001"),
    "population": (lambda r: grpo(r, 1e-6, 0), "population's std"),
    "no eps": (lambda r: grpo(r, 0.0), "scale = group_std, eps = "),
    "rloo": (lambda r: over_steps(r, SIZE / (SIZE - 1) * (returns(r) - returns(r).mean())), "rloo"),
    "dr_grpo": (lambda r: over_steps(r, returns(r) - returns(r).mean()), "dr_grpo"),
    "twice dr_grpo": (lambda r: over_steps(r, 2 * (returns(r) - returns(r).mean())), "times 1.5"),
    "rtg": (to_go_by_time, "spread = to_go, among = time, baseline = mean, scale = none"),
    "all steps": (all_steps, "spread = to_go, among = group, baseline = mean, scale = group_std, eps = 1e-08"),
    "reinforce": (to_go, "spread = to_go, among = group, baseline = none"),
    "a mean of earlier returns": (lambda r: over_steps(r, returns(r) - 0.25), "baseline = none, scale = none, times 1"),
    "returns alone": (lambda r: over_steps(r, returns(r)), "spread = episode, among = group, baseline = none"),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_trainers_pass_and_their_formula_is_named(name):
    credit, said = CORRECT[name]
    found = checked(trained(credit, updates=2), "token")
    assert {result for result, _ in found.values()} == {"passed"}, found
    assert said in found["formula"][1]


def test_our_own_trainer_passes(tmp_path, capsys):
    class Written(MSGRPOTrainer):
        def update(self, rows, rng, batch):
            turns: dict[int, list[Any]] = {}
            for row in rows:
                paid = batch.trajectories[row.trajectory].rewards[row.step]
                turn = {"prompt_ids": row.prompt, "response_ids": row.response, "advantage": row.advantage}
                turn |= {"sampler_logprobs": row.logprobs, "reward": paid}
                turns.setdefault(row.trajectory, []).append(turn)
            with (tmp_path / "rows.jsonl").open("a") as stream:
                for number, own in sorted(turns.items()):
                    group = f"{self.iteration}: {batch.trajectories[number].group}"
                    write_episode(stream, group, f"{self.iteration}.{number}", own, self.iteration)
            return super().update(rows, rng, batch)

    config = MSGRPOConfig(
        model="tiny", scenarios=("frozen-lake",), groups=2, group_size=4, temperature=1.25, max_response_tokens=40,
        episode_sampling="off", iterations=2, samples_every=0, threads=1, device="cpu", eval_every=0,
    )  # fmt: skip
    trainer = Written(*load(config), config=config)
    for _ in range(2):
        trainer.iterate()
    assert main(["check-credit", str(tmp_path / "rows.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"passed +starts", shown)
    assert re.search(r"passed +formula +msgrpo", shown)


def large(rows: Rows) -> Rows:
    """Pay 1,000 more at the end of each episode, and compare returns in float32."""
    last = last_of_each(rows)
    rows = changed(rows, lambda row: {"reward": row["reward"] + 1000} if id(row) in last else None)
    totals: dict[str, dict[str, float]] = {}
    for row in responses(rows):
        own = totals.setdefault(row["group"], {})
        own[row["episode"]] = own.get(row["episode"], 0.0) + row["reward"]
    means = {group: np.float32(np.mean(np.array([*own.values()], np.float32))) for group, own in totals.items()}
    return changed(
        rows, lambda row: {"advantage": float(np.float32(totals[row["group"]][row["episode"]]) - means[row["group"]])}
    )


def whitened(rows: Rows) -> Rows:
    """Whiten the advantages of an update over its turns once more."""
    for update in (0, 1):
        own = [row for row in responses(rows) if row["update"] == update]
        flat = np.array([row["advantage"] for row in own])
        for row, each in zip(own, (flat - flat.mean()) / flat.std(), strict=True):
            row["advantage"] = float(each)
    return rows


def overlong(rows: Rows) -> Rows:
    """Leave a turn that was cut off, the last of its episode and paid, out of the loss."""
    last = last_of_each(rows)
    masked = changed(
        rows, lambda row: {"mask": False, "cut_off": True, "advantage": 0.0} if id(row) in last else None, 3
    )
    return without(masked, "weight")


def likely(rows: Rows) -> Rows:
    """Play the same in two updates, with labels of their own: each token had a probability of nearly 1."""
    names = ("sampler_logprobs", "old_logprobs", "new_logprobs")
    sure = changed(rows, lambda row: dict.fromkeys(names, [-0.001] * len(row["token_ids"])))
    labels = ("episode", "group")
    return [{**row, "update": n, **{name: f"{n}: {row[name]}" for name in labels}} for n in (0, 1) for row in sure]


def without(rows: Rows, name: str) -> Rows:
    return [{own: value for own, value in row.items() if own != name} for row in rows]


def half_precision(row: dict[str, Any]) -> dict[str, Any]:
    return {"new_logprobs": [one + 0.015 * (-1) ** at * (at > 1) for at, one in enumerate(row["old_logprobs"])]}


def prompts_in_two_spans(rows: Rows) -> Rows:
    def spans(row: dict[str, Any]) -> list[Any]:
        ids = row["token_ids"]
        return [ids[:1], ids[1:]] if row.get("kind") == "prompt" else [ids]

    return [{**row, "token_ids": span} for row in rows for span in spans(row)]


def rounded(to: Callable[[float], Any]) -> Callable[[Rows], Rows]:
    return lambda rows: changed(rows, lambda row: {"advantage": float(to(row["advantage"]))})


RIGHT: dict[str, tuple[Callable[[Rows], Rows], str, str, str]] = {
    "bfloat16": (rounded(to_bfloat16), "formula", "passed", "msgrpo, rounded to bfloat16"),
    "float16": (rounded(np.float16), "formula", "passed", "msgrpo, rounded to float16"),
    "three digits": (rounded(lambda a: round(a, 3)), "formula", "passed", "msgrpo, rounded to 3 decimals"),
    "large returns": (large, "formula", "passed", "dr_grpo;"),
    "whitened": (lambda _: whitened(trained(grpo, updates=2)), "formula", "passed", "by update, plus"),
    "a critic": (
        lambda rows: changed(rows, by_token(lambda n, a: [a + 0.3 * at**2 for at in range(n)])),
        "formula", "not checked", "a critic's depend on its values",
    ),
    "a turn-level critic": (
        lambda _: without(valued(), "value"), "formula", "not checked", "not a formula of rewards alone",
    ),
    "a critic's values": (lambda _: valued(), "formula", "passed", "values with discount 0.97 and lambda 0.9"),
    "a critic's values by token": (
        lambda _: valued(by_turn=False), "formula", "passed", "discount 0.97 and lambda 0.9",
    ),
    "overlong responses": (overlong, "formula", "passed", "msgrpo;"),
    "one episode each": (
        lambda _: [{**row, "group": row["episode"]} for row in trained(to_go)], "labels", "passed", "",
    ),
    "labels by update": (
        lambda _: [{**row, "episode": row["episode"][2:]} for row in trained(grpo, updates=2)], "repeats", "passed", "",
    ),
    "played alike": (likely, "repeats", "passed", ""),
    "prompts of two spans": (prompts_in_two_spans, "starts", "passed", ""),
    "half precision": (lambda rows: changed(rows, half_precision), "first ratios", "passed", ""),
    "tied groups": (
        lambda rows: changed(rows, lambda row: {"advantage": 0.0, "reward": 0.0}), "formula", "not checked", "are equal"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_other_trainers_that_are_right_pass(name):
    change, check, result, said = RIGHT[name]
    found = checked(change(trained(grpo)))
    assert found[check][0] == result, found
    assert said in found[check][1]
    assert not [name for name, each in found.items() if each[0] == "failed"], found
