"""Episodes that verifiers plays are those of ``textbench run``, each turn a conversation of its own."""

import hashlib
import re
from functools import partial

import pytest

pytest.importorskip("textbench_verifiers", reason="needs textbench-verifiers: .ci/adapters verifiers")

from agents import EpisodeTask, load_agent, rollout
from tests.agents.openai_server import OpenAIServer
from tests.integrations.verifiers import evaluation
from textgames import SCENARIOS

pytestmark = pytest.mark.adapters

ONE_PLAYER = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) == 1]
SEVERAL = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) > 1]
LONG = {"cleanup-small", "werewolf-7", "cliff-walking-slippery"}  # some hundred turns


def listed_action(request) -> str:
    """One of the actions that the prompt lists, and now and then none; it depends on the request's text alone."""
    text = request["messages"][-1]["content"]
    listed = re.search(r"NAME is one of: (.*)\. Write one", text)
    names = [*listed[1].split(", "), "nowhere"] if listed else ["something"]
    digest = hashlib.sha256(text.encode()).digest()
    return f"<think>-</think><plan>-</plan><action>{names[digest[0] % len(names)]}</action>"


@pytest.fixture
def server():
    with OpenAIServer(respond=listed_action) as running:
        yield running


@pytest.fixture
def evaluate(server, tmp_path):
    return partial(evaluation.evaluate, server.base_url, tmp_path)


def as_textbench_plays(server, task: EpisodeTask, opponent: str | None = None, seat: str | None = None):
    """The episode as the loop of ``textbench run`` plays it with the same server."""
    model = load_agent("openai:local", base_url=server.base_url, temperature=0)
    players = SCENARIOS[task.scenario].game().players
    inside = model if opponent is None else load_agent(opponent)
    (episode,) = rollout({player: model if player == seat else inside for player in players}, [task])
    return episode


def outcome(trace) -> tuple[object, ...]:
    told = trace.info["textbench"]
    return trace.reward, trace.metrics["success"], round(trace.metrics["invalid_rate"], 9), told["actions"]


def outcome_of(episode, seat: str) -> tuple[object, ...]:
    steps = [step for step in episode.steps if step.player == seat]
    invalid = sum(not step.valid for step in steps) / max(len(steps), 1)
    return episode.returns[seat], episode.successes[seat], round(invalid, 9), [step.action for step in steps]


@pytest.mark.parametrize("name", [name for name in ONE_PLAYER if name not in LONG])
def test_one_player(name, evaluate, server):
    episodes = evaluate(taskset={"scenario": name, "episodes": 2}, sampling={"temperature": 0})
    assert len(episodes) == 2
    for played in episodes:
        (trace,) = played.traces
        assert played.ok, played.errors
        expected = as_textbench_plays(server, EpisodeTask.of(name, trace.info["textbench"]["seed"]))
        assert outcome(trace) == outcome_of(expected, "player_0")
        assert trace.num_turns == trace.num_branches == len(expected.steps)
        assert all([message.role for message in branch.messages] == ["user", "assistant"] for branch in trace.branches)


@pytest.mark.parametrize("name", [name for name in SEVERAL if name not in LONG])
def test_one_seat_against_opponents(name, evaluate, server):
    seat = SCENARIOS[name].game().players[-1]
    (played,) = evaluate(
        taskset={"scenario": name, "episodes": 1},
        env={"seat": seat, "opponents": "random"},
        sampling={"temperature": 0},
    )
    (trace,) = played.traces
    task = EpisodeTask.of(name, SCENARIOS[name].first_seed)
    assert outcome(trace) == outcome_of(as_textbench_plays(server, task, "random", seat), seat)


@pytest.mark.parametrize("name", [name for name in SEVERAL if name not in LONG])
def test_every_seat_an_agent(name, evaluate, server):
    (played,) = evaluate(
        taskset={"scenario": name, "episodes": 1}, env={"id": "textbench-self-play"}, sampling={"temperature": 0}
    )
    assert played.ok, played.errors
    expected = as_textbench_plays(server, EpisodeTask.of(name, SCENARIOS[name].first_seed))
    assert {trace.agent.name for trace in played.traces} == set(expected.returns)
    for trace in played.traces:
        assert outcome(trace) == outcome_of(expected, trace.agent.name)
        assert trace.agent.trainable


def test_group_shares_its_start_and_draws_its_transitions(evaluate, server):
    taskset = {"scenario": "frozen-lake-slippery", "split": "train", "episodes": 1}
    group = [played.traces[0] for played in evaluate(taskset=taskset, num_rollouts=6)]
    told = [trace.info["textbench"] for trace in group]
    assert {one["layout_seed"] for one in told} == {0}
    assert len({one["seed"] for one in told}) > 1
    assert len({trace.branches[0].messages[0].content for trace in group}) == 1
    for trace, one in zip(group, told, strict=True):
        task = EpisodeTask.of(
            "frozen-lake-slippery", one["seed"], layout_seed=0, protocol="default", format_penalty=1.0
        )
        assert outcome(trace) == outcome_of(as_textbench_plays(server, task), "player_0")


def test_prompt_that_comes_again_is_another_turn(evaluate, server):
    server.respond = lambda request: "<action>left</action>"  # into the wall of the first column, eight times
    # the default prompts tell how many moves are left, so that none comes again
    (played,) = evaluate(taskset={"scenario": "frozen-lake", "episodes": 1, "prompts": "without-clock"})
    (trace,) = played.traces
    assert len({request["messages"][0]["content"] for request in server.requests}) == 1
    assert trace.num_turns == trace.num_branches == 8


def test_stop_string_is_put_back_and_what_follows_is_cut(evaluate, server):
    server.respond = lambda request: "<action>down</action> or <action>up</action>"
    for sampling in ({"stop": ["</action>"]}, {}):
        (played,) = evaluate(
            taskset={"scenario": "frozen-lake", "episodes": 1}, sampling=sampling, run={"name": str(sampling)}
        )
        assert played.traces[0].metrics["invalid_rate"] == 0
    server.respond = lambda request: "<action>down"  # fell silent inside the tag
    (played,) = evaluate(taskset={"scenario": "frozen-lake", "episodes": 1})
    assert played.traces[0].metrics["invalid_rate"] == 1


def test_limit_of_turns_leaves_the_return_so_far(evaluate, server):
    server.respond = lambda request: "no idea"
    (played,) = evaluate(
        taskset={"scenario": "frozen-lake", "episodes": 1, "format_penalty": 0.5}, env={"player": {"max_turns": 3}}
    )
    (trace,) = played.traces
    assert (played.ok, trace.reward, trace.stop_condition) == (True, -1.5, "max_turns")
    assert trace.metrics == {"success": 0.0, "invalid_rate": 1.0}
    assert trace.info["textbench"]["complete"] is False


@pytest.mark.parametrize("env", [{}, {"id": "textbench-self-play"}])
def test_failed_provider_leaves_the_episode_unscored(env, evaluate, server):
    server.faults = {"400": 1.0}
    (played,) = evaluate(taskset={"scenario": "tic-tac-toe", "episodes": 1}, env=env)
    assert not played.ok
    assert all(not trace.ok and not trace.rewards for trace in played.traces)
    assert any("400" in error.message for trace in played.traces for error in trace.errors)
