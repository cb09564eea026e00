"""The scenarios as tasks of Inspect: the same numbers as ``textbench run``, and nothing left out in silence."""

import gc
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs Inspect: pip install -e '.[inspect]', or .ci/adapters inspect")

import numpy as np
from inspect_ai import eval as inspect_eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_info
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score

from agents import Episode, EpisodeSession, PromptMap, Turn, TurnRequest, Usage
from benchmark import evaluate
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer
from textbench.inspect_tasks import TASKS
from textbench.integrations.inspect import import_log, scenario_task
from textbench.integrations.inspect.scorers import share, share_stderr
from textgames import SCENARIOS

pytestmark = [
    pytest.mark.adapters,
    # Inspect calls tenacity as it was, and leaves streams of its own to the garbage collector
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def streams_are_collected_here():
    """Not in a later test, or at the end, where nobody ignores them."""
    yield
    gc.collect()


ROOT = Path(__file__).parents[3]


def answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """A response that depends on the prompt alone; now and then one that names no action."""
    text = "".join(message["content"] for message in messages if message["role"] == "user")
    digest = hashlib.sha256(text.encode()).digest()
    if digest[0] < 32:
        return "I don't know."
    names = text.rpartition("NAME is one of: ")[2].partition(". ")[0].split(", ")
    return f"<think>Any will do.</think><plan>-</plan><action>{names[digest[1] % len(names)]}</action> and more"


class Answering:
    """The same as a player of ours."""

    name = "answering"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = [request for request in requests if isinstance(request, TurnRequest)]
        prompts = [[message.as_chat() for message in PromptMap()(request)] for request in asked]
        return [Turn(answer(prompt).partition(" and more")[0]) for prompt in prompts]


def mock(fails: Sequence[str] = ()) -> Any:
    """Inspect's mock model with these answers, and an error wherever one of ``fails`` is in the prompt."""

    def respond(messages: list[ChatMessage], *rest: Any) -> ModelOutput:
        prompt = [{"role": message.role, "content": message.text} for message in messages]
        if any(text in prompt[-1]["content"] for text in fails):
            raise RuntimeError("the provider is gone")
        return output_of(answer(prompt))

    return get_model("mockllm/model", custom_outputs=respond, memoize=False)


def output_of(text: str, stop: Any = "stop") -> ModelOutput:
    output = ModelOutput.from_content("mockllm", text, stop_reason=stop)
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


def run(task: Any, model: Any, tmp_path: Path, **options: Any) -> EvalLog:
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", **options)
    return log


def returns_of(log: EvalLog) -> dict[int, float]:
    return {int(sample.id): sample.scores["return"].value for sample in log.samples or []}


def metrics_of(log: EvalLog) -> dict[str, dict[str, float]]:
    assert log.results is not None
    return {score.name: {name: one.value for name, one in score.metrics.items()} for score in log.results.scores}


def test_a_model_may_be_shown_pictures(tmp_path):
    shown = []

    def respond(messages: list[ChatMessage], *rest: Any) -> ModelOutput:
        shown.append(messages[-1].content)
        return output_of("<action>right</action>")

    model = get_model("mockllm/model", custom_outputs=respond, memoize=False)
    log = run(scenario_task("frozen-lake", episodes=1, protocol="random+image"), model, tmp_path)
    assert log.status == "success"
    assert {tuple(part.type for part in content) for content in shown} == {("image", "text")}
    assert all(content[0].image.startswith("data:image/png;base64,iVBOR") for content in shown)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        *((name, "random") for name in ("frozen-lake-slippery", "bandit")),
        *(("snake", protocol) for protocol in ("default", "retry")),
    ],
)
def test_numbers_are_those_of_our_own_run(name, protocol, tmp_path):
    played = {"scenarios": name, "episodes": 12, "seed_offset": 3, "out": str(tmp_path / "run"), "quiet": True}
    results = evaluate({"answering": Answering()}, protocol=protocol, **played)
    (row,) = results.leaderboard().scores
    records = {record.seed: record for record in RunFolder.open(tmp_path / "run").records()}
    task = scenario_task(name, episodes=12, seed_offset=3, **({} if protocol == "random" else {"protocol": protocol}))
    log = run(task, mock(), tmp_path)
    assert log.status == "success", log.error
    assert returns_of(log) == {seed: record.returns["player_0"] for seed, record in records.items()}
    metrics = metrics_of(log)
    assert metrics["return"]["mean"] == pytest.approx(row["mean_return"]["value"])
    knows_success = bool(SCENARIOS[name].game().success_means)
    assert ("success" in metrics) == (row["success_rate"] is not None) == knows_success
    if knows_success:
        assert metrics["success"]["mean"] == pytest.approx(row["success_rate"]["value"])
    assert metrics["invalid"]["share"] == pytest.approx(row["invalid_rate"]["value"])
    assert 0 < metrics["invalid"]["share_stderr"] < 0.2
    assert metrics["failed"] == {"mean": 0, "stderr": 0}
    for sample in log.samples or []:
        steps = records[int(sample.id)].steps
        answers = [each for step in steps for each in (*[("", False)] * len(step.refused), (step.action, step.valid))]
        told = sample.store["episode"]["responses"]
        assert [(one["action"], one["valid"]) for one in told] == answers


def test_failed_episodes_are_counted(tmp_path):
    lake = SCENARIOS["frozen-lake"]
    first = [EpisodeSession(lake, lake.seed(index)).request.observation for index in (2, 5)]
    log = run(scenario_task(lake, episodes=8), mock(first), tmp_path, fail_on_error=False)
    assert log.results is not None
    failed = [sample for sample in log.samples or [] if sample.error is not None]
    assert {int(sample.id) for sample in failed} >= {lake.seed(2), lake.seed(5)}
    assert metrics_of(log)["failed"]["mean"] == len(failed) / 8
    counts = {score.name: (score.scored_samples, score.unscored_samples) for score in log.results.scores}
    assert counts.pop("failed") == (8, 0)
    assert set(counts.values()) == {(8 - len(failed), len(failed))}
    stopped = run(scenario_task(lake, episodes=8), mock(first), tmp_path)  # as people run it
    assert stopped.status == "error"


def test_share_of_invalid_responses_has_a_true_standard_error():
    draws = np.random.default_rng(0)
    responses = draws.integers(1, 9, 200)
    wrong = draws.binomial(responses, 0.2)
    scores = [
        SampleScore(score=Score(value=w / n, metadata={"invalid": int(w), "responses": int(n)}), sample_id=seed)
        for seed, (w, n) in enumerate(zip(wrong, responses, strict=True))
    ]
    assert share()(scores) == pytest.approx(wrong.sum() / responses.sum())
    picked = draws.integers(0, 200, (4000, 200))
    bootstrapped = (wrong[picked].sum(1) / responses[picked].sum(1)).std()
    assert share_stderr()(scores) == pytest.approx(bootstrapped, rel=0.1)
    assert share_stderr()(scores * 2) == pytest.approx(share_stderr()(scores))  # the same seeds again tell nothing new
    nobody = [SampleScore(score=Score(value=0.0, metadata={"invalid": 0, "responses": 0}), sample_id=n) for n in (1, 2)]
    assert [share()(nobody), share_stderr()(nobody), share()([]), share_stderr()([])] == [0.0] * 4


@pytest.mark.parametrize(
    ("said", "stop", "stop_seqs", "valid"),
    [
        ("<action>right</action> or <action>up</action>", "max_tokens", None, True),
        ("<action>right", "stop", ["</action>"], True),
        ("<action>right", "stop", None, False),
        ("<action>right", "max_tokens", ["</action>"], False),
    ],
)
def test_a_response_ends_at_its_first_action(said, stop, stop_seqs, valid, tmp_path):
    """As in our own run; a tag is closed only where a server that was told to stop there has cut the close out."""
    model = get_model("mockllm/model", custom_outputs=map(output_of, repeat(said), repeat(stop)), memoize=False)
    log = run(scenario_task("frozen-lake", episodes=1), model, tmp_path, stop_seqs=stop_seqs)
    (sample,) = log.samples or []
    told = sample.store["episode"]["responses"]
    assert {one["valid"] for one in told} == {valid}
    assert not valid or {one["action"] for one in told} == {"right"}
    assert import_log(log, tmp_path / "imported", quiet=True).complete


def test_every_scenario_is_a_task():
    assert set(TASKS) == set(SCENARIOS)
    for name, task in TASKS.items():
        assert registry_info(task).name == f"textbench/{name}"
    assert [sample.id for sample in TASKS["nim"](episodes=3, seed_offset=2).dataset] == [
        SCENARIOS["nim"].seed(index) for index in (2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "episodes must be a whole number of at least 1, got 0"),
        ({"opponents": "plannner"}, "did you mean 'planner'"),
        ({"seat": "player_7"}, "unknown seat 'player_7'"),
        ({"prompts": "nowhere.toml"}, "can't read the prompt file 'nowhere.toml'"),
        ({"protocol": "tools"}, "'tools' is for models that textbench asks itself"),
        ({"moves": "unlited"}, "did you mean 'unlisted'"),
    ],
)
def test_mistakes_are_one_sentence(options, message):
    with pytest.raises(PrerequisiteError) as refused:
        TASKS["tic-tac-toe"](**options)
    assert message in refused.value.message
    with pytest.raises(PrerequisiteError, match="has no twins"):
        TASKS["taxi"](twin=1)


def test_commands_over_a_server_give_equal_numbers(tmp_path):
    """Both tools against one OpenAI-compatible server."""

    def respond(request: Mapping[str, Any]) -> str:
        return answer(request["messages"])

    with OpenAIServer(respond=respond) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "NO_COLOR": "1"}
        environment.pop("PYTHONPATH", None)

        def call(*command: str) -> str:
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        call(
            *(str(BIN / "inspect"), "eval", "textbench/frozen-lake-slippery", "-T", "episodes=5", "-T", "twin=1"),
            *("--display", "plain", "--model", "openai/local", "-M", "responses_api=false", "--log-dir", "logs"),
        )
        run_it = ("run", "--agent", "openai:local", "--scenario", "frozen-lake-slippery", "--episodes", "5")
        document = json.loads(call(str(BIN / "textbench"), *run_it, "--twin", "1", "--out", "run", "--json", "--quiet"))
    (info,) = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(info)
    records = {record.seed: record for record in RunFolder.open(tmp_path / "run").records()}
    assert returns_of(log) == {seed: record.returns["player_0"] for seed, record in records.items()}
    (row,) = document["scores"]
    assert metrics_of(log)["return"]["mean"] == pytest.approx(row["mean_return"]["value"])


@pytest.mark.parametrize(("name", "protocol"), [("frozen-lake-slippery", "random"), ("snake", "retry")])
def test_a_log_becomes_a_run_folder(name, protocol, tmp_path):
    """The folder of our own run and that of the log's have equal episodes."""
    played = {"scenarios": name, "episodes": 6, "seed_offset": 3, "protocol": protocol, "quiet": True}
    evaluate({"mockllm-model": Answering()}, **played, out=str(tmp_path / "run"))
    log = run(scenario_task(name, episodes=6, seed_offset=3, protocol=protocol), mock(), tmp_path)
    results = import_log(log.location, tmp_path / "imported", quiet=True)
    assert results.complete
    folders = [RunFolder.open(tmp_path / folder) for folder in ("run", "imported")]
    ours, theirs = ([as_played(record) for record in folder.records()] for folder in folders)
    assert theirs == ours
    assert [folder.manifest["settings"]["protocol"] for folder in folders] == [protocol] * 2
    (row,) = results.leaderboard().scores
    assert row["tokens"]["value"] > 0
    (card,) = folders[1].manifest["agents"]
    assert card["settings"]["inspect_eval"] == log.eval.eval_id
    assert results.document(max_episodes=1)["episodes"][0]["steps"]["prompt"][0]  # as a page shows it


def as_played(record: Episode) -> Episode:
    """Leave out what only a server tells: tokens, and what it sends behind the action."""

    def told(turn: Turn) -> Turn:
        return replace(turn, usage=Usage(), cut="")

    steps = (
        replace(step, turn=told(step.turn), refused=tuple(replace(one, turn=told(one.turn)) for one in step.refused))
        for step in record.steps
    )
    return replace(record, steps=tuple(steps), measured={})


def test_a_log_that_was_changed_is_refused(tmp_path):
    log = run(scenario_task("snake", episodes=3), mock(), tmp_path)
    assert log.samples
    log.samples[1].store["episode"]["returns"]["player_0"] += 1
    with pytest.raises(UsageError, match="the log was changed, or made by another version"):
        import_log(log, tmp_path / "imported", quiet=True)
    other = run(scenario_task("nim", episodes=1), mock(), tmp_path)
    with pytest.raises(UsageError, match="several players"):
        import_log(other, tmp_path / "nim", quiet=True)
    log.eval.metadata = None
    with pytest.raises(UsageError, match="isn't a log of a textbench task"):
        import_log(log, tmp_path / "none", quiet=True)
    log.eval.metadata, log.eval.dataset.name = dict(other.eval.metadata or {}), "nowhere_at_all:Evil-v0"
    with pytest.raises(UsageError, match="import its module first"):
        import_log(log, tmp_path / "evil", quiet=True)
