"""Looking inside: exact scores against a plain computation, sampled ones against a known player, regret against the
solver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents import Decoding, EpisodeSession, EpisodeTask, LanguageAgentPolicy, PromptMap, Turn, TurnRequest, load_agent
from agents.analysis.action_probabilities import action_probabilities, answer_after, sample_responses
from agents.analysis.exploitability import measure
from agents.analysis.inspection import exact_regret, inspect_episode, random_positions, score_actions
from agents.models.scripted import ScriptedModel
from textgames.scenarios import SCENARIOS
from textgames.solving.equilibrium import exploitability
from textgames.solving.game_tree import expand
from textgames.strategy.kuhn_poker import KuhnPoker


class Mostly:
    """Says ``right`` three times out of four and something unreadable else."""

    name = "mostly"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        rngs = [np.random.default_rng(one.seed) for one in requests if isinstance(one, TurnRequest)]
        return [Turn("right" if rng.random() < 0.75 else "to the right!") for rng in rngs]


def test_values_of_a_search_are_called_so():
    inspection = inspect_episode(load_agent("planner"), "snake", SCENARIOS["snake"].seed(0), samples=2)
    assert inspection.value_source == "search"
    assert len(inspection.steps) == len(inspection.episode.steps)
    assert {(one.source, one.after_reasoning) for one in inspection.steps} == {("sampled", None)}


def test_sampled_probabilities_invalid_ones_and_regret():
    inspection = inspect_episode(Mostly(), "frozen-lake", 10_000, samples=400)
    for one in inspection.steps:
        assert one.probabilities["right"] == pytest.approx(0.75, abs=0.08)
        assert one.invalid_probability == pytest.approx(1 - one.probabilities["right"])
        # an invalid response executes the first action
        right, default = one.values["right"], one.values["left"]
        expected = one.probabilities["right"] * right + one.invalid_probability * default
        assert one.regret == pytest.approx(max(one.values.values()) - expected)


def test_regret_is_exact_and_that_of_uniform_play_is_its_own_yardstick():
    positions = random_positions([EpisodeTask.of("nim", seed) for seed in range(6)])
    found = exact_regret(load_agent("random"), positions)
    assert found.mean == pytest.approx(found.uniform)
    assert found.low < found.mean < found.high
    assert (found.invalid, found.positions) == (pytest.approx(0), len(positions))
    with pytest.raises(ValueError, match="mostly's action probabilities aren't known"):
        exact_regret(Mostly(), positions)
    with pytest.raises(ValueError, match="has no exact yardstick"):
        random_positions([EpisodeTask.of("werewolf-5", 0)])


def test_what_cannot_be_inspected_is_said():
    with pytest.raises(ValueError, match="unknown scenario 'frozen-lak'"):
        inspect_episode(load_agent("random"), "frozen-lak", 0)
    with pytest.raises(ValueError, match="samples must be a whole number of at least 1"):
        inspect_episode(load_agent("random"), "frozen-lake", 10_000, samples=0)
    assert score_actions(LanguageAgentPolicy(ScriptedModel(["right"])), (), "", ("left",)) is None


@pytest.fixture(scope="module")
def model():
    """It was never trained."""
    pytest.importorskip("torch")
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import Recipe, imitation

    recipe = Recipe.quick(examples=300, steps=1, hidden_size=16, intermediate_size=32, layers=2, heads=2, kv_heads=1)
    tokenizer = imitation.make_tokenizer(imitation.demonstrate(recipe))
    return TransformersModel(imitation.make_model(recipe, tokenizer), tokenizer, name="untrained")


@pytest.mark.slow
def test_a_model_that_cannot_answer_plays_the_default(model):
    certain = LanguageAgentPolicy(model, decoding=Decoding(max_tokens=4, temperature=0.0))
    found, tree = measure(certain, KuhnPoker()), expand(KuhnPoker())
    assert (found.source, found.samples, found.invalid) == ("known", None, 1.0)
    passive = {each.key: {each.default: 1.0} for each in tree.information_sets}
    assert found.value == pytest.approx(exploitability(tree, passive))


def plain_probability(model: Any, ids: Sequence[int], start: int, temperature: float) -> float:
    import torch

    total = 1.0
    for position in range(start, len(ids)):
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([list(ids[:position])])).logits[0, -1].double()
        total *= float((logits / temperature).softmax(-1)[ids[position]])
    return total


@pytest.mark.parametrize(
    ("given", "temperature"), [("", 0.5), ("<think>goal is right</think><plan>right</plan><action>", 0.0)]
)
def test_scores_equal_a_plain_computation(model, given, temperature):
    policy = LanguageAgentPolicy(model, PromptMap(mode="think"), Decoding(temperature=temperature))
    prompt = policy.prompt_map(TurnRequest("Board: 4 wide, 4 high", "Play.", ("left", "right")))
    actions = ("left", "right", "up")
    model.model.train()
    scores = score_actions(policy, prompt, given, actions)
    assert scores is not None
    assert model.model.training  # as scoring has found it
    model.model.eval()
    (prompt_ids,) = model.encode([prompt])
    for action in actions:
        answer = model.tokenizer(f"{given or '<action>'}{action}</action>")["input_ids"]
        before = len(model.tokenizer(given)["input_ids"]) if given else 0
        ids = [*prompt_ids, *answer]
        expected = plain_probability(model, ids, len(prompt_ids) + before, temperature or 1.0)
        assert scores[action] == pytest.approx(expected, rel=1e-4)
    assert sum(scores.values()) <= 1.0


def test_scores_behind_a_prefix_are_those_given_the_prefix():
    """p(<action>NAME</action>) = p(<action>) p(NAME</action> | <action>): the tiny model's tag is one token."""
    pytest.importorskip("transformers")
    plain: Any = load_agent("tiny", mode="direct", temperature=1.0)
    asked: Any = load_agent("tiny", mode="direct", temperature=1.0, prompts="prefixed")
    request = EpisodeSession("frozen-lake", 10_000).request
    actions = request.legal_actions
    without = PromptMap("direct", texts=replace(asked.prompt_map.texts, prefix={}))(request)
    whole: Any = score_actions(plain, without, "", actions)
    given: Any = score_actions(asked, asked.prompt_map(request), "", actions)
    ratios = [whole[action] / given[action] for action in actions]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-4)
    assert ratios[0] < 0.1  # the prefix was worth something
    found = action_probabilities(asked, [request])
    assert found.source == "scored"
    assert found.probabilities[0] == pytest.approx(given)
    assert score_actions(asked, asked.prompt_map(request), "<action>", actions) == pytest.approx(given)


def test_the_answer_alone_completes_any_prefix():
    rests = [answer_after(prefix, "up") for prefix in ("<think>", "I play <act", "up</plan><action>")]
    assert rests == ["<action>up</action>", "ion>up</action>", "up</action>"]


def test_a_server_that_is_not_there_is_asked_once():
    asked = []

    class Gone(Mostly):
        def act(self, requests):
            asked.extend(requests)
            return [Turn("", finish_reason="error", error="connection refused") for _ in requests]

        async def act_async(self, request):
            return self.act([request])[0]

    requests = [TurnRequest(f"Here is cell {number}.", legal_actions=("left", "right")) for number in range(50)]
    with pytest.raises(RuntimeError, match="sampling responses failed: connection refused"):
        sample_responses(Gone(), requests, 64)
    assert len(asked) == 1
