"""Spending a budget: one meter for all methods, and the miniature from end to end."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmark.cli import main
from research.improve.study.settings import Comparison, Learner
from research.jobs.tests.here import jobs_here

GAME = "frozen-lake"


@pytest.fixture
def base():
    """The model that ships, which reasons before it answers: counting is the same."""
    pytest.importorskip("torch")
    from agents.models.provider import model_folder

    return {"spec": f"hf:{model_folder('tiny')}", "temperature": 1.0}


def weights(agent: dict[str, Any]) -> Path:
    return Path(agent["spec"].removeprefix("hf:"))


@pytest.mark.slow
def test_play_and_rollouts_and_updates_count_a_decision_alike(base, tmp_path):
    """An improver's play is counted from records, MS-GRPO's by its engine, updates by their rows."""
    from agents.models.base import Decoding
    from research.credit.training import CountingEngine
    from research.improve.methods.imitating.offline import recorded
    from research.improve.prompts import prompt_map_of
    from research.improve.study.learning import count_tokens, task_of
    from research.jobs.bases import load

    task = task_of(base, GAME, 0, tmp_path / "task", lambda line: None)
    played = task.play(base, task.seeds(4), resample=1)
    paid = sum(sum(step.turn.usage[:2]) for record in played.records for step in record.steps if step.valid)
    prompts = prompt_map_of(base)
    decisions = [one for episode in recorded([played.folder], [GAME], "think") for one in episode.decisions]
    rows = [(prompts(one.request), one.response) for one in decisions]
    assert len(rows) > 3
    # an update also has the end of a sequence, which play stops before
    assert count_tokens(rows, weights(base)) == paid + len(rows)

    engine = CountingEngine(*load(weights(base)))
    asked = [prompt for prompt, _ in rows]
    turns = engine.generate(asked, Decoding(max_tokens=64), [(place,) for place in range(len(asked))])
    ended = [(prompt, turn.response) for prompt, turn in zip(asked, turns, strict=True)]
    assert engine.tokens == count_tokens(ended, weights(base)) - len(ended)


@pytest.mark.slow
def test_imitation_reads_what_was_counted_and_fits_its_budget(base, tmp_path):
    from research.improve.study.learning import Costs, learn, task_of

    study = Comparison.read("improvers-miniature")
    task = task_of(base, GAME, 0, tmp_path / "task", lambda line: None)
    learnt = learn("imitate", study, task, 1_800, 1e-3, Costs(90.0, 330.0))
    assert learnt.played == 0
    assert learnt.rows == 20
    assert learnt.updated == pytest.approx(1_800, rel=0.1)
    assert (task.out / "agent.toml").exists()


@pytest.mark.slow  # plays before and after, as every improver does
def test_imitation_goes_through_few_decisions_more_often(base, tmp_path, monkeypatch):
    """A game of short episodes has fewer decisions on all training seeds than a large budget pays for."""
    from agents.msgrpo.warmup import demonstrations
    from research.improve.study.learning import Costs, learn, task_of

    monkeypatch.setattr(demonstrations, "TRAINING_SEEDS", demonstrations.TRAINING_SEEDS[:32])
    task = task_of(base, GAME, 0, tmp_path / "task", lambda line: None)
    learnt = learn("imitate", Comparison.read("improvers-miniature"), task, 18_000, 1e-3, Costs(90.0, 330.0))
    assert learnt.rows < 150
    assert learnt.passes > 1
    assert learnt.updated == pytest.approx(18_000, rel=0.1)


@pytest.mark.slow  # TRL takes seconds to import
def test_own_play_gets_its_share_and_updates_what_is_left(base, tmp_path):
    from research.improve.study.learning import Costs, learn, task_of

    study = Comparison.read("improvers-miniature")
    learner = Learner(rates=(1e-3,), options={"rank": 0, "attempts": 4}, play_share=0.5, most_passes=2)
    study = study.model_copy(update={"methods": {**study.methods, "preferences": learner}})
    task = task_of(base, GAME, 0, tmp_path / "task", lambda line: None)
    learnt = learn("preferences", study, task, 8_000, 1e-3, Costs(90.0, 330.0))
    assert learnt.played == task.meter.spent.tokens
    assert learnt.played == pytest.approx(4_000, rel=0.5)
    assert 1 <= learnt.passes <= 2
    assert learnt.rows % 2 == 0
    assert learnt.updated % learnt.passes == 0
    assert 0 < 30 * learnt.rows * learnt.passes < learnt.updated < 110 * learnt.rows * learnt.passes


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    pytest.importorskip("torch")
    out = tmp_path_factory.mktemp("compared") / "out"
    with jobs_here():
        assert main(["reproduce", "--config", "improvers-miniature", "--jobs", "1", "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_a_miniature_ends_in_a_report_and_goes_on_where_it_was_stopped(whole, capsys):
    first = json.loads((whole / "report.json").read_text(encoding="utf-8"))
    assert first["missing"] == []
    (whole / "learn/frozen-lake/msgrpo/3000/1/result.json").unlink()
    capsys.readouterr()
    with jobs_here():
        assert main(["reproduce", "--config", "improvers-miniature", "--jobs", "1", "--out", str(whole), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert _without_times(again) == _without_times(first)
    for name in ("report.md", "report.json", "regret.svg"):
        assert (whole / name).exists(), name
    trained = [run for run in first["runs"] if run["who"] == "msgrpo"]
    assert all(run["played"] + run["updated"] >= run["budget"] for run in trained)


@pytest.mark.slow
def test_a_pretrained_base_is_improved_as_it_is(whole, tmp_path):
    """Its adapter is added to its weights; MS-GRPO gives it another, gepa asks it for prompts within the budget."""
    from agents.msgrpo.warmup.start import Teaching, warm_start, warmup_config
    from research.jobs.bases import load

    base, adapter = whole / "base/frozen-lake/model", tmp_path / "adapter"
    settings = {"lora_rank": 2, "response_mode": "direct", "out": str(adapter)}
    warm_start(warmup_config(str(base), [GAME], 40, **settings), Teaching(decisions=40), lambda line: None)
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f"""
kind = "improvers"
games = ["{GAME}"]
twin = 0
budgets = [2_000]
seeds = 1
episodes = 4
pretrained = "hf:{adapter}"

[methods.msgrpo]
rates = [1e-2]
options = {{ groups = 2, group_size = 16, max_response_tokens = 8, samples_every = 0, lora_rank = 2 }}

[methods.gepa]
options = {{ seeds = 2, batch = 2, rounds = 2 }}

[players.imagine]
spec = "imagine({{base}}, research.improve.around.reading:TrueWorld)"
""",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    with jobs_here():
        assert main(["reproduce", "--config", str(recipe), "--jobs", "1", "--out", str(out)]) == 0
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["missing"] == []
    spent = {run["who"]: run.get("played", 0) for run in report["runs"]}
    assert set(spent) == {"base", "msgrpo", "gepa", "imagine"}
    assert 0 < spent["gepa"] < 4_000
    assert not any("twin" in run for run in report["runs"])
    told = (out / "report.md").read_text(encoding="utf-8")
    assert "the pretrained" in told
    assert "regret in the twin" not in told

    name = "model.layers.0.self_attn.q_proj.weight"
    began, merged = (dict(load(place)[0].named_parameters()) for place in (base, out / "base/frozen-lake/model"))
    assert merged.keys() == began.keys()
    assert not merged[name].equal(began[name])
    learnt = load(out / f"learn/{GAME}/msgrpo/2000/0/agent/model")[0]
    assert learnt.peft_config["default"].r == 2
    assert any(weight.any() for key, weight in learnt.named_parameters() if "lora_B" in key)


def _without_times(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in run.items() if not key.endswith("seconds")} for run in report["runs"]]
