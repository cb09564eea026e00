"""No answer that was paid for is asked for again, and a run that is stopped leaves its agents with the same starts."""

import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from benchmark.runs.record import paid_tokens
from tests.agents.openai_server import MOVES, OpenAIServer
from tests.benchmark.helpers import ROOT, records_in, steps_in

HOT = ("--temperature", 1, "--quiet")
PRICED = ("--prices", "prices.toml")


@pytest.fixture(autouse=True)
def prices(workplace):
    rows = [f'[prices."{name}"]\ninput = 1000\noutput = 1000\n' for name in ("m", "a", "b")]
    Path("prices.toml").write_text("".join(rows))


def numbered():
    """A server's answers, no two of which are the same, as those of a model at temperature 1."""
    numbers = count()

    def respond(request):
        number = next(numbers)
        return f"<think>{number}</think><action>{MOVES[number % 4]}</action>"

    return respond


def answers_in(folder):
    return [turn.response for step in steps_in(folder) for turn in step.turns]


def done_of(folder):
    found = {}
    for key in RunFolder.open(Path(folder)).scored():
        found.setdefault(key.agents[0], set()).add(key.seed)
    return found


def test_a_killed_process_leaves_every_answer_that_had_arrived(textbench):
    with OpenAIServer(respond=numbered(), latency=0.02) as server:
        words = ("--base-url", server.base_url, "--scenario", "frozen-lake", *HOT, "--max-concurrency", 4)
        command = ("run", "--agent", "m=openai:m", *words, "--episodes", 12, "--out", "r")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen([sys.executable, "-m", "benchmark.cli", *map(str, command)], env=environment)
        while server.served["ok"] < 30:
            time.sleep(0.005)
        process.kill()
        process.wait()
        time.sleep(0.1)  # what was in flight ends
        before = Path("r/answers.jsonl").read_text().count("\n")
        assert before > 10
        assert textbench("resume", "r", "--quiet").code == 0
        asked = server.served["ok"]
    told = answers_in("r")
    assert len(set(told)) == len(told)
    assert asked - len(told) <= 4  # those that hadn't arrived when the process was killed
    assert not Path("r/answers.jsonl").exists()


def test_a_limit_on_money_leaves_the_agents_with_the_same_starts_and_loses_nothing(textbench, behind):
    with OpenAIServer(respond=numbered()) as server:
        words = (*HOT, *PRICED, "--max-concurrency", 8, "--episodes", 20, "--max-cost", 25)
        stopped = behind(server, *words, agents=("a=openai:m", "b=openai:m", "random"))
        assert "the money is used up" in stopped.err
        assert "which favours short episodes, as they end first" in " ".join(stopped.out.split())
        done = done_of("r")
        assert len(done["random"]) == 20
        assert min(len(done["a"]), len(done["b"])) > 3
        assert max(len(done["a"]), len(done["b"])) < 20
        assert len(done["a"] ^ done["b"]) <= 8
        assert textbench("resume", "r", "--quiet", "--max-cost", 1000).code == 0
        asked, tokens = server.served["ok"], server.tokens_served
    told = [answer for answer in answers_in("r") if "<plan>" not in answer]  # the random player plans
    cut_off = asked - len(told)
    assert 0 <= cut_off <= 8  # only requests that were in flight when the limit was reached are asked again
    paid = map(paid_tokens, records_in("r"))
    counted = sum(sum(counts[:2]) for players in paid for counts in players.values())
    assert counted <= tokens <= counted + 400 * cut_off


def test_an_episode_that_a_servers_fault_ended_is_played_again_from_what_was_answered(textbench, behind):
    answer, failing = numbered(), [True]

    def respond(request):
        text = answer(request)
        return text if not failing[0] or not text.startswith("<think>3<") else "x" * 2**21  # refused for its size

    with OpenAIServer(respond=respond) as server:
        words = ("--max-concurrency", 1, "--episodes", 1, "--max-retries", 0, "--max-tokens", 10**6, "--json")
        first = behind(server, *HOT, *words)
        assert (first.code, [row["episodes"] for row in json.loads(first.out)["scores"]]) == (1, [0])
        failing[0] = False
        assert textbench("resume", "r", "--quiet").code == 0
    told = answers_in("r")
    assert [int(text.split("<")[1].removeprefix("think>")) for text in told[:4]] == [0, 1, 2, 4]
    (record,) = records_in("r")
    assert record.measured["cached_tokens"][0] > 0  # the unscored record tells what these three have cost


@pytest.mark.parametrize("fault", ["401", "no-quota"])
def test_a_wrong_key_or_an_empty_account_ends_an_agent_after_a_few_requests(behind, fault):
    with OpenAIServer(faults={fault: 1.0}) as broken, OpenAIServer() as sound:
        there = ("--set", f"b.base_url={broken.base_url}", "--episodes", 40)
        done = behind(sound, *HOT, *there, agents=("a=openai:m", "b=openai:m"))
        assert broken.served[fault] <= 6
    assert done.code == 1
    assert "3 episodes of b failed one after the other: status 4" in done.err
    assert len(done_of("r")["a"]) == 40


def test_answers_that_cannot_be_read_are_asked_again(textbench, behind):
    with OpenAIServer(respond=numbered()) as server:
        behind(server, *HOT, *PRICED, "--episodes", 10, "--max-cost", 0.5)
        file = Path("r/answers.jsonl")
        (line, *rest) = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(line.replace(b"think", b"thimk") + b"".join(rest) + b"[1, 2")
        done = textbench("resume", "r", "--max-cost", 1000)
        assert done.code == 0
        assert "2 lines of answers.jsonl can't be read; what they had answered is asked again" in done.err
