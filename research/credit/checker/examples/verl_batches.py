"""Write the examples that verl's own estimators made, in an environment with verl 0.9: two turns and more an episode.

    python -m research.credit.checker.examples.verl_batches research/credit/checker/examples

Episodes are random tokens with rewards of their own; ``compute_advantage`` of verl's trainer does the rest.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from research.credit.checker.writers.verl import write_batch

GROUPS, SIZE, PROMPT, RESPONSE = 2, 4, 3, 12


def rows_of(rng: np.random.Generator, by_step: bool) -> dict[str, list[Any]]:
    """Return a row for each episode: responses of two tokens, with an answer of one token between them; or one for each
    step, paid its episode's return, as an agent loop that gives single steps has them."""
    rows: dict[str, list[Any]] = {name: [] for name in ("uid", "mask", "real", "reward", "episode")}
    for group, member in np.ndindex(GROUPS, SIZE):
        turns, reward = int(rng.integers(1, 5)), float(rng.integers(0, 5))
        for mask in [[1, 1]] * turns if by_step else [([1, 1, 0] * turns)[:-1]]:
            padding = [0] * (RESPONSE - len(mask))
            values = (f"g{group}", mask + padding, [1] * len(mask) + padding, reward, f"g{group}.{member}")
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    return rows


def batch_of(rows: dict[str, list[Any]], estimator: str, rng: np.random.Generator) -> Any:
    """Return verl's batch with its advantages."""
    import torch
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    n, real = len(rows["uid"]), torch.tensor(rows["real"])
    paid = torch.zeros(n, RESPONSE)
    for i, reward in enumerate(rows["reward"]):
        paid[i, int(real[i].sum()) - 1] = reward
    groups = [int(uid[1:]) for uid in rows["uid"]]
    tensors = {
        "prompts": torch.tensor([[group + 10] * PROMPT for group in groups]),
        "responses": torch.from_numpy(rng.integers(20, 90, (n, RESPONSE))),
        "attention_mask": torch.cat([torch.ones(n, PROMPT, dtype=torch.long), real], dim=1),
        "response_mask": torch.tensor(rows["mask"]),
        "token_level_rewards": paid,
    }
    if estimator == "gae":
        tensors["values"] = torch.from_numpy(rng.normal(1, 0.5, (n, RESPONSE))).float()
    named = {name: np.array(rows[name], dtype=object) for name in ("uid", "episode")}
    data = DataProto.from_dict(tensors, non_tensors=named)
    return compute_advantage(data, adv_estimator=estimator, gamma=0.99, lam=0.9, config={})


def main() -> None:
    """Write the examples into the folder that the command names."""
    for name in ("grpo", "rloo", "gae", "steps"):
        rng, by_step = np.random.default_rng(5), name == "steps"
        batch = batch_of(rows_of(rng, by_step), "grpo" if by_step else name, rng)
        with (Path(sys.argv[1]) / f"verl-{name}.jsonl").open("w", encoding="utf-8") as stream:
            write_batch(stream, batch, 0, "episode" if by_step else "")


if __name__ == "__main__":
    main()
