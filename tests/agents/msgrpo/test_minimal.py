"""The method in one file (examples/msgrpo_minimal.py) computes what the trainer computes, and learns."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import agents
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit.arithmetic import group_advantages
from agents.msgrpo.draws.sampling import sample_episodes
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import Learner, make_optimizer
from agents.msgrpo.rows import TokenRow, TrainingRow
from agents.prompt import PromptMap
from agents.turn import TurnRequest

ROOT = Path(__file__).parents[3]
TINY = Path(agents.__file__).parent / "tiny" / "weights" / "tiny"


@pytest.fixture(scope="module")
def minimal() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "examples"))
    import msgrpo_minimal

    yield msgrpo_minimal
    sys.path.remove(str(ROOT / "examples"))


@pytest.fixture
def tiny() -> tuple[Any, Any]:
    return AutoModelForCausalLM.from_pretrained(TINY).eval(), AutoTokenizer.from_pretrained(TINY)


def test_it_has_at_most_300_lines_and_needs_nothing_of_the_trainer() -> None:
    text = (ROOT / "examples" / "msgrpo_minimal.py").read_text()
    assert len(text.splitlines()) <= 300
    imported = {match[1] for match in re.finditer(r"^(?:from|import) (\w+)", text, re.MULTILINE)}
    assert imported - sys.stdlib_module_names == {"numpy", "torch", "transformers", "textgames"}


def test_advantages_and_draws_are_those_of_the_trainer(minimal: Any) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = rng.integers(4, size=24).tolist()
        returns = np.where(np.array(groups) == 2, 1.0, rng.choice([0.0, 0.5, 1.0], size=24))  # one group is all alike
        advantages = minimal.advantages_of(returns.tolist(), groups)
        np.testing.assert_allclose(advantages, group_advantages(returns, groups), rtol=0, atol=1e-12)
        assert not advantages[np.array(groups) == 2].any()
        drawn = minimal.draw(advantages, 9, np.random.default_rng(seed))
        assert drawn.tolist() == sample_episodes(advantages, 9, np.random.default_rng(seed)).tolist()


def test_the_prompt_is_the_one_that_the_trainer_asks_with(minimal: Any, tiny: Any) -> None:
    _, tokenizer = tiny
    request = TurnRequest("where you are", legal_actions=("left", "up"), instructions="the rules")
    (message,) = PromptMap("think")(request)
    ids = minimal.prompt_of("the rules", "where you are", ("left", "up"), tokenizer)
    assert tokenizer.decode(ids) == message.content  # tiny's chat template adds nothing


def test_gradients_on_the_same_episodes_are_those_of_the_trainer(minimal: Any, tiny: Any) -> None:
    model, tokenizer = tiny
    torch.manual_seed(0)
    settings = replace(minimal.Settings(), micro_batch=7)
    episodes = minimal.play(model, tokenizer, [3, 3, 5], settings)
    assert [episode.group for episode in episodes] == [0, 0, 1]
    steps = [(step, index) for index, episode in enumerate(episodes) for step in episode.steps]
    with torch.no_grad():
        now, _, exists = minimal.score(model, [step for step, _ in steps], settings.temperature)
    # ratios on both sides of the clip, as they are after optimiser steps
    old = [row[here] + 0.4 * torch.randn(int(here.sum())) for row, here in zip(now, exists, strict=True)]
    credit = [(1.3, -0.7, 0.4)[index] for _, index in steps]
    loss = minimal.gradient(model, [step for step, _ in steps], credit, old, settings)
    mine = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    config = MSGRPOConfig(
        temperature=settings.temperature, entropy_coefficient=settings.entropy_coefficient, minibatches=1,
        max_grad_norm=0.0, old_logprobs="sampling",
    )  # fmt: skip
    scorer = TokenScorer(model, temperature=config.temperature, chunk=64, autocast=None)
    packing, processes = choose_ways(scorer, config.packing), Processes()
    optimizer = processes.prepare(scorer, make_optimizer(model, config))
    learner = Learner(scorer, optimizer, config, processes, packing=packing)
    rows = [
        TrainingRow(TokenRow(tuple(step.prompt), tuple(step.response)), tuple(before.tolist()), credit[i], index, 0)
        for i, ((step, index), before) in enumerate(zip(steps, old, strict=True))
    ]
    stats = learner.update(rows, np.random.default_rng(0), learning_rate=0.0)
    assert loss == pytest.approx(stats.losses[0], abs=1e-5)
    largest = max(float(gradient.abs().max()) for gradient in mine.values())
    assert largest > 1e-3
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, mine[name], rtol=0, atol=1e-5 * largest, msg=name)


@pytest.mark.nightly
def test_it_learns_the_small_lake(minimal: Any, tiny: Any) -> None:
    model, tokenizer = tiny
    cool = replace(minimal.Settings(), temperature=0.5)
    fresh = range(1_000_000, 1_000_200)

    def wins() -> int:
        torch.manual_seed(1)
        return sum(int(episode.reward) for episode in minimal.play(model.eval(), tokenizer, fresh, cool))

    before = wins()
    minimal.train(model, tokenizer, replace(minimal.Settings(), iterations=30))
    after = wins()
    least, most = (scipy.stats.binomtest(count, 200).proportion_ci() for count in (after, before))
    assert least.low > most.high, (before, after)
