"""Models behind a real local server that call a tool, or are sent what their player may see as a picture."""

import base64
import io
import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.replay import replay
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer
from tests.benchmark.helpers import everything_written, steps_in
from textgames import game_of
from textgames.environments.render import TILE

MOVES = ["left", "down", "right", "up"]


def action_of(request):
    """The schema of the argument that a request of either route asks for."""
    (tool,) = request["tools"]
    return tool.get("function", tool)["parameters"]["properties"]["action"]


@pytest.mark.parametrize("route", ["chat", "responses"])
def test_a_model_that_calls_the_tool_is_played_by_its_calls(textbench, behind, route):
    """The text that it writes beside the call is kept, and read by no game."""
    said = "<think>hm</think><action>up</action>"
    with OpenAIServer(
        respond=lambda request: said, calls=lambda request: [("act", {"action": action_of(request)["enum"][1]})]
    ) as server:
        options = ("--episodes", 2, "--protocol", "tools", "--history", 1, "--set", f"m.route={route}", "--json")
        done = behind(server, *options, "--out", "tools", agents=("m=openai:m", "random"))
        assert done.code == 0, done.err
        assert textbench("resume", "tools", "--episodes", 3, "--quiet").code == 0
        assert behind(server, "--episodes", 2, "--out", "text").code == 0
    folder = RunFolder.open(Path("tools"))
    plan = Plan.from_manifest(folder.manifest)
    records = [record for record in folder.records() if "m" in record.agents.values()]
    steps = [step for record in records for step in record.steps]
    assert {(s.turn.response, s.action, s.valid) for s in steps} == {("<action>down</action>", "down", True)}
    assert all("up" in step.turn.cut and "act" in step.turn.tool_calls for step in steps)
    for record in records:  # as any other is replayed
        assert replay(record, plan.scenarios["frozen-lake"]).episode.returns == record.returns
    offered = [request for request in server.requests if "tools" in request]
    assert all(action_of(request) == {"type": "string", "enum": MOVES} for request in offered)
    assert not any("stop" in request or "<action>" in json.dumps(request) for request in offered)
    asked = [request.get("messages") or request["input"] for request in offered]
    *_, called, result = max(asked, key=len)
    assert (result["content"] if route == "chat" else result["output"]).count("call the tool act") == 1
    function = called["tool_calls"][0]["function"] if route == "chat" else called
    assert (function["name"], json.loads(function["arguments"])) == ("act", {"action": "down"})
    assert folder.manifest["settings"]["protocol"] == "tools"
    tools = {card["name"]: card["settings"].get("tools") for card in folder.manifest["agents"]}
    assert tools == {"m": True, "random": None}
    assert {row["protocol"] for row in json.loads(done.out)["scores"]} == {"tools"}
    exported = textbench("export", "tools", "--sft", "lines.jsonl", "--agent", "m")
    assert "they were answered by calls of a tool (--protocol tools)" in " ".join((exported.out + exported.err).split())
    board = json.loads(textbench("leaderboard", "tools", "text", "--json").out)
    assert {row["scenario"] for row in board["scores"]} == {"frozen-lake", "frozen-lake (tools)"}


@pytest.mark.parametrize(
    ("calls", "response", "unreadable", "told"),
    [
        ([], "", "empty", "text in place of a call of the tool, such as '<action>down</action>'"),
        ([("move", {"action": "down"})], "<action></action>", "empty", "isn't in the form asked for"),
        ([("act", {"action": "fly"})], "<action>fly</action>", "unknown_name", "a name that is no legal action there"),
        ([("act", {"action": "up"})] * 2, "<action>up</action>" * 2, "several_tags", "isn't in the form asked for"),
    ],
)
def test_an_answer_without_the_one_call_is_unreadable_and_a_random_move(behind, calls, response, unreadable, told):
    with OpenAIServer(respond=lambda request: "<action>down</action>", calls=lambda request: calls) as server:
        done = behind(server, "--protocol", "tools", "--episodes", 2)
    steps = steps_in("r")
    assert {(step.turn.response, step.unreadable, step.valid) for step in steps} == {(response, unreadable, False)}
    assert all(step.action in MOVES for step in steps)
    assert told in " ".join(done.err.split())


def test_actions_that_are_not_listed_are_a_text_in_the_words_of_the_game(behind):
    with OpenAIServer(calls=lambda request: [("act", {"action": "50"})]) as server:
        for more in (("guess-number",), ("frozen-lake", "--moves", "unlisted")):
            words = ("--protocol", "tools", "--episodes", 1, "--out", more[0], "--scenario", *more)
            assert behind(server, *words).code in (0, 1)
    schemas = [action_of(request) for request in server.requests if "tools" in request]
    assert not any("enum" in one for one in schemas)
    assert all(step.valid for step in steps_in("guess-number")[:1])
    assert {schema["description"] for schema in schemas if "rules above" in schema["description"]}


PLAINLY = ("--scenario", "frozen-lake", "--mode", "direct", "--temperature", 0, "--json")
WAYS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
COLOURS = {colour: mark for mark, colour in game_of("TextFrozenLake-v0").palette.items()}


def pictures(request) -> list[np.ndarray]:
    """The pixels of the images of a request, decoded by another library."""
    parts = [part for message in request.get("messages", request.get("input")) for part in message["content"]]
    found = [part for part in parts if isinstance(part, dict) and "image" in part["type"]]
    urls = [part["image_url"]["url"] if part["type"] == "image_url" else part["image_url"] for part in found]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition("base64,")[2])))) for url in urls]


def seeing(request) -> str:
    """Play by the picture of a 4x4 lake: the first move of a shortest way from P to G; without a picture, right."""
    move = "right"
    for picture in pictures(request):
        board = [[COLOURS[tuple(picture[y * TILE + 2, x * TILE + 2])] for x in range(4)] for y in range(4)]
        ((y, x),) = [(y, x) for y in range(4) for x in range(4) if board[y][x] == "P"]
        ways, seen = deque([(y, x, "")]), {(y, x)}
        while ways:
            y, x, first = ways.popleft()
            if board[y][x] == "G":
                move = first
                break
            for name, (down, across) in WAYS.items():
                to = y + down, x + across
                if min(to) >= 0 and max(to) < 4 and to not in seen and board[to[0]][to[1]] != "O":
                    seen.add(to)
                    ways.append((*to, first or name))
    return f"<action>{move}</action>"


def test_a_model_that_sees_gains_by_the_picture(textbench, behind, workplace):
    with OpenAIServer(respond=seeing) as server:
        shown = behind(server, *PLAINLY, "--episodes", 6, "--observe", "image", "--out", "shown")
        asked = server.requests.copy()
        told = behind(server, *PLAINLY, "--episodes", 6, "--out", "told")
    assert (shown.code, told.code) == (0, 0)
    (seen,), (unseen,) = json.loads(shown.out)["scores"], json.loads(told.out)["scores"]
    assert seen["success_rate"]["value"] == 1.0
    assert unseen["success_rate"]["value"] < 0.5
    assert seen["protocol"] == RunFolder.open(Path("shown")).manifest["settings"]["protocol"] == "random+image"
    # what is seen is in the picture alone, and no record keeps it
    assert all(len(pictures(request)) == 1 and "Holes" not in json.dumps(request) for request in asked)
    assert "The picture shows" in json.dumps(asked[0])
    assert "base64" not in everything_written(workplace)
    # and no table ranks it with text
    board = textbench("leaderboard", "shown", "told", "--json")
    scenarios = {row["scenario"] for row in json.loads(board.out)["scores"]}
    assert scenarios == {"frozen-lake", "frozen-lake (random+image)"}
    assert "observations are pictures" in textbench("leaderboard", "shown", "told").out


def test_both_keeps_the_text_and_earlier_pictures_are_not_repeated(behind):
    for form, text in (("both", "Holes"), ("image", "isn't shown again")):
        with OpenAIServer(respond=lambda request: "<action>up</action>", only_route="responses") as server:
            words = ("--history", 1, "--episodes", 1, "--observe", form, "--protocol", "retry", "--out", form)
            done = behind(server, *PLAINLY, *words)
            last = server.requests[-1]
        assert done.code == 0
        assert json.loads(done.out)["scores"][0]["protocol"] == f"retry+{form}"
        assert len(pictures(last)) == 1
        assert text in json.dumps(last)


def test_a_server_whose_model_takes_no_images_is_told_of_with_the_fix(behind):
    said = b'{"error": {"message": "At most 0 image(s) may be provided in one prompt."}}'  # vLLM's words
    with RawServer(answer(said, status="400 Bad Request")) as server:
        done = behind(server, *PLAINLY, "--observe", "image", "--episodes", 1)
    assert done.code == 1
    assert "0 image(s) may be provided in one prompt. (ask a model that takes images, or leave --observe" in done.out
