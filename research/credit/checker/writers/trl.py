"""Rows of a ``trl.GRPOTrainer`` for ``textbench check-credit`` (read with TRL 1.16; one process)."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from research.credit.checker.writers.write_rows import turns_of, write_episode

Batch = Mapping[str, Any]


def write_batches(trainer: Any, path: Path, steps_per_episode: int = 0) -> None:
    """Make a trainer write every batch that it learns from to ``path``.

    A sample is a whole episode, whose turns are the parts that its tool mask counts, or one of ``steps_per_episode``
    steps that stand together, as those of :class:`textbench.integrations.trl.StepRollouts` do. A group's label is the
    row of the data set; an episode is paid by the reward functions, weighted, at its last turn. Evaluations are left
    out.
    """
    make, pay = trainer._generate_and_score_completions, trainer._calculate_rewards
    updates, paid = count(), list[float]()

    def calculate_rewards(inputs: Any, *others: Any) -> Any:
        rewards = pay(inputs, *others)
        paid[:] = (rewards * trainer.reward_weights.to(rewards.device)).nansum(dim=1).tolist()
        return rewards

    def generate_and_score(inputs: list[dict[str, Any]]) -> Any:
        labels = [str(row) for row in inputs]  # before a rollout adds columns to them
        batch = make(inputs)
        if trainer.model.training:
            update = next(updates)
            samples = [_turns(batch, i) for i in range(len(labels))]
            with path.open("a", encoding="utf-8") as stream:
                for first in range(0, len(labels), steps_per_episode or 1):
                    turns = [turn for own in samples[first : first + (steps_per_episode or 1)] for turn in own]
                    if not turns:
                        continue  # nothing of it was sampled
                    turns[-1]["reward"] = paid[first]
                    if steps_per_episode:  # drawn steps, whose first isn't the episode's
                        turns = [{**turn, "prompt_ids": ()} for turn in turns]
                    write_episode(stream, f"{update}: {labels[first]}", f"{update}.{first}", turns, update)
        return batch

    trainer._calculate_rewards, trainer._generate_and_score_completions = calculate_rewards, generate_and_score


def _turns(batch: Batch, i: int) -> list[dict[str, Any]]:
    """Return the turns of sample i: its completion, cut where the tool mask changes."""
    real = batch["completion_mask"][i].bool()
    ids = batch["completion_ids"][i][real].tolist()
    sampled = batch["tool_mask"][i][real].tolist() if "tool_mask" in batch else [1] * len(ids)
    columns = {"sampler_logprobs": "sampling_per_token_logps", "old_logprobs": "old_per_token_logps"}
    there = {name: batch[own][i][real].tolist() for name, own in columns.items() if batch.get(own) is not None}
    prompt = batch["prompt_ids"][i][batch["prompt_mask"][i].bool()].tolist()
    advantage = float(batch["advantages"][i])
    return [{**turn, "advantage": advantage} for turn in turns_of(prompt, ids, sampled, **there)]
