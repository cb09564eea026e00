"""``textbench check-credit`` passes trainers that are right, and names their formula."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, load
from agents.msgrpo.credit import gae
from benchmark.cli import main
from research.credit.checker.writers.write_rows import write_episode
from research.credit.tests.checker.small_trainer import (
    Rows,
    all_steps,
    by_token,
    changed,
    checked,
    dr_grpo,
    grpo,
    last_of_each,
    over_steps,
    responses,
    returns,
    rloo,
    to_bfloat16,
    to_go,
    to_go_by_time,
    trained,
)  # fmt: skip

CORRECT = {
    "msgrpo": (grpo, "msgrpo"),
    "TRL's eps": (lambda r: grpo(r, 1e-4), "eps = 0.0001"),
    "population": (lambda r: grpo(r, 1e-6, 0), "population's std"),
    "no eps": (lambda r: grpo(r, 0.0), "scale = group_std, eps = "),
    "rloo": (rloo, "rloo"),
    "dr_grpo": (dr_grpo, "dr_grpo"),
    "twice dr_grpo": (lambda r: [2 * a for a in dr_grpo(r)], "times 1.5"),
    "rtg": (to_go_by_time, "spread = to_go, among = time, baseline = mean, scale = none"),
    "all steps": (all_steps, "spread = to_go, among = group, baseline = mean, scale = group_std, eps = 1e-08"),
    "reinforce": (to_go, "spread = to_go, among = group, baseline = none"),
    "a mean of earlier returns": (
        lambda r: over_steps(r, returns(r) - 0.25),
        "baseline = none, scale = none, times 1, ",
    ),
    "returns alone": (lambda r: over_steps(r, returns(r)), "spread = episode, among = group, baseline = none"),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_trainers_pass_and_their_formula_is_named(name, tmp_path, capsys):
    credit, said = CORRECT[name]
    found = checked(tmp_path, trained(credit, updates=2), "--normalizer", "token", capsys=capsys)
    assert {result for result, _ in found.values()} == {"passed"}, found
    assert said in found["formula"][1]


def test_our_own_trainer_passes(tmp_path, capsys):
    class Written(MSGRPOTrainer):
        def update(self, rows, rng, batch):
            turns: dict[int, list[Any]] = {}
            for row in rows:
                turn = {"prompt_ids": row.prompt, "response_ids": row.response, "advantage": row.advantage}
                turn |= {
                    "sampler_logprobs": row.logprobs,
                    "reward": batch.trajectories[row.trajectory].rewards[row.step],
                }
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
    model, tokenizer = load(config)
    trainer = Written(model, tokenizer, config=config)
    for _ in range(2):
        trainer.iterate()
    assert main(["check-credit", str(tmp_path / "rows.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"passed +starts", shown)
    assert re.search(r"passed +formula +msgrpo", shown)


def rounded(to: Callable[[float], Any]) -> Rows:
    return changed(trained(grpo), lambda row: {"advantage": float(to(row["advantage"]))})


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
    return [{name: value for name, value in row.items() if name != "weight"} for row in masked]


def likely(rows: Rows) -> Rows:
    """Play the same in two updates, with labels of their own: each token had a probability of nearly 1."""
    names = ("sampler_logprobs", "old_logprobs", "new_logprobs")
    sure = changed(rows, lambda row: dict.fromkeys(names, [-0.001] * len(row["token_ids"])))
    return [
        {**row, "update": update, "episode": f"{update}: {row['episode']}", "group": f"{update}: {row['group']}"}
        for update in (0, 1)
        for row in sure
    ]


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


def without_values(rows: Rows) -> Rows:
    return [{name: value for name, value in row.items() if name != "value"} for row in rows]


def half_precision(row: dict[str, Any]) -> dict[str, Any]:
    return {"new_logprobs": [one + 0.015 * (-1) ** at * (at > 1) for at, one in enumerate(row["old_logprobs"])]}


def prompts_in_two_spans(rows: Rows) -> Rows:
    return [
        {**row, "token_ids": part}
        for row in rows
        for part in (
            [row["token_ids"][:1], row["token_ids"][1:]] if row.get("kind") == "prompt" else [row["token_ids"]]
        )
    ]


RIGHT: dict[str, tuple[Callable[[], Rows], str, str, str]] = {
    "bfloat16": (lambda: rounded(to_bfloat16), "formula", "passed", "msgrpo, rounded to bfloat16"),
    "float16": (lambda: rounded(np.float16), "formula", "passed", "msgrpo, rounded to float16"),
    "three digits": (lambda: rounded(lambda a: round(a, 3)), "formula", "passed", "msgrpo, rounded to 3 decimals"),
    "large returns": (lambda: large(trained(grpo)), "formula", "passed", "dr_grpo;"),
    "whitened": (lambda: whitened(trained(grpo, updates=2)), "formula", "passed", "by update, plus"),
    "a critic": (
        lambda: changed(trained(grpo), by_token(lambda n, a: [a + 0.3 * at**2 for at in range(n)])),
        "formula", "not checked", "a critic's depend on its values",
    ),
    "a turn-level critic": (
        lambda: without_values(valued()), "formula", "not checked", "not a formula of rewards alone",
    ),
    "a critic's values": (valued, "formula", "passed", "values with discount 0.97 and lambda 0.9"),
    "a critic's values, whitened": (
        lambda: whitened(valued()), "formula", "passed", "values with discount 0.97 and lambda 0.9, times",
    ),
    "a critic's values by token": (lambda: valued(by_turn=False), "formula", "passed", "discount 0.97 and lambda 0.9"),
    "overlong responses": (lambda: overlong(trained(grpo)), "formula", "passed", "msgrpo;"),
    "one episode each": (
        lambda: [{**row, "group": row["episode"]} for row in trained(to_go)], "labels", "passed", "",
    ),
    "labels by update": (
        lambda: [{**row, "episode": row["episode"][2:]} for row in trained(grpo, updates=2)], "repeats", "passed", "",
    ),
    "played alike": (lambda: likely(trained(grpo)), "repeats", "passed", ""),
    "prompts of two spans": (lambda: prompts_in_two_spans(trained(grpo)), "starts", "passed", ""),
    "half precision": (lambda: changed(trained(grpo), half_precision), "first ratios", "passed", ""),
    "tied groups": (
        lambda: changed(trained(grpo), lambda row: {"advantage": 0.0, "reward": 0.0}),
        "formula", "not checked", "are equal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_other_trainers_that_are_right_pass(name, tmp_path, capsys):
    rows, check, result, said = RIGHT[name]
    found = checked(tmp_path, rows(), capsys=capsys)
    assert found[check][0] == result, found
    assert said in found[check][1]
    assert not [name for name, each in found.items() if each[0] == "failed"], found
