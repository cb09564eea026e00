"""A real llama.cpp server, by the recipe in docs/recipes.md, beside transformers on the same file."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents import EpisodeTask, load_agent, rollout
from agents.models.local.loading import smollm2
from agents.turn import Turn, TurnRequest

pytestmark = pytest.mark.engines
pytest.importorskip("xllamacpp", reason="xllamacpp isn't installed here: .ci/engines makes an environment with it")
pytest.importorskip("gguf", reason="gguf isn't installed here: .ci/engines makes an environment with it")

from tests.agents.models.gguf_writer import small_llama, write_gguf  # noqa: E402 - it needs gguf

ROOT = Path(__file__).parents[2]
SERVER = re.search(
    r"^```python\n(# llama_server\.py.*?)^```$", (ROOT / "docs/recipes.md").read_text("utf-8"), re.M | re.S
)
SCENARIOS = ("frozen-lake", "snake", "cliff-walking", "sokoban", "taxi", "blackjack", "mastermind", "bandit")
EACH = 3  # decisions of every scenario


@pytest.fixture
def serve(tmp_path):
    """``GGUF file -> the server's address``, served by the program of the recipe."""
    assert SERVER is not None
    (tmp_path / "llama_server.py").write_text(SERVER[1], "utf-8")
    started: list[subprocess.Popen[str]] = []

    def start(file: Path) -> str:
        command = [sys.executable, str(tmp_path / "llama_server.py"), str(file), "0", "1"]  # any free port
        with (tmp_path / "log.txt").open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("serving at "):
                return line.removeprefix("serving at ").strip()
        pytest.fail((tmp_path / "log.txt").read_text(errors="replace")[-2000:])

    yield start
    for process in started:
        process.kill()
        process.communicate()


def decisions() -> list[TurnRequest]:
    """What players are asked in the first moves of random play, in several games."""

    class Asked:
        name = "asked"

        def __init__(self) -> None:
            self.requests: list[TurnRequest] = []
            self.player = load_agent("random")

        def act(self, requests: list[TurnRequest]) -> list[Turn]:
            self.requests += requests
            return self.player.act(requests)

    found: list[TurnRequest] = []
    for name in SCENARIOS:
        asked = Asked()
        for _ in rollout(asked, [EpisodeTask.of(name, 31_000 + k) for k in range(EACH)], max_concurrency=1):
            pass
        found += asked.requests[:EACH]
    return found


class Agreement(NamedTuple):
    """How many of so many responses at temperature 0 are equal."""

    first: int  # their first tokens
    whole: int
    of: int


def agreement(served: str, local: str, *, tokens: int = 16) -> Agreement:
    """A model behind a llama.cpp server beside transformers' float32 on what its file stands for."""
    asked = decisions()
    decoding = {"mode": "direct", "temperature": 0.0}
    ours = load_agent(local, dtype="float32", device="cpu", max_tokens=tokens, **decoding)
    theirs, first = (
        load_agent("openai:local", base_url=f"{served}/v1", max_tokens=limit, **decoding) for limit in (tokens, 1)
    )
    turns = [ours.act(asked), theirs.act(asked), first.act(asked)]
    assert {turn.error for each in turns for turn in each} == {None}
    tokenizer = ours.model.tokenizer
    begins = [tokenizer.decode(turn.response_ids[:1], skip_special_tokens=True) for turn in turns[0]]
    same_first = sum(mine == turn.response for mine, turn in zip(begins, turns[2], strict=True))
    # the server keeps the bytes of a letter back until it is whole
    whole = [[turn.response.rstrip("\N{REPLACEMENT CHARACTER}") for turn in each] for each in turns[:2]]
    same = sum(map(str.__eq__, *whole))
    found = Agreement(same_first, same, len(asked))
    print(found)
    return found


def test_smollm2_answers_nearly_alike(serve):
    """llama.cpp rounds activations to eight bits for weights of four: docs/recipes.md says how far that goes."""
    found = agreement(serve(smollm2.smollm2_file()), "smollm2")
    assert found.of == len(SCENARIOS) * EACH
    assert found.first >= 0.7 * found.of
    assert found.whole >= 0.25 * found.of


def test_a_run_by_the_recipe(serve, tmp_path):
    address = serve(write_gguf(tmp_path / "small.gguf", small_llama()))
    command = [sys.executable, "-m", "benchmark.cli", "run", "--agent", "openai:local", "--base-url", f"{address}/v1"]
    command += ["--max-concurrency", "8", "--scenario", "frozen-lake", "--episodes", "3", "--max-tokens", "8"]
    done = subprocess.run([*command, "--out", str(tmp_path / "run")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run" / "episodes.jsonl").read_text("utf-8").splitlines()) == 3


def test_what_the_server_does_with_a_grammar_and_a_begun_response(serve, tmp_path):
    address = serve(write_gguf(tmp_path / "small.gguf", small_llama()))
    grammar = 'root ::= ("left" | "right") "</action>"'
    said = [{"role": "user", "content": "left or right?"}]
    begun = [*said, {"role": "assistant", "content": "<action>"}]
    options = {"temperature": 0, "max_tokens": 32, "grammar": grammar}
    whole = r"(left|right)</action>"
    chat = post(f"{address}/v1/chat/completions", messages=said, **options)["choices"][0]["message"]["content"]
    assert re.fullmatch(whole, chat), "a grammar holds for the response"
    chat = post(f"{address}/v1/chat/completions", messages=begun, **options)["choices"][0]["message"]["content"]
    assert re.fullmatch(f"<action>{whole}", chat), "a trailing message of the assistant goes on, and is repeated"
    text = post(f"{address}/v1/completions", prompt="<|user|>left or right?\n<|assistant|><action>", **options)
    assert re.fullmatch(whole, text["choices"][0]["text"]), "here it isn't repeated"


def post(url: str, **body: Any) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())) as answer:
        return json.load(answer)
