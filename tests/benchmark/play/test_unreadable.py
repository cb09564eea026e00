"""A model whose answers can't be read is stopped early, and its run's ending says why and what may help."""

import json
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer, random_move

LAKE = ("--scenario", "frozen-lake", "--max-concurrency", 2, "--out", "r")
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
def test_a_model_nothing_of_which_can_be_read_is_stopped_with_the_reason(textbench, workplace, cause):
    server, what, remedy = CAUSES[cause]
    with OpenAIServer(**server) as serving:
        command = ("run", "--agent", "m=openai:m", "--agent", "random", "--base-url", serving.base_url, *LAKE)
        done = textbench(*command, "--episodes", 10)
        asked = sum(serving.served.values())
        assert done.code == 1
        assert "the first 20 answers of m can't be read" in done.err
        assert what in done.err
        assert remedy in done.err
        assert asked <= 24
        assert sum(key.agents == ("random",) for key in RunFolder.open(Path("r")).scored()) == 10
        resumed = textbench("resume", "r")
        assert resumed.code == 0
        told = [why for _, why in answers() if why]
        assert f"100% of {len(told)} answers can't be read" in resumed.err
        assert ("a lenient reading, which no score goes by, reads 100% of them" in resumed.err) == (cause == "form")
        assert sum(serving.served.values()) - len(told) <= 2  # nothing was asked twice but what was in flight


def test_the_json_document_explains_the_answers_of_a_model_that_is_readable_at_times(textbench, workplace):
    def respond(request):
        text = random_move(request)
        return text if "<action>right" in text or "<action>down" in text else "right."

    with OpenAIServer(respond=respond) as server:
        command = ("run", "--agent", "m=openai:m", "--base-url", server.base_url, *LAKE, "--episodes", 5, "--json")
        done = textbench(*command)
    (told,) = json.loads(done.out)["unreadable"]
    assert told["agent"] == "m"
    assert told["answers"] == len(answers())
    assert told["causes"] == {"form": sum(why is not None for _, why in answers())}
    assert told["example"] == "right."
    assert told["unreadable"] / told["answers"] > 0.1
