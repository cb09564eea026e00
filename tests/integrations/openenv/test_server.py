"""A game behind OpenEnv's routes, played by OpenEnv's client: its episodes are those of our own loop."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install -e '.[openenv]', or .ci/adapters openenv")

import requests
from openenv.core.mcp_client import MCPToolClient

from agents import EpisodeSession, EpisodeTask, PromptMap, load_agent, rollout
from tests.integrations.openenv.serving import Chooser, choose, play, served
from textbench.integrations.openenv import ServedGame, TextbenchAction, TextbenchEnv
from textgames import SCENARIOS

pytestmark = pytest.mark.adapters

SLIPPERY = SCENARIOS["frozen-lake-slippery"]
DUEL = SCENARIOS["tic-tac-toe"]


@pytest.fixture(scope="module")
def url():
    with served(ServedGame(SLIPPERY)) as address:
        yield address


def test_many_sessions_play_what_our_own_loop_plays(url):
    tasks = [EpisodeTask.of(SLIPPERY, SLIPPERY.seed(index)) for index in range(12)]
    expected = {episode.seed: episode for episode in rollout(Chooser(), tasks)}
    with ThreadPoolExecutor(12) as threads:
        played = list(threads.map(lambda index: play(url, split="test", index=index), range(12)))
    assert len({tuple(rewards) for rewards, _ in played}) > 1  # they differ, so equality below says something
    for task, (rewards, last) in zip(tasks, played, strict=True):
        episode = expected[task.seed]
        assert rewards == [step.reward for step in episode.steps]
        assert last.metadata["returns"] == episode.returns
        assert (last.success, last.truncated) == (episode.successes["player_0"], episode.truncated)


@pytest.mark.parametrize("seat", DUEL.game().players)
def test_opponents_play_on_the_server(seat):
    other = next(player for player in DUEL.game().players if player != seat)
    tasks = [EpisodeTask.of(DUEL, DUEL.seed(index)) for index in range(4)]
    policies = {seat: Chooser(), other: load_agent("random")}
    expected = {episode.seed: episode.returns for episode in rollout(policies, tasks)}
    with served(ServedGame(DUEL, seat=seat)) as address, ThreadPoolExecutor(4) as threads:
        played = list(threads.map(lambda task: play(address, seed=task.seed)[1], tasks))
    assert [last.metadata["returns"] for last in played] == [expected[task.seed] for task in tasks]
    assert {last.player for last in played} == {seat}


def test_client_may_play_all_seats():
    (expected,) = rollout(Chooser(), [EpisodeTask.of(DUEL, 5)])
    with served(ServedGame(DUEL, opponents=None)) as address:
        rewards, last = play(address, seed=5)
    assert len(rewards) == len(expected.steps)
    assert last.metadata["returns"] == expected.returns


def test_a_player_may_be_out_before_it_is_asked():
    """Here the villager of player_0 dies in the first night."""
    expected = EpisodeSession("werewolf-5", 23, seat="player_0")
    game = ServedGame(SCENARIOS["werewolf-5"], seat="player_0")
    with served(game) as address, TextbenchEnv(address).sync() as env:
        asked = env.reset(seed=23)
    assert (asked.done, asked.reward) == (True, expected.returns["player_0"])
    assert asked.observation.text == expected.last_observation("player_0")


def test_seeds_are_honoured_and_a_group_shares_its_start(url):
    with TextbenchEnv(url).sync() as env:
        first = env.reset(seed=7).observation.text
        assert env.reset(seed=7).observation.text == first
        assert env.reset(seed=8).observation.text != first
        group = [env.reset(seed=seed, layout_seed=3).observation.text for seed in range(4)]
        task = env.reset(split="train", index=3).observation.text
        of_a_task = [env.reset(split="train", index=3, seed=seed).observation.text for seed in range(4)]
        drawn = {env.reset().observation.text for _ in range(8)}
    assert set(group) == {EpisodeSession(SLIPPERY, 0, layout_seed=3).request.observation}
    assert task == EpisodeSession(SLIPPERY, 3).request.observation
    assert len(set(of_a_task)) == 1
    assert len(drawn) > 1
    members = [play(url, seed=seed, layout_seed=3)[1].text for seed in range(8)]
    assert len(set(members)) > 1  # the ice differs
    assert play(url, seed=0, layout_seed=3)[1].text == members[0]


def test_prompts_stand_for_themselves(url):
    with TextbenchEnv(url).sync() as env:
        asked = env.reset(seed=7).observation
        session = EpisodeSession(SLIPPERY, 7)
        assert asked.messages == session.messages
        assert (asked.text, asked.instructions) == (session.request.observation, session.instructions)
        asked = env.step("<think>right it is</think><action>right</action>").observation
        session.respond("right")
        assert asked.messages == session.messages
        assert (asked.valid, asked.action) == (True, "right")
        direct = EpisodeSession(SLIPPERY, 7, prompt_map=PromptMap("direct", 1))
        assert env.reset(seed=7, mode="direct", history=1).observation.messages == direct.messages
        direct.respond("right")
        assert env.step(TextbenchAction(message="right")).observation.messages == direct.messages
        assert len(direct.messages) == 3
        with pytest.raises(TypeError, match="step takes a response as a string, or a TextbenchAction, got 3"):
            env.step(3)  # type: ignore[arg-type]


def test_scenario_seeds_are_tasks(url):
    routes = f"{url}/{SLIPPERY.name}"
    assert [split["name"] for split in requests.get(f"{routes}/splits").json()] == ["train", "test"]
    assert requests.post(f"{routes}/num_tasks", json={"split": "train"}).json() == {"num_tasks": 10_000}
    (task,) = requests.post(f"{routes}/task_range", json={"split": "test", "start": 3, "stop": 4}).json()["tasks"]
    assert task == requests.post(f"{routes}/task", json={"split": "test", "index": 3}).json()["task"]
    assert (task["index"], task["seed"]) == (3, SLIPPERY.seed(3))
    with TextbenchEnv(url).sync() as env:
        text = env.reset(split="test", index=3).observation.text
        assert env.reset(seed=task["seed"]).observation.text == text
    for wrong in ({"split": "test", "index": 10_000}, {"split": "tset", "index": 0}):
        assert requests.post(f"{routes}/task", json=wrong).status_code == 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sed": 3}, "reset has no argument 'sed' (did you mean 'seed'?)"),
        ({"layout_seed": -3}, "layout_seed must be a whole number of at least 0, got -3"),
        ({"split": "test", "index": 10_000}, "has the tasks 0 to 9999, got 10000"),
        ({"split": "test", "layout_seed": 3}, "a task has its own layout"),
        ({"seat": "player_3"}, "unknown seat 'player_3'"),
    ],
)
def test_wrong_resets_are_told(arguments, message, url):
    with TextbenchEnv(url).sync() as env:
        with pytest.raises(RuntimeError, match=re.escape(message)):
            env.reset(**arguments)
        assert not env.reset(seed=1).done  # the session goes on


def test_wrong_steps_are_told(url):
    with TextbenchEnv(url).sync() as env:
        with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
            env.step("right")
        result = env.reset(seed=7)
        while not result.done:
            result = env.step("right")
        with pytest.raises(RuntimeError, match="the episode is over"):
            env.step("right")


def test_no_more_sessions_than_places():
    with served(ServedGame(SLIPPERY), max_sessions=2) as address:
        with TextbenchEnv(address).sync() as one, TextbenchEnv(address).sync() as two:
            assert not one.reset(seed=1).done
            assert not two.reset(seed=1).done
            with TextbenchEnv(address).sync() as three, pytest.raises(RuntimeError, match="CAPACITY_REACHED"):
                three.reset(seed=1)
        with TextbenchEnv(address).sync() as four:  # places are free again
            assert not four.reset(seed=1).done


def test_a_client_of_tools_plays_the_episode_that_others_play(url):
    """OpenEnv's own client of tools: two tools, a session of its own, and the rewards of an episode of ``/ws``."""

    async def by_tools() -> tuple[list[float], dict[str, Any]]:
        async with MCPToolClient(url) as env:
            tools = {tool.name: tool for tool in await env.list_tools()}
            assert set(tools) == {"new_episode", "act"}
            assert "You are playing Frozen Lake" in tools["act"].description
            assert list(tools["act"].input_schema["properties"]) == ["action"]
            with pytest.raises(RuntimeError, match="no episode was started"):
                await env.call_tool("act", action="down")
            told, rewards = await env.call_tool("new_episode", seed=5), []
            while not told["done"]:
                told = await env.call_tool("act", action=choose(told["text"], told["legal_actions"]))
                rewards.append(told["reward"])
            with pytest.raises(RuntimeError, match="the episode is over"):
                await env.call_tool("act", action="down")
            return rewards, told

    rewards, told = asyncio.run(by_tools())
    expected, last = play(url, seed=5)
    assert rewards == expected
    assert (told["success"], told["text"]) == (last.success, last.text)


def test_a_place_is_free_again_when_nothing_was_asked_of_its_tools():
    asked = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create", "params": {}}
    with served(ServedGame(SLIPPERY), max_sessions=1, idle=0.5) as url:
        assert "session_id" in requests.post(f"{url}/mcp", json=asked).json()["result"]
        assert "error" in requests.post(f"{url}/mcp", json=asked).json()
        deadline = time.monotonic() + 60
        while "error" in requests.post(f"{url}/mcp", json=asked).json():
            assert time.monotonic() < deadline, "the place is held by a client that has gone"
            time.sleep(0.5)


def test_what_is_wrong_with_the_game_is_said_before_it_is_served():
    with pytest.raises(ValueError, match="unknown seat"), served(ServedGame(DUEL, seat="player_7")):
        pass
