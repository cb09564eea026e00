"""Rollouts by NeMo Gym's own ``gymnasium_agent`` over our resources server; scripted players answer as its model."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from agents import EpisodeSession, PromptMap, load_agent

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # NeMo Gym's own
    pytest.mark.skipif(
        find_spec("nemo_gym") is None or sys.version_info < (3, 12),
        reason="needs NeMo Gym, which Python 3.11 can't import: see docs/integrations/nemo_gym.md",
    ),
]
AGENT = "textbench_gymnasium_agent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("gym")
    command = ["-m", "textbench.integrations.nemo_gym", "frozen-lake", "--out", "resources_servers/textbench"]
    done = subprocess.run([sys.executable, *command, "--starts", "8"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "resources_servers" / "textbench"


class Reply:
    ok = True

    def __init__(self, content, cookies):
        self._content, self.cookies = content, cookies

    async def read(self):
        return self._content


class Router:
    """Posts as NeMo Gym's client does: to our application, or to a model that answers a conversation."""

    def __init__(self, server, answer):
        import httpx

        self.server, self.answer, self.asked = server, answer, []
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(server.setup_webserver()), base_url="http://env")

    async def post(self, server_name, url_path, json, cookies):
        if server_name == "policy_model":
            self.asked.append([item.content for item in json.input if item.role == "user"])
            return Reply(_response(self.answer(self)), {})
        self._http.cookies.update(cookies or {})
        reply = await self._http.post(url_path, json=json)
        assert reply.status_code == 200, reply.text
        return Reply(reply.content, dict(reply.cookies))


def _response(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    about = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}
    response = {"id": "r", "created_at": 0.0, "model": "scripted", "object": "response", "output": [message], **about}
    return json.dumps(response).encode()


def rollout(folder, answer, **row):
    """Play one rollout of a row by the folder's own configuration, and return it with its router."""
    import yaml
    from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
    from responses_api_agents.gymnasium_agent.app import (
        GymnasiumAgent,
        GymnasiumAgentConfig,
        GymnasiumAgentRunRequest,
    )

    from textbench.integrations.nemo_gym import TextbenchConfig

    spec = importlib.util.spec_from_file_location("served_app", folder / "app.py")
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    config = yaml.safe_load((folder / "configs" / "textbench.yaml").read_text())
    place = {"host": "127.0.0.1", "port": 1}
    ours = config["textbench"]["resources_servers"]["textbench"]
    own = {name: ours[name] for name in ("entrypoint", "scenario", "settings")}
    of_agent = config[AGENT]["responses_api_agents"]["gymnasium_agent"]
    server = app.TextbenchServer.model_construct(
        config=TextbenchConfig(name="textbench", **place, **own), server_client=None, session_state={}
    )
    router = Router(server, answer)
    agent = GymnasiumAgent.model_construct(
        config=GymnasiumAgentConfig(
            name=AGENT,
            entrypoint="app.py",
            **place,
            resources_server=ResourcesServerRef(**of_agent["resources_server"]),
            model_server=ModelServerRef(**of_agent["model_server"]),
            max_steps=of_agent["max_steps"],
        ),
        server_client=router,
    )
    first = json.loads((folder / "data" / "train.jsonl").read_text().splitlines()[0])
    assert first["agent_ref"]["name"] == AGENT
    request = GymnasiumAgentRunRequest(**first | row)
    return asyncio.run(agent.run(SimpleNamespace(cookies={}), request)), router


def by(name):
    player = load_agent(name)

    def answer(router):
        (conversation,) = router.server.session_state.values()
        return player.act([conversation.session.request])[0].response

    return answer


def test_a_rollout_pays_the_episodes_return(folder):
    for layout_seed in range(3):
        result, router = rollout(folder, by("planner"), layout_seed=layout_seed)
        assert (result.reward, result.terminated, result.truncated) == (1.0, True, False)
        assert (result.info["return"], result.info["success"], result.info["invalid_rate"]) == (1.0, 1.0, 0.0)
        expected = EpisodeSession("frozen-lake", 0, layout_seed=layout_seed, prompt_map=PromptMap())
        assert router.asked[0] == [expected.messages[0]["content"]]
        assert [len(prompts) for prompts in router.asked] == list(range(1, int(result.info["steps"]) + 1))
        assert sum(expected.instructions in prompt for prompt in router.asked[-1]) == 1
        assert not router.server.session_state  # closed with its episode


def test_unreadable_responses_and_the_limit_of_steps(folder):
    result, router = rollout(folder, lambda router: "<action>left</action>" if len(router.asked) > 1 else "no idea")
    assert (result.reward, result.truncated, result.info["steps"]) == (0.0, True, 8)
    assert result.info["invalid_rate"] == 1 / 8
    assert len(router.asked) == 8


def test_a_game_of_several_players(folder):
    result, router = rollout(folder, by("planner"), scenario="tic-tac-toe", seat="player_1")
    assert result.reward >= 0
    assert result.info["success"] == (result.reward > 0)
    assert len(router.asked) == result.info["steps"]
