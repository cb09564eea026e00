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


def conversations(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return a row for each episode: responses of two tokens, with an answer of one token between them."""
    rows: dict[str, list[Any]] = {name: [] for name in ("uid", "mask", "real", "reward")}
    for group, _ in np.ndindex(GROUPS, SIZE):
        turns = int(rng.integers(1, 5))
        mask = ([1, 1, 0] * turns)[:-1]
        rows["uid"].append(f"g{group}")
        rows["mask"].append(mask + [0] * (RESPONSE - len(mask)))
        rows["real"].append([1] * len(mask) + [0] * (RESPONSE - len(mask)))
        rows["reward"].append(float(rng.integers(0, 5)))
    return rows


def steps(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return a row for each step, paid its episode's return, as an agent loop that gives single steps has them."""
    rows: dict[str, list[Any]] = {name: [] for name in ("uid", "mask", "real", "reward", "episode")}
    for group, member in np.ndindex(GROUPS, SIZE):
        reward = float(rng.integers(0, 5))
        for _ in range(int(rng.integers(1, 5))):
            rows["uid"].append(f"g{group}")
            for name in ("mask", "real"):
                rows[name].append([1, 1] + [0] * (RESPONSE - 2))
            rows["reward"].append(reward)
            rows["episode"].append(f"g{group}.{member}")
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
    named = {name: np.array(rows[name], dtype=object) for name in ("uid", "episode") if name in rows}
    return compute_advantage(DataProto.from_dict(tensors, non_tensors=named), adv_estimator=estimator)


def main() -> None:
    """Write the three examples into the folder that the command names."""
    folder = Path(sys.argv[1])
    for name, make, estimator in (
        ("grpo", conversations, "grpo"),
        ("rloo", conversations, "rloo"),
        ("steps", steps, "grpo"),
    ):
        rng = np.random.default_rng(5)
        with (folder / f"verl-{name}.jsonl").open("w", encoding="utf-8") as stream:
            write_batch(stream, batch_of(make(rng), estimator, rng), 0, "episode" if make is steps else "")


if __name__ == "__main__":
    main()
