"""The study of credit: its recipes, what a folder accepts, training at a budget of tokens, and the command."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.tiny.data import legal_play
from agents.tiny.imitation import make_model, make_tokenizer
from benchmark.cli import main
from benchmark.errors import UsageError
from research.credit.questions.settings import Questions
from research.credit.settings import STAGES, Study, StudyFolder, jobs_of
from research.credit.training import RunRecord, train
from research.jobs.recipes import TUNING_SEED
from research.jobs.report import stored_report
from research.jobs.tests.here import jobs_here

MINIATURE = Path("research/credit/recipes/credit-miniature.toml")
CREDIT = ["reproduce", "--config", "credit-miniature"]
GAME = "blackjack"
STUDIES = sorted(file.stem for file in MINIATURE.parent.glob("*.toml") if file.stem != "credit-questions")


@pytest.mark.parametrize("name", STUDIES)
def test_the_recipes_that_ship_can_be_read_and_every_job_has_what_it_needs(name):
    study = Study.read(name)
    jobs = {job.name: job for job in jobs_of(study)}
    assert len(jobs) == len(jobs_of(study))
    assert all(need in jobs for job in jobs.values() for need in job.needs)
    tuned = len(study.rates) if len(study.rates) > 1 else 0
    trained = [job for job in jobs.values() if job.kind in ("tune", "train")]
    assert len(trained) == (tuned + study.seeds) * len(study.arms) * len(study.trained)
    measured = len(STAGES) * len(study.games) * study.runs if study.measurement is not None else 0
    assert sum(job.kind == "measure" for job in jobs.values()) == measured


def test_crossed_factors_are_an_arm_for_each_combination():
    """Six draw rules, four numbers, three rates and two lengths, beside the three arms that learn from all episodes."""
    study, arm = Study.read("credit-draws"), "largest-m64-4.5e-3-equal"
    assert (len(study.arms), study.plain) == (6 * 4 * 3 * 2 + 3, "all")
    assert study.crossed[arm] == {"draw": "largest", "drawn": "m64", "rate": "4.5e-3", "gradient": "equal"}
    settings = study.training_settings("frozen-lake", arm, 3, 1.5e-3)
    names = ("episode_sampling", "episodes_drawn", "learning_rate", "max_grad_norm", "seed")
    assert [settings[name] for name in names] == ["largest", 64, 4.5e-3, 1e-3, 3]
    assert (study.rates_of("all"), study.rates_of("all-slow")) == ((1.5e-3,), (5e-4,))
    assert list(Study.read("credit-draws", {"arms": ["aaw-m16-5e-4-raw"]}).crossed) == ["aaw-m16-5e-4-raw"]


def test_every_run_has_a_base_of_its_own_and_all_arms_the_same_tokens_rates_and_seeds():
    study = Study.read("credit")
    assert [study.recipe("blackjack", run).seed for run in range(3)] == [0, 1, 2]
    jobs = {job.name: job for job in jobs_of(study)}
    assert jobs["stages/blackjack/2"].needs == ("base/blackjack/2",)
    assert jobs["measure/blackjack/2/end"].needs == ("stages/blackjack/2",)
    for game in study.trained:
        of_arms: dict[str, list[Any]] = {}
        for job in jobs_of(study):
            if job.game == game and job.kind in ("tune", "train"):
                of_arms.setdefault(job.arm, []).append((job.kind, job.seed, job.rate))
        first, *others = of_arms.values()
        assert all(other == first for other in others)
        settings = [study.training_settings(game, arm, 0, 1e-3) for arm in study.arms]
        shared = {name: settings[0][name] for name in settings[0] if name not in study.arms[study.plain]}
        assert all({name: each[name] for name in shared} == shared for each in settings)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[games.kuhn-poker]", "[games.kuhn-pokre]", "no scenario named 'kuhn-pokre'; did you mean 'kuhn-poker'"),
        ('credit = "rtg"', 'credit = "rgt"', "the settings of arm 'rtg' on blackjack: credit = 'rgt' can't be used"),
        ("layers = 1", "layers = 0", "games.blackjack.base: layers must be a whole number of at least 1, got 0"),
        ("[games.kuhn-poker]", "[games.kuhn-poker]\ntrained = true", "games.kuhn-poker.trained: a game of 2 players"),
        ('kind = "credit"', 'kind = "credit"\nfactors.draw.aaw = 3', "factors"),
    ],
)
def test_a_wrong_recipe_is_refused_in_a_sentence(tmp_path, old, new, message):
    (tmp_path / "mine.toml").write_text(MINIATURE.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        Study.read(tmp_path / "mine.toml")


def test_a_folder_takes_more_seeds_and_arms_and_nothing_else(tmp_path):
    everything = Study.read("credit-miniature")
    folder = StudyFolder(tmp_path / "out")
    folder.claim(Study.read("credit-miniature", {"seeds": 1, "arms": ["msgrpo"]}))
    folder.claim(everything)
    with pytest.raises(UsageError, match=r"was made with arms\.rtg\.credit = 'rtg', now it is None"):
        folder.claim(Study.read("credit-miniature", {"arms": ["msgrpo"]}))
    with pytest.raises(UsageError, match=r"was made with seeds = 2, now it is 1"):
        folder.claim(Study.read("credit-miniature", {"seeds": 1}))
    other = StudyFolder(tmp_path / "other")
    other.claim(Study.read("credit-miniature", {"arms": ["rtg"]}))  # its stages came from another arm
    with pytest.raises(UsageError, match="was made with plain arm = 'rtg', now it is 'msgrpo'"):
        other.claim(everything)
    with pytest.raises(UsageError, match="was made with kind = 'credit', now it is 'questions'; give the recipe"):
        folder.claim(Questions.read("credit-questions"))


def test_a_folder_takes_more_levels_of_a_factor(tmp_path):
    """Their runs are new; those that are there are of the same settings as before."""
    folder, text = StudyFolder(tmp_path / "out"), Path(MINIATURE.parent / "credit-istar.toml").read_text("utf-8")
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(text.replace('"5e-4" = { learning_rate = 5e-4 }\n', ""), "utf-8")
    other.write_text(
        text.replace("5e-4 }", "6e-4 }").replace('"1.5e-3" =', '"1" = { learning_rate = 1 }\n"1.5e-3" ='), "utf-8"
    )
    folder.claim(Study.read(one))
    folder.claim(Study.read("credit-istar"))
    with pytest.raises(UsageError, match=r"was made with arms\.rloo-5e-4\.learning_rate = 0\.0005, now it is 0\.0006"):
        folder.claim(Study.read(other))


def test_no_run_has_the_seed_that_arms_are_tuned_with_and_a_folder_tuned_otherwise_is_refused(tmp_path):
    study = Study.read("credit", {"seeds": 8})
    seeds = {kind: {job.seed for job in jobs_of(study) if job.kind == kind} for kind in ("tune", "train")}
    assert not seeds["tune"] & seeds["train"]
    folder = StudyFolder(tmp_path / "out")
    folder.claim(study)
    folder.write_result("tune/frozen-lake/rtg/0.001", {"settings": {"seed": TUNING_SEED}})
    folder.claim(study)
    folder.write_result("tune/frozen-lake/rtg/0.002", {"settings": {"seed": 5}})
    with pytest.raises(UsageError, match="has arms that were tuned with seed 5, now it is 1000"):
        folder.claim(study)


def test_a_measurement_is_done_when_it_has_all_methods(tmp_path):
    """A method that came in since is measured by the same command, and what is there is kept."""
    result: dict[str, Any] = {"methods": [{"name": "msgrpo"}], "skipped": {"rtg": "no steps"}}
    StudyFolder(tmp_path).write_result("measure/blackjack/0/base", result)
    assert StudyFolder(tmp_path, ("msgrpo", "rtg")).is_done("measure/blackjack/0/base")
    later = StudyFolder(tmp_path, ("msgrpo", "rtg", "gigpo"))
    assert not later.is_done("measure/blackjack/0/base")
    assert later.unmeasured("measure/blackjack/0/base") == ["gigpo"]
    assert later.unmeasured("measure/blackjack/0/end") == ["msgrpo", "rtg", "gigpo"]


# ---------------------------------------------------------------- training


@pytest.fixture(scope="module")
def study():
    return Study.read("credit-miniature")


@pytest.fixture
def base(study):
    """A model of a few thousand random weights, and a tokenizer that reads the game."""
    tokenizer = make_tokenizer(legal_play(study.scenario(GAME), 60, np.random.default_rng(0)))
    return make_model(study.recipe(GAME), tokenizer), tokenizer


def run(study: Study, base: Any, **arm: Any) -> RunRecord:
    """A run of 2,000 tokens that is evaluated at each third of them."""
    settings = study.training_settings(GAME, "msgrpo", 0, 1e-3) | arm
    return train(*base, study.scenario(GAME), settings, 2_000, 3, lambda *_: 0.5, lambda share: None)[1]


def test_a_run_spends_its_budget_and_ends_with_the_iteration_that_crosses_it(study, base):
    record = run(study, base)
    spent = [each["tokens"] for each in record.history]
    assert record.rollout_tokens + record.update_tokens == spent[-1] >= 2_000 > spent[-2]
    # what the trainer itself says of its rollouts and updates, added up
    played = sum(each["prompt_tokens"] + each["response_tokens"] for each in record.history)
    assert record.rollout_tokens == played
    assert record.update_tokens == sum(each["update_tokens"] for each in record.history)
    # an evaluation at the start, and one at the first iteration past each third of the budget
    past = [next(tokens for tokens in spent if tokens >= share * 2_000 / 3) for share in (1, 2, 3)]
    assert [point.tokens for point in record.points] == [0, *past]
    assert [point.iterations for point in record.points] == [0, *(1 + spent.index(tokens) for tokens in past)]


def test_fresh_rollouts_cost_tokens_too(study, base):
    """Of two from each new state the responses alone would be fewer than twice those that were played."""
    record = run(study, base, credit="vine", method_settings={"credit": {"vine": {"rollouts": 2}}})
    prompts, responses = (sum(each[f"{of}_tokens"] for each in record.history) for of in ("prompt", "response"))
    assert record.rollout_tokens - prompts - responses > 2 * responses


# ---------------------------------------------------------------- the command


def test_a_pretrained_model_takes_minutes_a_batch(tmp_path, capsys):
    """The published run took 2,166 seconds of the processor; at the pace of the tiny model it would be 168."""
    report = stored_report(Path("research/credit/data/draws/pretrained-start.json.gz"))
    out = ["--out", str(tmp_path / "out"), "--dry-run"]
    assert main(["reproduce", "--config", "credit-pretrained", *out, "--jobs", "1", "--json"]) == 0
    assert report["seconds"] / 2 < json.loads(capsys.readouterr().out)["seconds"] < report["seconds"] * 2
    assert main([*CREDIT, *out]) == 0
    assert "nothing was done" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("recipe", "jobs", "said"),
    [
        ("credit-miniature", 41, "Nothing was measured yet."),
        ("credit-questions", 30, "**This study is not complete.**"),
    ],
)
def test_the_report_of_an_empty_folder_is_honest(recipe, jobs, said, tmp_path, capsys):
    (out := tmp_path / "out").mkdir()
    assert main(["reproduce", "--config", recipe, "--out", str(out), "--report"]) == 1
    assert f"not complete: {jobs} jobs have no result" in capsys.readouterr().out
    assert said in (out / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Data has no positive values")  # a figure of what learnt nothing
def test_a_miniature_ends_in_a_report_and_its_runs_have_bases_and_starts_of_their_own(tmp_path):
    out = tmp_path / "whole"
    with jobs_here(), redirect_stdout(io.StringIO()) as told:
        assert main([*CREDIT, "--jobs", "1", "--out", str(out), "--json"]) == 0
    assert json.loads(told.getvalue())["missing"] == []
    for name in ("report.md", "report.json", "fidelity.svg", "draws.svg", "curves.svg"):
        assert (out / name).exists(), name
    assert "Which credit is good" in (out / "report.md").read_text(encoding="utf-8")
    first, second = (json.loads((out / f"measure/blackjack/{run}/base/result.json").read_text()) for run in (0, 1))
    assert first["setting"] == second["setting"] | {"seed": 0}
    assert first["truth"]["expected_return"] != second["truth"]["expected_return"]
    bases = [json.loads((out / f"base/blackjack/{run}/result.json").read_text()) for run in (0, 1)]
    assert bases[0]["losses"] != bases[1]["losses"]
