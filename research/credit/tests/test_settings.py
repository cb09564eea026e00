"""Recipes of the study of credit: what they may say, and what a folder accepts."""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmark.errors import UsageError
from research.credit.jobs import StudyFolder, jobs_of
from research.credit.settings import STAGES, Study
from research.jobs.recipes import TUNING_SEED

MINIATURE = Path("research/credit/recipes/credit-miniature.toml")
STUDIES = sorted(file.stem for file in MINIATURE.parent.glob("*.toml") if file.stem != "credit-questions")


def written(tmp_path: Path, **changes: str) -> Path:
    """The miniature with some lines replaced, as a file."""
    text = MINIATURE.read_text(encoding="utf-8")
    for old, new in (change.split(" -> ") for change in changes.values()):
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


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
    study = Study.read("credit-draws")
    assert len(study.arms) == 6 * 4 * 3 * 2 + 3
    assert study.plain == "all"
    assert study.crossed["largest-m64-4.5e-3-equal"] == {
        **{"draw": "largest", "drawn": "m64", "rate": "4.5e-3", "gradient": "equal"}
    }
    settings = study.training_settings("frozen-lake", "largest-m64-4.5e-3-equal", 3, 1.5e-3)
    names = ("episode_sampling", "episodes_drawn", "learning_rate", "max_grad_norm", "seed")
    assert [settings[name] for name in names] == ["largest", 64, 4.5e-3, 1e-3, 3]
    assert study.rates_of("all") == (1.5e-3,)
    assert study.rates_of("all-slow") == (5e-4,)
    assert list(Study.read("credit-draws", {"arms": ["aaw-m16-5e-4-raw"]}).crossed) == ["aaw-m16-5e-4-raw"]


@pytest.mark.parametrize("wrong", ['factors = "draw"', 'factors.draw = "aaw"', "factors.draw.aaw = 3"])
def test_factors_that_are_no_tables_are_refused_in_a_sentence(tmp_path, wrong):
    file = tmp_path / "mine.toml"
    text = MINIATURE.with_name("credit-draws.toml").read_text(encoding="utf-8")
    text = re.sub(r"^\[factors.*?(?=^\[arms)", "", text, flags=re.DOTALL | re.MULTILINE)
    file.write_text(f"{wrong}\n{text}", encoding="utf-8")
    with pytest.raises(UsageError, match="factors"):
        Study.read(file)


def test_every_run_of_a_game_begins_from_a_base_of_its_own():
    study = Study.read("credit")
    assert [study.recipe("blackjack", run).seed for run in range(3)] == [0, 1, 2]
    jobs = {job.name: job for job in jobs_of(study)}
    assert jobs["stages/blackjack/2"].needs == ("base/blackjack/2",)
    assert jobs["measure/blackjack/2/end"].needs == ("stages/blackjack/2",)


def test_all_arms_have_the_same_tokens_rates_and_seeds():
    study = Study.read("credit")
    arms = list(study.arms)
    for game in study.trained:
        own = [
            {(job.kind, job.seed, job.rate) for job in jobs_of(study) if (job.game, job.arm) == (game, arm)}
            - {("stages", 0, 0.0)}
            for arm in arms
        ]
        assert all(each == own[0] for each in own)
        settings = [study.training_settings(game, arm, 0, 1e-3) for arm in arms]
        shared = {name: value for name, value in settings[0].items() if name not in study.arms[arms[0]]}
        assert all({name: each[name] for name in shared} == shared for each in settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("[games.kuhn-poker] -> [games.kuhn-pokre]", "no scenario named 'kuhn-pokre'; did you mean 'kuhn-poker'"),
        ('credit = "rtg" -> credit = "rgt"', "the settings of arm 'rtg' on blackjack: credit = 'rgt' can't be used"),
        ("[arms.rtg] -> [arms_rtg]", "no setting of a study of credit .* named 'arms_rtg'"),
        ("layers = 1 -> layers = 0", "games.blackjack.base: layers must be a whole number of at least 1, got 0"),
        ("tokens = 1_500 -> tokens = 0", "games.blackjack.tokens must .* greater than or equal to 1, got 0"),
    ],
)
def test_a_wrong_recipe_is_refused_in_a_sentence(tmp_path, change, message):
    with pytest.raises(UsageError, match=message):
        Study.read(written(tmp_path, change=change))


def test_training_curves_are_of_games_of_one_player(tmp_path):
    file = written(tmp_path)
    file.write_text(file.read_text().replace("[games.kuhn-poker]\n", "[games.kuhn-poker]\ntrained = true\n"))
    with pytest.raises(UsageError, match=re.escape("games.kuhn-poker.trained: a game of 2 players")):
        Study.read(file)


def test_a_folder_takes_more_seeds_and_arms_and_nothing_else(tmp_path):
    everything = Study.read("credit-miniature")
    folder = StudyFolder(tmp_path / "out")
    folder.claim(Study.read("credit-miniature", {"seeds": 1, "arms": ["msgrpo"]}))
    folder.claim(everything)
    with pytest.raises(UsageError, match=r"was made with arms\.rtg\.credit = 'rtg', now it is None"):
        folder.claim(Study.read("credit-miniature", {"arms": ["msgrpo"]}))
    with pytest.raises(UsageError, match=r"was made with seeds = 2, now it is 1"):
        folder.claim(Study.read("credit-miniature", {"seeds": 1}))


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


def test_a_folder_whose_stages_came_from_another_arm_is_refused(tmp_path):
    folder = StudyFolder(tmp_path / "out")
    folder.claim(Study.read("credit-miniature", {"arms": ["rtg"]}))
    with pytest.raises(UsageError, match="was made with plain arm = 'rtg', now it is 'msgrpo'"):
        folder.claim(Study.read("credit-miniature"))


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
