"""The comparison of improvers: its recipes, one meter for all methods, the report by hand, the miniature as a whole."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.models.base import Decoding
from agents.models.provider import model_folder
from agents.msgrpo.warmup import demonstrations
from benchmark.cli import main
from benchmark.errors import UsageError
from research.credit.training import CountingEngine
from research.improve.agents import prompt_map_of
from research.improve.methods.imitating import recorded
from research.improve.study.learning import Costs, count_tokens, learn, task_of
from research.improve.study.report import Findings, differences, read_findings, report_data, report_markdown
from research.improve.study.settings import ComparedFolder, Comparison, Learner, jobs_of
from research.jobs.bases import load
from research.jobs.tests.here import jobs_here

GAME = "frozen-lake"
MINIATURE = Path("research/improve/study/recipes/improvers-miniature.toml")


def written(tmp_path: Path, old: str, new: str) -> Path:
    text = MINIATURE.read_text(encoding="utf-8")
    assert old in text
    (file := tmp_path / "mine.toml").write_text(text.replace(old, new), encoding="utf-8")
    return file


GAMES, OFFLINE = 'games = ["frozen-lake"]', "[methods.offline]"
NO_CARD = "'tiny-lake' is no model that textbench warmup or a training made with"  # it reasons before it answers


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GAMES, 'games = ["snake"]', "snake has no exact values for one player, or no twin"),
        ("[3_000]", "[6_000, 3_000]", r"budgets must rise, got .*\(6000, 3000\)"),
        (OFFLINE, "[methods.library]", "no method with counted tokens named 'library'; there are: gepa"),
        (OFFLINE, "[methods.gepa]", "methods.gepa: rates = .* accepted: none, as it trains no weights"),
        ("rates = [1e-3, 3e-3]", "rates = []", "methods.imitate: rates = .* accepted: one learning rate or more"),
        ("[base]", "twin = 0\n[base]", "twin = 0 needs a pretrained base"),
        ("[base]", 'pretrained = "tiny-lake"\n[base]', "pretrained = 'tiny-lake' makes no base: leave out base"),
        ("[base]", 'dtype = "bfloat16"\n[base]', "dtype = 'bfloat16' is of the play of a pretrained base"),
        ('trained = "msgrpo"', "", "players.router: trained = '' doesn't go with spec"),
        ('"search({base})"', '"imagine({base})"', r"'imagine\(tiny\)' is not of the form imagine\(AGENT"),
        ('"search({base})"', '"search({bsae})"', r"a name in braces; accepted: \{base\} and \{trained\}"),
        ("proposals = 2", "propsals = 2", "no option of players.search named 'propsals'; did you mean 'proposals'"),
        (OFFLINE, f"[methods.gepa]\noptions = {{ writer = 'smolm2' }}\n\n{OFFLINE}", "writer: unknown agent 'smolm2'"),
        ("attempts = 2", "attemps = 2", "no option of offline named 'attemps'; did you mean 'attempts'"),
        ("layers = 1", "layers = 0", "base: layers must be a whole number of at least 1, got 0"),
    ],
)
def test_a_wrong_recipe_is_refused_in_a_sentence(tmp_path, old, new, message):
    with pytest.raises(UsageError, match=message) as refused:
        Comparison.read(written(tmp_path, old, new))
    assert "\n" not in str(refused.value)


def test_an_agents_folder_may_write_and_a_pretrained_base_must_know_how_it_is_asked(tmp_path):
    (tmp_path / "agent.toml").write_text('spec = "smollm2"')
    gepa = f"[methods.gepa]\noptions = {{ writer = '{tmp_path}' }}\n\n{OFFLINE}"
    assert Comparison.read(written(tmp_path, OFFLINE, gepa)).methods["gepa"].options["writer"] == str(tmp_path)
    base = MINIATURE.read_text(encoding="utf-8").split("[base]")[1].split("\n\n")[0]
    file = written(tmp_path, "[base]" + base, "")
    file.write_text('pretrained = "tiny-lake"\n' + file.read_text(encoding="utf-8"))
    with pytest.raises(UsageError, match=NO_CARD):
        Comparison.read(file)


def test_the_command_refuses_what_is_of_other_experiments(textbench):
    improvers = ("reproduce", "--config", "improvers")
    refused = textbench(*improvers, "--arms", "imitate")
    assert refused.code == 2
    assert "a recipe of the comparison of improvers takes --games, --seeds" in refused.err
    assert "no game in this recipe named 'frozen-lak'" in textbench(*improvers, "--games", "frozen-lak").err


@pytest.mark.parametrize("name", ["improvers", "improvers-miniature", "improvers-pretrained"])
def test_every_job_has_what_it_needs_before_it_game_by_game_and_seed_by_seed(name):
    study = Comparison.read(name)
    jobs, done = jobs_of(study), set[str]()
    for job in jobs:
        assert set(job.needs) <= done, job
        done.add(job.name)
    assert len(done) == len(jobs)
    games = [job.game for job in jobs]
    assert games == sorted(games, key=study.games.index)
    learnt = [(job.seed, job.budget, job.method) for job in jobs if job.game == study.games[0] and job.kind == "learn"]
    assert learnt == [(n, budget, way) for n in range(study.seeds) for budget in study.budgets for way in study.methods]
    tuned = {job.method for job in jobs if job.kind == "tune"}
    assert tuned == {method for method, learner in study.methods.items() if len(learner.rates) > 1}


def test_a_folder_takes_more_seeds_and_games_and_nothing_else(tmp_path):
    study, folder = Comparison.read("improvers"), ComparedFolder(tmp_path / "out")
    folder.claim(study.model_copy(update={"games": study.games[:1], "seeds": 3}))
    folder.claim(study)
    with pytest.raises(UsageError, match="was made with seeds = 5, now it is 3"):
        folder.claim(study.model_copy(update={"seeds": 3}))
    with pytest.raises(UsageError, match="was made with episodes"):
        folder.claim(study.model_copy(update={"episodes": 3}))


def found(tmp_path: Path, better: dict[str, float], seeds: int = 5) -> Findings:
    """Results of jobs, written by hand: regrets of 0.2 less what a method is better, with noise of 0.01."""
    study = Comparison.read("improvers-miniature", {"seeds": seeds, "budgets": (3_000, 6_000)})
    folder, rng = ComparedFolder(tmp_path), np.random.default_rng(0)
    for job in jobs_of(study):
        regret = 0.2 - better.get(job.method, 0.0) + 0.01 * rng.standard_normal()
        scored = {"return": 0.3, "regret": regret, "tokens": 50.0, "invalid": 0.0, "decisions": 5.0}
        worn = {"facts": {"textbench": "by hand"}, "seconds": 1.0, "processor_seconds": 1.0}
        learnt = {"rate": 1e-3, "played": job.budget // 2, "updated": job.budget // 4, "passes": 1, "rows": 3}
        twin = scored | {"regret": 0.2 + 0.01 * rng.standard_normal()}
        folder.write_result(job.name, {**worn, "parameters": 7, **learnt, "game": scored, "twin": twin})
    return read_findings(study, folder)


def test_where_nothing_differs_it_says_that_nothing_can_be_said(tmp_path):
    findings = found(tmp_path, {})
    assert min(row.p_holm for row in differences(findings)) > 0.05
    text = report_markdown(findings, {"textbench": "by hand"})
    assert "**frozen-lake**: nothing can be said: no difference is left after Holm's correction." in text
    assert "loses less" not in text
    assert "nothing can be said" in report_markdown(found(tmp_path / "one", {"imitate": 0.15}, seeds=1), {})


def test_one_that_loses_less_is_named_with_what_it_loses_less_than(tmp_path):
    findings = found(tmp_path, {"imitate": 0.15})
    text = report_markdown(findings, {})
    for budget in ("3,000", "6,000"):
        assert f"`imitate {budget}` loses less than `base`;" in text
        assert f"`imitate {budget}` loses less than `msgrpo {budget}`" in text
    verdict = text.split("## What to use when")[1].split("##")[0]
    assert "in the twin" not in verdict
    assert "`preferences" not in verdict
    assert "`imitate` spent 75% of 3,000" in text
    rows = [row for row in differences(findings) if row.place == "game"]
    assert len(rows) == 2 * (4 + 3) + 2 * 2  # budgets and methods against base and msgrpo, and players
    least = min(rows, key=lambda row: row.p_value)
    assert least.p_holm == pytest.approx(len(rows) * least.p_value)


def test_the_data_has_every_run_and_what_is_missing(tmp_path):
    findings = found(tmp_path, {})
    (tmp_path / "learn/frozen-lake/offline/3000/1/result.json").unlink()
    again = read_findings(findings.study, ComparedFolder(tmp_path))
    data = report_data(again, {})
    assert data["missing"] == ["learn/frozen-lake/offline/3000/1"]
    assert len(data["runs"]) == 5 * (1 + 2 * 4 + 2) - 1
    assert Comparison.model_validate(data["settings"]) == findings.study
    assert "This comparison is not complete" in report_markdown(again, {})


TINY = Path(model_folder("tiny"))  # reasons before it answers: counting is the same
COSTS = Costs(90.0, 330.0)


@pytest.fixture
def task(tmp_path):
    return task_of({"spec": f"hf:{TINY}", "temperature": 1.0}, GAME, 0, tmp_path / "task", lambda line: None)


@pytest.mark.slow
def test_play_and_rollouts_and_updates_count_a_decision_alike(task):
    """An improver's play is counted from records, MS-GRPO's by its engine, updates by their rows."""
    played = task.play(task.agent, task.seeds(4), resample=1)
    paid = sum(sum(step.turn.usage[:2]) for record in played.records for step in record.steps if step.valid)
    prompts = prompt_map_of(task.agent)
    decisions = [one for episode in recorded([played.folder], [GAME], "think") for one in episode.decisions]
    rows = [(prompts(one.request), one.response) for one in decisions]
    assert len(rows) > 3
    # an update also has the end of a sequence, which play stops before
    assert count_tokens(rows, TINY) == paid + len(rows)
    engine = CountingEngine(*load(TINY))
    asked = [prompt for prompt, _ in rows]
    turns = engine.generate(asked, Decoding(max_tokens=64), [(place,) for place in range(len(asked))])
    ended = [(prompt, turn.response) for prompt, turn in zip(asked, turns, strict=True)]
    assert engine.tokens == count_tokens(ended, TINY) - len(ended)


@pytest.mark.slow
def test_imitation_fits_its_budget_and_goes_through_few_decisions_more_often(task, tmp_path, monkeypatch):
    """A game of short episodes has fewer decisions on all training seeds than a large budget pays for."""
    study = Comparison.read("improvers-miniature")
    learnt = learn("imitate", study, task, 1_800, 1e-3, COSTS)
    assert (learnt.played, learnt.rows, learnt.updated) == (0, 20, pytest.approx(1_800, rel=0.1))
    assert (task.out / "agent.toml").exists()
    monkeypatch.setattr(demonstrations, "TRAINING_SEEDS", demonstrations.TRAINING_SEEDS[:32])
    other = task_of(task.agent, GAME, 0, tmp_path / "other", lambda line: None)
    learnt = learn("imitate", study, other, 18_000, 1e-3, COSTS)
    assert learnt.rows < 150
    assert learnt.passes > 1
    assert learnt.updated == pytest.approx(18_000, rel=0.1)


@pytest.mark.slow  # TRL takes seconds to import
def test_own_play_gets_its_share_and_updates_what_is_left(task):
    study = Comparison.read("improvers-miniature")
    learner = Learner(rates=(1e-3,), options={"rank": 0, "attempts": 4}, play_share=0.5, most_passes=2)
    study = study.model_copy(update={"methods": {**study.methods, "preferences": learner}})
    learnt = learn("preferences", study, task, 8_000, 1e-3, COSTS)
    assert learnt.played == task.meter.spent.tokens == pytest.approx(4_000, rel=0.5)
    assert 1 <= learnt.passes <= 2
    assert learnt.rows % 2 == 0
    assert learnt.updated % learnt.passes == 0
    assert 0 < 30 * learnt.rows * learnt.passes < learnt.updated < 110 * learnt.rows * learnt.passes


def compared(config: str | Path, out: Path) -> dict[str, Any]:
    with jobs_here():
        assert main(["reproduce", "--config", str(config), "--jobs", "1", "--out", str(out)]) == 0
    return json.loads((out / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    return out, compared("improvers-miniature", out)


@pytest.mark.slow
def test_a_miniature_ends_in_a_report_and_resumes_where_it_was_stopped(whole):
    out, first = whole
    assert first["missing"] == []
    (out / "learn/frozen-lake/msgrpo/3000/1/result.json").unlink()
    again = compared("improvers-miniature", out)
    timeless = [
        [{key: value for key, value in run.items() if not key.endswith("seconds")} for run in report["runs"]]
        for report in (first, again)
    ]
    assert timeless[0] == timeless[1]
    assert all((out / name).exists() for name in ("report.md", "regret.svg"))
    trained = [run for run in first["runs"] if run["who"] == "msgrpo"]
    assert all(run["played"] + run["updated"] >= run["budget"] for run in trained)


PRETRAINED = """
kind = "improvers"
games = ["frozen-lake"]
twin = 0
budgets = [2_000]
seeds = 1
episodes = 4
pretrained = "hf:ADAPTER"
methods.msgrpo.rates = [1e-2]
methods.gepa.options = { seeds = 2, batch = 2, rounds = 2 }
players.imagine.spec = "imagine({base}, research.improve.around.reading:TrueWorld)"
[methods.msgrpo.options]
groups = 2
group_size = 16
max_response_tokens = 8
samples_every = 0
lora_rank = 2
"""


@pytest.mark.slow
def test_a_pretrained_base_is_improved_as_it_is(whole, tmp_path):
    """Its adapter is added to its weights; MS-GRPO gives it another, gepa asks it for prompts within the budget."""
    from agents.msgrpo.warmup.start import Teaching, warm_start, warmup_config

    base, adapter, out = whole[0] / "base/frozen-lake/model", tmp_path / "adapter", tmp_path / "out"
    settings = {"lora_rank": 2, "response_mode": "direct", "out": str(adapter)}
    warm_start(warmup_config(str(base), [GAME], 40, **settings), Teaching(decisions=40), lambda line: None)
    (recipe := tmp_path / "mine.toml").write_text(PRETRAINED.replace("ADAPTER", str(adapter)), encoding="utf-8")
    report = compared(recipe, out)
    assert report["missing"] == []
    spent = {run["who"]: run.get("played", 0) for run in report["runs"]}
    assert set(spent) == {"base", "msgrpo", "gepa", "imagine"}
    assert 0 < spent["gepa"] < 4_000
    assert not any("twin" in run for run in report["runs"])
    assert "the pretrained" in (out / "report.md").read_text(encoding="utf-8")
    name = "model.layers.0.self_attn.q_proj.weight"
    began, merged = (dict(load(place)[0].named_parameters()) for place in (base, out / "base/frozen-lake/model"))
    assert merged.keys() == began.keys()
    assert not merged[name].equal(began[name])
    learnt = load(out / f"learn/{GAME}/msgrpo/2000/0/agent/model")[0]
    assert learnt.peft_config["default"].r == 2
    assert any(weight.any() for key, weight in learnt.named_parameters() if "lora_B" in key)
