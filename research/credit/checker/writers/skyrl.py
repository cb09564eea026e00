"""Rows of SkyRL's trainers for ``textbench check-credit`` (run with skyrl 0.3)."""

from typing import Any, TextIO

from research.credit.checker.writers.write_rows import turns_of, write_episode


def write_batch(stream: TextIO, data: Any, update: int = 0) -> None:
    """Write a ``TrainingInputBatch`` once ``compute_advantages_and_returns`` has given it advantages.

    A row of the batch is a whole episode, whose turns are the parts that ``loss_mask`` counts; or, in step-wise
    training, a step, and episodes end at ``is_last_step``. The group is its uid.
    """
    groups, width = data.metadata["uids"], data["response_mask"].shape[1]
    last = data.metadata.get("is_last_step") or [True] * len(groups)
    names = {"sampler_logprobs": "rollout_logprobs", "old_logprobs": "action_log_probs", "value": "values"}
    columns = {name: own for name, own in names.items() if data.get(own) is not None} | {"advantage": "advantages"}
    turns: list[dict[str, Any]] = []
    for i, (group, ends) in enumerate(zip(groups, last, strict=True)):  # rows of padding follow and have no uid
        there, real = data["response_mask"][i].bool(), data["attention_mask"][i].bool()
        ids = data["sequences"][i][real].tolist()
        prompt, response = ids[: -int(there.sum())], ids[-int(there.sum()) :]
        by_token = {name: data[own][i][-width:][there].tolist() for name, own in columns.items()}
        sampled, paid = data["loss_mask"][i][there].tolist(), data["rewards"][i][there].tolist()
        found = turns_of(prompt, response, sampled, reward=paid, **by_token)
        turns += [{**turn, "reward": sum(turn["reward"])} for turn in found]
        if ends:
            write_episode(stream, str(group), f"{update}.{i}", turns, update)
            turns = []
