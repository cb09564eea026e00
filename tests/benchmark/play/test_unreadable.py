"""A model whose answers can't be read is stopped early, and its run says why; and what a run says before it begins."""

import json
from pathlib import Path

import pytest

from agents.models.embedded import READS, embedded_agents
from benchmark.play.agents.catalogue import agent_kinds
from benchmark.play.agents.options import AgentSpec
from benchmark.play.agents.players import not_cached, not_read, not_taken
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import find_scenarios
from tests.agents.openai_server import OpenAIServer, random_move

PLAY = ("--max-concurrency", 2, "--episodes")
CAUSES = {
    "form": (
        {"respond": lambda request: "right."},
        "an answer that isn't in the form asked for, such as 'right.'",
        "retry",
    ),
    "length": ({"respond": lambda request: "Let me look. " * 300}, "cut off at the token limit", "--max-tokens"),
    "reasoning": (
        {"respond": lambda request: "<think>" + "Hm. " * 600},
        "cut off at the token limit while still reasoning",
        "--set m.reasoning_tokens=N",
    ),
    "tool_calls": ({"faults": {"tool-call": 1.0}}, "a call of a tool, and none is offered", "--prompts FILE"),
}


def answers():
    return [each for record in RunFolder.open(Path("r")).records() for step in record.steps for each in step.answers]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_model_nothing_of_which_can_be_read_is_stopped_with_the_reason(textbench, behind, cause):
    server, what, remedy = CAUSES[cause]
    with OpenAIServer(**server) as serving:
        done = behind(serving, *PLAY, 10, agents=("m=openai:m", "random"))
        asked = sum(serving.served.values())
        assert done.code == 1
        for said in ("the first 20 answers of m can't be read", what, remedy):
            assert said in done.err
        assert asked <= 24
        assert sum(key.agents == ("random",) for key in RunFolder.open(Path("r")).scored()) == 10
        resumed = textbench("resume", "r")
        assert resumed.code == 0
        told = [why for _, why in answers() if why]
        assert f"100% of {len(told)} answers can't be read" in resumed.err
        assert ("a lenient reading, which no score goes by, reads 100% of them" in resumed.err) == (cause == "form")
        assert sum(serving.served.values()) - len(told) <= 2  # nothing was asked twice but what was in flight


def test_the_json_document_explains_the_answers_of_a_model_that_is_readable_at_times(behind):
    def respond(request):
        text = random_move(request)
        return text if "<action>right" in text or "<action>down" in text else "right."

    with OpenAIServer(respond=respond) as server:
        done = behind(server, *PLAY, 5, "--json")
    (told,) = json.loads(done.out)["unreadable"]
    unread = sum(why is not None for _, why in answers())
    assert (told["agent"], told["answers"], told["causes"]) == ("m", len(answers()), {"form": unread})
    assert told["example"] == "right."
    assert told["unreadable"] / told["answers"] > 0.1


def told(name: str, spec: str, *scenarios: str) -> list[str]:
    return [*not_read(AgentSpec(name, spec), find_scenarios(scenarios).values())]


def test_only_what_a_model_has_learnt_goes_without_a_word():
    pytest.importorskip("torch")
    assert told("tiny", "tiny", "frozen-lake", "snake", "snake-poison") == []
    assert told("random", "random", "blackjack") == []
    (sentence,) = told("tiny", "tiny", "frozen-lake", "sliding-puzzle", "blackjack")
    assert sentence.startswith("tiny can't read blackjack, sliding-puzzle: it has learnt frozen-lake, ")
    assert "hf:Qwen/" in sentence
    assert "tiny-legal" in sentence


def test_an_option_is_named_that_no_agent_has():
    pytest.importorskip("torch")
    given = {"mode": "dirct", "temperature": 1.0, "episodes": 3}
    options = RunOptions(**given, given=frozenset(given))
    scripted, model = AgentSpec("random", "random"), AgentSpec("tiny", "tiny")
    untaken = "takes --temperature, --mode, so nothing changes by it"
    assert not_taken([scripted], options) == [f"random takes no{untaken[5:]}"]
    assert not_taken([scripted] * 2, options) == [f"no agent of this run {untaken}"]
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
    pytest.importorskip("torch")
    kinds = {kind.spec: kind.text for kind in agent_kinds()}  # what list and doctor print
    for name in embedded_agents():
        assert kinds[name].endswith(f"; reads {', '.join(READS[name])} alone")
    assert "alone" not in kinds["hf:PATH_OR_REPO"]


def test_commands_of_a_single_agent_say_it_too(textbench):
    """They ask for long before they print anything, and what they then print is of answers that can't be read."""
    pytest.importorskip("torch")
    done = textbench("inspect", "tiny", "--scenario", "kuhn-poker", "--samples", 1, "--max-tokens", 4)
    assert done.code == 0, done.err
    assert "tiny can't read kuhn-poker: it has learnt frozen-lake, " in done.err
    assert "100% of its responses couldn't be read" in " ".join(done.out.split())
