"""A data set of single decisions with its eval.yaml: Inspect's own reader of the Hub's tasks evaluates on it."""

import gc
import json
import subprocess
import sys

import pytest

from textbench.integrations.inspect.hub import main

COMMAND = [sys.executable, "-m", "textbench.integrations.inspect.hub", "--out", "decisions"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub")
    words = ["--scenario", "frozen-lake", "--scenario", "taxi", "--decisions", "40"]
    done = subprocess.run([*COMMAND, *words], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place / "decisions"


def rows_of(folder, name):
    return [json.loads(line) for line in (folder / "data" / f"{name}.jsonl").read_text().splitlines()]


def test_a_target_is_the_planners_action(folder):
    from agents import EpisodeSession, load_agent
    from agents.prompt import as_text

    first = [row for name in ("frozen-lake", "taxi") for row in rows_of(folder, name) if row["id"].endswith("/0")]
    assert first
    for row in first:
        scenario, seed, _ = row["id"].split("/")
        session = EpisodeSession(scenario, int(seed))
        assert row["input"] == as_text(session.prompt)
        assert f"<action>{row['target']}</action>" in load_agent("planner").act([session.request])[0].response
        assert row["value"] > row["next_value"]


def test_the_data_sets_library_reads_every_task(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    for name in ("frozen-lake", "taxi"):
        read = datasets.load_dataset(str(folder), name, split="test", cache_dir=str(tmp_path))
        assert [row["target"] for row in read] == [row["target"] for row in rows_of(folder, name)]


@pytest.mark.adapters
@pytest.mark.filterwarnings("ignore")  # Inspect's own, as in test_inspect.py
def test_inspect_evaluates_on_it(folder, monkeypatch):
    hf = pytest.importorskip("inspect_ai._eval.task.hf", reason="needs Inspect: .ci/adapters inspect")
    import huggingface_hub
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import json_dataset
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def from_disk(path, name, split, sample_fields, revision):
        assert (path, split) == ("me/decisions", "test")
        return json_dataset(str(folder / "data" / f"{name}.jsonl"), sample_fields)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda **about: str(folder / about["filename"]))
    monkeypatch.setattr(hf, "hf_dataset", from_disk)
    for task in hf.task_create_from_hf("hf/me/decisions"):
        rows = rows_of(folder, task.name.rpartition("/")[2])
        assert [sample.target for sample in task.dataset] == [row["target"] for row in rows]
        for right, said in (
            (1.0, "<think><action>no</action>?</think><action>{}</action>"),
            (0.0, "<action>none of them</action>, not {}"),
        ):
            outputs = [ModelOutput.from_content("mockllm/model", said.format(row["target"])) for row in rows]
            for output in outputs:  # else Inspect counts tokens, by a table that it downloads
                output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            model = get_model("mockllm/model", custom_outputs=outputs)
            (log,) = inspect_eval(task, model=model, max_samples=1, display="none", log_dir=str(folder.parent / "logs"))
            assert log.status == "success", log.error
            assert log.results.scores[0].metrics["accuracy"].value == right
    gc.collect()  # Inspect leaves streams of its own, which a later test would warn of


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--scenario", "snake"), "snake isn't a game of one player that is solved exactly"),
        (("--out", ".", "--scenario", "taxi", "--decisions", "1"), "accepted: a path that ends in the folder's name"),
        (
            ("--out", "mine", "--scenario", "taxi", "--decisions", "1"),
            "it has 'notes.txt', which isn't of this",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_lost(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["hub", *COMMAND[3:], *words])
    assert main() == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), sentence in said) == (1, True)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
