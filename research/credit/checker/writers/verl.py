"""Rows of verl's trainers for ``textbench check-credit`` (read with verl 0.9)."""

from typing import Any, TextIO

from research.credit.checker.writers.write_rows import turns_of, write_episode


def write_batch(stream: TextIO, data: Any, update: int = 0, episode_column: str = "") -> None:
    """Write a ``verl.DataProto`` once ``compute_advantage`` has given it advantages.

    A row of the batch is a whole episode, whose turns are the parts that ``response_mask`` counts; or it is a step of
    the episode that ``non_tensor_batch[episode_column]`` names, in their order, each paid the episode's return.
    The group is its ``uid``.
    """
    batch, named = data.batch, data.non_tensor_batch
    width = batch["prompts"].shape[1]
    episodes: dict[Any, list[dict[str, Any]]] = {}
    groups: dict[Any, str] = {}
    for i, uid in enumerate(named["uid"]):
        before, after = batch["attention_mask"][i][:width].bool(), batch["attention_mask"][i][width:].bool()
        columns = {"advantage": "advantages", "sampler_logprobs": "rollout_log_probs", "old_logprobs": "old_log_probs"}
        columns["value"] = "values"
        there = {name: batch[own][i][after].tolist() for name, own in columns.items() if own in batch}
        prompt, ids = batch["prompts"][i][before].tolist(), batch["responses"][i][after].tolist()
        turns = turns_of(prompt, ids, batch["response_mask"][i][after].tolist(), **there)
        if not turns:
            continue  # nothing of it was sampled
        turns[-1]["reward"] = float(batch["token_level_rewards"][i].sum())
        label = str(named[episode_column][i]) if episode_column else f"{update}.{i}"
        for earlier in episodes.get(label, []):
            earlier["reward"] = 0.0  # the return is one number, however many rows have it
        episodes.setdefault(label, []).extend(turns)
        groups[label] = str(uid)
    for label, turns in episodes.items():
        write_episode(stream, groups[label], label, turns, update)
