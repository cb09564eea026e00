"""What goes to other catalogues is read by their own code: Hugging Face's parser, Every Eval Ever's schema.

The schemas (version 0.3.0 of the package ``every-eval-ever``, which wants Python 3.12) stand beside this file, under
their own licence. With the package, ``python -m every_eval_ever validate data/*/*/*/*`` says the same.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import benchmark
from agents import LanguageAgentPolicy, ScriptedModel
from benchmark.show.published import _model_id
from tests.benchmark.helpers import lines_of, write_lines

SCHEMAS = Path(__file__).with_name("every_eval_ever")
PUBLISH = ("--eval-results", "hub", "--benchmark", "me/games", "--every-eval-ever", "eee", "--organization", "us")


def policy() -> LanguageAgentPolicy:
    return LanguageAgentPolicy(ScriptedModel(lambda prompt, decoding, seed: "<action>down</action>"))


Played = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    agents, out = {"modèle": policy(), "random": "random"}, tmp_path_factory.mktemp("published") / "r"
    about: dict[str, Any] = {"episodes": 4, "protocols": "random,retry:3", "out": out, "quiet": True}
    results = benchmark.evaluate(agents, scenarios=["frozen-lake", "cliff-walking"], **about)
    return out, {(row["agent"], row["scenario"]): dict(row) for row in results.leaderboard().scores}


@pytest.fixture
def played(workplace, once):
    shutil.copytree(once[0], "r")
    return once[1]


def test_huggingface_reads_what_is_written(textbench, played):
    yaml = pytest.importorskip("yaml")
    hub = pytest.importorskip("huggingface_hub", minversion="1.3")
    done = textbench("export", "r", *PUBLISH)
    assert done.code == 0, done.err
    files = sorted(Path("hub").glob("*/.eval_results/*.yaml"))
    assert [(file.parts[1], file.name) for file in files] == [
        ("modèle", "textbench.yaml"),  # who plays at random is no model
        ("retry-3-modèle", "textbench-retry-3.yaml"),
    ]
    for file, name, label in zip(files, ("modèle", "retry-3/modèle"), ("", " (retry:3)"), strict=True):
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        entries = hub.parse_eval_result_entries(data)
        assert hub.eval_result_entries_to_yaml(entries) == data  # every key is one that the hub knows
        assert [entry.task_id for entry in entries] == ["frozen-lake", "cliff-walking"]
        for entry in entries:
            score = played[name, entry.task_id + label]["normalized"]
            assert entry.dataset_id == "me/games"
            assert entry.value == pytest.approx(score["value"], abs=1e-4)
            assert len(entry.date) == len("2026-01-31")
            assert "4 episodes" in entry.notes
            assert ("up to 3 times" in entry.notes) == bool(label)


def test_every_eval_evers_schemas_take_it_and_every_episode_is_an_instance(textbench, played):
    jsonschema = pytest.importorskip("jsonschema")
    command = ("export", "r/random", *PUBLISH, "--instances")
    done = textbench(*command)
    assert done.code == 0, done.err
    (file,) = Path("eee").rglob("*.json")
    assert (file.parts[:3], len(file.parts)) == (("eee", "data", "textbench"), 6)
    data, whole, instance = (
        json.loads(one.read_text(encoding="utf-8"))
        for one in (file, SCHEMAS / "eval.schema.json", SCHEMAS / "instance_level_eval.schema.json")
    )
    jsonschema.validate(data, whole)
    assert data["schema_version"] == whole["version"]
    assert data["model_info"]["id"] == "/".join(file.parts[3:5])
    told, samples = data["detailed_evaluation_results"], file.with_name(f"{file.stem}_samples.jsonl")
    assert told["file_path"] == samples.relative_to("eee").as_posix()
    assert told["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert told["total_rows"] == len(lines) == 2 * 4
    for line in lines:
        jsonschema.validate(line, instance)
        assert (line["evaluation_id"], line["model_id"]) == (data["evaluation_id"], data["model_info"]["id"])
        assert line["evaluation"]["num_turns"] == len(line["answer_attribution"])
        answer = line["answer_attribution"][-1]
        assert (answer["is_terminal"], answer["extracted_value"]) == (True, "down")
        assert line["messages"][answer["turn_idx"]]["content"] == "<action>down</action>"
        assert line["input"]["raw"] == line["messages"][0]["content"]
    for result in data["evaluation_results"]:
        row, shown = played["modèle", result["evaluation_name"]], result["score_details"]
        interval = shown["uncertainty"].get("confidence_interval", {})
        score = {"value": shown["score"], "low": interval.get("lower"), "high": interval.get("upper")}
        assert score == row["normalized"]
        own = [line for line in lines if line["evaluation_result_id"] == result["evaluation_result_id"]]
        zero, one = row["blind"]["value"], row["reference"]["value"]
        mean = sum(line["evaluation"]["score"] for line in own) / len(own)
        assert mean == pytest.approx((row["mean_return"]["value"] - zero) / (one - zero))
    assert any("confidence_interval" in one["score_details"]["uncertainty"] for one in data["evaluation_results"])
    before = file.read_bytes()
    assert textbench(*command).code == 0
    assert [one.read_bytes() for one in Path("eee").rglob("*.json")] == [before]  # the same results, the same file
    assert textbench("export", "r", "--every-eval-ever", "both", "--organization", "us", "--instances").code == 0
    assert [len(one.read_bytes().splitlines()) for one in Path("both").rglob("*.jsonl")] == [8, 8]  # of each protocol
    records = lines_of(Path("r/random"))
    next(one for one in records if "random" not in one["agents"].values())["error"] = "the server has gone"
    write_lines(Path("r/random"), records)
    less = textbench("export", "r", "--every-eval-ever", "less", "--organization", "us", "--instances")
    assert less.err.startswith("1 episodes were left out: they broke off")  # counted once, whatever the models


@pytest.mark.slow
def test_the_level_of_the_intervals_of_a_run_that_looked_twice(textbench, workplace):
    about: dict[str, Any] = {"scenarios": ["bandit"], "quiet": True}
    looked = benchmark.evaluate({"down": policy()}, episodes=60, until=0.9, out="u", **about)
    (row,) = looked.leaderboard().scores
    assert (row["episodes"], row["confidence"]) == (50, 0.975)  # stopped at the first of two looks
    assert "with 97.5% intervals" in textbench("leaderboard", "u").out
    assert textbench("export", "u", *PUBLISH).code == 0
    (file,) = Path("eee").rglob("*.json")
    (result,) = json.loads(file.read_text(encoding="utf-8"))["evaluation_results"]
    assert result["score_details"]["uncertainty"]["confidence_interval"]["confidence_level"] == 0.975
    assert "97.5% interval [" in next(Path("hub").rglob("*.yaml")).read_text(encoding="utf-8")


def test_a_models_name_has_its_owner():
    names = {"hf:Qwen/Qwen3-8B": "Qwen/Qwen3-8B", "openai:gpt-4o": "openai/gpt-4o", "litellm:a/b/c": "litellm/c"}
    names |= {"hf:./check point": "hf/check-point", "tiny": "textbench/tiny"}
    assert {spec: _model_id(spec) for spec in names} == names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--eval-results", "hub"), "--eval-results needs --benchmark OWNER/NAME"),
        (("--every-eval-ever", "eee"), "--every-eval-ever needs --organization NAME"),
        (("--agent", "random", *PUBLISH), "no model has all episodes of a scenario"),
        (("--eval-results", "hub", "--benchmark", "a/b", "--instances"), "--instances"),
    ],
)
def test_what_cannot_be_published_is_refused(textbench, played, options, said):
    done = textbench("export", "r/random", *options)
    assert (done.code, said in done.err) == (2, True)
    assert not Path("hub").exists()
    assert not Path("eee").exists()


@pytest.mark.parametrize("link", ["hub/modèle", "hub/modèle/.eval_results", "eee/data", "eee/data/textbench"])
def test_nothing_is_published_through_a_link(textbench, played, link):
    Path("outside").mkdir()
    Path(link).parent.mkdir(parents=True)
    Path(link).symlink_to(Path("outside").absolute())
    done = textbench("export", "r/random", *PUBLISH)
    assert (done.code, done.err.count("\n")) == (2, 1), done
    assert f"can't use {link}: it is a link out of " in done.err
    assert not list(Path("outside").iterdir())
