"""Traces of the real verifiers 0.4, with advantages as a trainer stamps them."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("verifiers.v1", reason="needs verifiers: .ci/adapters verifiers makes an environment with it")

from research.credit.checker.checks import Stated, check
from research.credit.checker.rows import read
from research.credit.checker.writers.verifiers import write_trace

pytestmark = pytest.mark.adapters


def trace(group: int, turns: int, reward: float, advantage: float, rng: np.random.Generator) -> Any:
    """A conversation whose answers have a token of scaffold and three that were sampled."""
    from verifiers.v1 import AssistantMessage, MessageNode, UserMessage
    from verifiers.v1.trace import Reward, Trace, TraceTask

    nodes: list[Any] = []
    for turn in range(turns):
        asked = rng.integers(10, 99, 3).tolist() if turn else [5, 6, 7 + group]
        parent = len(nodes) - 1 if nodes else None
        nodes.append(MessageNode(message=UserMessage(content="go"), token_ids=asked, mask=[False] * 3, parent=parent))
        said = [3, *rng.integers(10, 99, 3).tolist()]
        nodes.append(
            MessageNode(
                message=AssistantMessage(content="left"), sampled=True, token_ids=said,
                mask=[False, True, True, True], logprobs=[-1.0, -0.5, -0.25], advantages=[advantage] * 3,
                parent=len(nodes) - 1,
            )
        )  # fmt: skip
    task = TraceTask.model_construct(type="Lake", data=None, key=f"lake-{group}", hash=None)
    return Trace.model_construct(task=task, nodes=nodes, calls=[], rewards={"r": Reward(score=reward)})


@pytest.mark.parametrize(("by_turn", "result"), [(False, "passed"), (True, "failed")])
def test_advantages_of_traces_are_named_and_those_by_turn_are_found(by_turn, result, tmp_path):
    rng, file = np.random.default_rng(3), tmp_path / "rows.jsonl"
    with file.open("w") as stream:
        for group in range(2):
            turns, returns = rng.integers(1, 5, 4), rng.integers(0, 4, 4).astype(float)
            baseline = np.repeat(returns, turns).mean() if by_turn else returns.mean()
            for i, (n, r) in enumerate(zip(turns.tolist(), returns.tolist(), strict=True)):
                write_trace(stream, trace(group, n, r, r - baseline, rng), f"{group}.{i}")
    found = {each.check: each for each in check(read(file), Stated())}
    assert found["starts"].result == found["labels"].result == "passed"
    assert found["formula"].result == result
    assert ("a longer episode counts more often" if by_turn else "dr_grpo") in found["formula"].said
