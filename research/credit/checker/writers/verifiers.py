"""Rows of traces of verifiers (read with 0.4), once a trainer such as prime-rl has stamped their advantages."""

from typing import Any, TextIO

from research.credit.checker.writers.write_rows import turns_of, write_episode


def write_trace(stream: TextIO, trace: Any, episode: int | str, update: int = 0) -> None:
    """Write a ``verifiers.v1`` trace: each of its branches, which are what is trained, is an episode.

    The group is the task's key; the episode is paid the trace's reward at its last turn.
    """
    for branch in trace.branches:
        columns = {"advantage": branch.advantages, "sampler_logprobs": branch.logprobs}
        columns["old_logprobs"] = branch.trainer_logprobs
        there = {name: values for name, values in columns.items() if values is not None}
        turns = turns_of([], branch.token_ids, branch.sampled_mask, **there)
        if turns:
            turns[-1]["reward"] = float(trace.reward)
        label = episode if len(trace.branches) == 1 else f"{episode}.{branch.index}"
        write_episode(stream, str(trace.task.key or trace.task.hash), label, turns, update)
