"""A real llama.cpp server, by the recipe in docs/recipes.md, beside transformers on the same file."""

import re
import subprocess
import sys
from pathlib import Path

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


def test_smollm2_answers_nearly_alike(serve):
    """llama.cpp rounds activations to eight bits for weights of four: docs/recipes.md says how far that goes."""
    asked, address = decisions(), f"{serve(smollm2.smollm2_file())}/v1"
    decoding = {"mode": "direct", "temperature": 0.0}
    ours = load_agent("smollm2", dtype="float32", device="cpu", max_tokens=16, **decoding)
    theirs, first = (load_agent("openai:local", base_url=address, max_tokens=limit, **decoding) for limit in (16, 1))
    mine, other, begun = (player.act(asked) for player in (ours, theirs, first))
    assert {turn.error for turn in (*mine, *other, *begun)} == {None}
    tokenizer = ours.model.tokenizer
    begins = [tokenizer.decode(turn.response_ids[:1], skip_special_tokens=True) for turn in mine]
    same_first = sum(begin == turn.response for begin, turn in zip(begins, begun, strict=True))
    # the server keeps the bytes of a letter back until it is whole
    whole = [[turn.response.rstrip("\N{REPLACEMENT CHARACTER}") for turn in turns] for turns in (mine, other)]
    assert len(asked) == len(SCENARIOS) * EACH
    assert same_first >= 0.7 * len(asked)
    assert sum(map(str.__eq__, *whole)) >= 0.25 * len(asked)


def test_a_run_by_the_recipe(serve, tmp_path):
    address = serve(write_gguf(tmp_path / "small.gguf", small_llama()))
    command = [sys.executable, "-m", "benchmark.cli", "run", "--agent", "openai:local", "--base-url", f"{address}/v1"]
    command += ["--max-concurrency", "8", "--scenario", "frozen-lake", "--episodes", "3", "--max-tokens", "8"]
    done = subprocess.run([*command, "--out", str(tmp_path / "run")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run" / "episodes.jsonl").read_text("utf-8").splitlines()) == 3
