"""What a run says before its first episode: games that a very small model has never read, options that nobody has."""

import pytest

from agents.models.embedded import READS, embedded_agents
from benchmark.play.agents.catalogue import agent_kinds
from benchmark.play.agents.options import AgentSpec
from benchmark.play.agents.players import not_cached, not_read, not_taken
from benchmark.play.options import RunOptions
from benchmark.runs.plan import find_scenarios

pytest.importorskip("torch")


def told(name: str, spec: str, *scenarios: str) -> list[str]:
    return [*not_read(AgentSpec(name, spec), find_scenarios(scenarios).values())]


def test_only_what_a_model_has_learnt_goes_without_a_word():
    assert told("tiny", "tiny", "frozen-lake", "snake", "snake-poison") == []
    assert told("random", "random", "blackjack") == []
    (sentence,) = told("tiny", "tiny", "frozen-lake", "sliding-puzzle", "blackjack")
    assert sentence.startswith("tiny can't read blackjack, sliding-puzzle: it has learnt frozen-lake, ")
    assert "hf:Qwen/" in sentence
    assert "tiny-legal" in sentence


def test_an_option_is_named_that_no_agent_has():
    options = RunOptions(
        mode="dirct", temperature=1.0, episodes=3, given=frozenset({"mode", "temperature", "episodes"})
    )
    scripted, model = AgentSpec("random", "random"), AgentSpec("tiny", "tiny")
    assert not_taken([scripted], options) == ["random takes no --temperature, --mode, so nothing changes by it"]
    assert not_taken([scripted] * 2, options) == [
        "no agent of this run takes --temperature, --mode, so nothing changes by it"
    ]
    assert not_taken([scripted, model], options) == []
    assert not_taken([scripted], RunOptions(mode=None, episodes=3, given=frozenset({"episodes"}))) == []
    assert not_taken([AgentSpec("mine", "python:Mine")], options) == []


def test_a_cache_that_keeps_nothing_is_named():
    cards = [{"name": name, "settings": settings} for name, settings in
             (("random", {}), ("warm", {"temperature": 0.7}), ("cold", {"temperature": 0.0}))]  # fmt: skip
    options = RunOptions(cache="answers.sqlite")
    assert not_cached(cards[:2], options) == [
        "--cache keeps responses of temperature 0 alone; those of warm are drawn anew each time"
    ]
    assert not_cached(cards, options) == not_cached(cards[:1], options) == not_cached(cards[:2], RunOptions()) == []


def test_lists_and_doctor_say_what_a_model_reads():
    kinds = {kind.spec: kind.text for kind in agent_kinds()}  # what list and doctor print
    for name in embedded_agents():
        assert kinds[name].endswith(f"; reads {', '.join(READS[name])} alone")
    assert "alone" not in kinds["hf:PATH_OR_REPO"]


def test_commands_of_a_single_agent_say_it_too(textbench):
    """They ask for long before they print anything, and what they then print is of answers that can't be read."""
    done = textbench("inspect", "tiny", "--scenario", "kuhn-poker", "--samples", 1, "--max-tokens", 4)
    assert done.code == 0, done.err
    assert "tiny can't read kuhn-poker: it has learnt frozen-lake, " in done.err
    assert "100% of its responses couldn't be read" in " ".join(done.out.split())
