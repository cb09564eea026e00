"""``--observe``: a model behind a real local server is sent what its player may see, as a picture."""

import base64
import io
import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark import evaluate
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer
from tests.benchmark.helpers import everything_written
from textgames import game_of
from textgames.environments.pictures import TILE

LAKE = ("--scenario", "frozen-lake", "--mode", "direct", "--temperature", 0, "--json")
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


def test_a_model_that_sees_gains_by_the_picture(textbench, workplace):
    with OpenAIServer(respond=seeing) as server:
        command = ("run", "--agent", "m=openai:m", "--agent", "blind", "--base-url", server.base_url, *LAKE)
        shown = textbench(*command, "--episodes", 6, "--observe", "image", "--out", "shown")
        asked = server.requests.copy()
        told = textbench(*command, "--episodes", 6, "--out", "told")
    assert (shown.code, told.code) == (0, 0)
    of = {
        name: {row["agent"]: row for row in json.loads(one.out)["scores"]}
        for name, one in {"shown": shown, "told": told}.items()
    }
    assert of["shown"]["m"]["success_rate"]["value"] == 1.0
    assert of["told"]["m"]["success_rate"]["value"] < 0.5
    assert {row["protocol"] for row in of["shown"].values()} == {"random+image"}
    # what is seen is in the picture alone, and no record keeps it
    assert all(len(pictures(request)) == 1 and "Holes" not in json.dumps(request) for request in asked)
    assert "The picture shows" in json.dumps(asked[0])
    assert "base64" not in everything_written(workplace)
    assert RunFolder.open(Path("shown")).manifest["settings"]["protocol"] == "random+image"
    # and no table ranks it with text
    board = textbench("leaderboard", "shown", "told", "--json")
    scenarios = {row["scenario"] for row in json.loads(board.out)["scores"]}
    assert scenarios == {"frozen-lake", "frozen-lake (random+image)"}
    compared = textbench("leaderboard", "shown", "told")
    assert "observations are pictures" in compared.out


def test_both_keeps_the_text_and_earlier_pictures_are_not_repeated(textbench, workplace):
    for form, text in (("both", "Holes"), ("image", "isn't shown again")):
        with OpenAIServer(respond=lambda request: "<action>up</action>", only_route="responses") as server:
            command = ("run", "--agent", "m=openai:m", "--base-url", server.base_url, *LAKE, "--history", 1)
            done = textbench(*command, "--episodes", 1, "--observe", form, "--protocol", "retry", "--out", form)
            last = server.requests[-1]
        assert done.code == 0
        assert json.loads(done.out)["scores"][0]["protocol"] == f"retry+{form}"
        assert len(pictures(last)) == 1
        assert text in json.dumps(last)


@pytest.mark.parametrize("agent", ["planner", "tiny", "openai:m"])
def test_who_reads_text_is_refused_before_the_first_episode(textbench, workplace, agent):
    command = ("run", "--agent", agent, "--base-url", "http://127.0.0.1:9/v1", *LAKE, "--observe", "image")
    done = textbench(*command, "--set", f"{agent}.route=completions") if ":" in agent else textbench(*command)
    assert done.code == 2
    assert f"agent {agent!r} reads text, and observe = image shows pictures" in done.err
    assert not Path("runs").exists()


def test_a_server_whose_model_takes_no_images_is_told_of_with_the_fix(textbench, workplace):
    said = b'{"error": {"message": "At most 0 image(s) may be provided in one prompt."}}'  # vLLM's words
    with RawServer(answer(said, status="400 Bad Request")) as server:
        command = ("run", "--agent", "m=openai:m", "--base-url", server.base_url, *LAKE, "--observe", "image")
        done = textbench(*command, "--episodes", 1)
    assert done.code == 1
    assert "0 image(s) may be provided in one prompt. (ask a model that takes images, or leave --observe" in done.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--observe", "imag"), "--observe can't be 'imag' (did you mean 'image'?); accepted: text, image, both"),
        (("--observe", "both", "--protocol", "retry+image"), "observe = both contradicts the protocol 'retry+image'"),
        (
            ("--observe", "image", "--legal-only"),
            "+image and +both go with the protocols random, default",
        ),
        (("--protocol", "random+sound"), "+image and +both go with the protocols"),
    ],
)
def test_wrong_words_are_named(textbench, workplace, options, told):
    done = textbench("run", "--agent", "random", *LAKE, *options)
    assert done.code == 2
    assert told in done.err


def test_from_python_and_side_by_side(tmp_path):
    class Looks:
        name, takes_images = "looks", True

        def act(self, requests):
            from agents import Turn

            assert all(request.picture.startswith(b"\x89PNG") and not request.reads_text for request in requests)
            return [Turn("right") for _ in requests]

    results = evaluate({"looks": Looks()}, scenarios=["mastermind"], episodes=2, observe="image", out=tmp_path / "r")
    assert {row["protocol"] for row in results.leaderboard().scores} == {"random+image"}
    with pytest.raises(UsageError, match="legal-only"):
        evaluate(["random"], scenarios=["frozen-lake"], observe="image", protocols="random,legal-only")
