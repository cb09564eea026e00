"""A small trainer whose rows are right, and changes of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.cli import main

EOS, GROUPS, SIZE = 2, 3, 4
Rows = list[dict[str, Any]]


def trained(credit: Callable[..., Any], *, updates: int = 1, seed: int = 0) -> Rows:
    """Play a corridor at random and write the rows of a small trainer; ``credit(rewards, g)`` makes its advantages.

    Rewards of a group are lists of (T,) arrays, and so are its advantages.
    """
    rng, rows = np.random.default_rng(seed), Rows()
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


def rloo(rewards: list[Any]) -> list[Any]:
    own = returns(rewards)
    return over_steps(rewards, own - (own.sum() - own) / (len(own) - 1))


def dr_grpo(rewards: list[Any]) -> list[Any]:
    return over_steps(rewards, returns(rewards) - returns(rewards).mean())


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


def checked(tmp_path: Path, rows: Rows, *options: str, capsys: Any) -> dict[str, tuple[str, str]]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = main(["check-credit", str(file), "--eos", str(EOS), "--json", *options])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert code == int(any(each["result"] == "failed" for each in findings))
    return {each["check"]: (each["result"], each["said"]) for each in findings}


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
