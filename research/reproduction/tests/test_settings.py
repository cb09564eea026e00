"""Recipes: what is read, what is refused and how it is said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agents.tiny.imitation import demonstrate, make_model, make_tokenizer
from benchmark.errors import UsageError
from research.jobs.folder import SETTINGS_NAME, Folder
from research.reproduction.jobs import jobs_of
from research.reproduction.settings import Experiment

SHIPPED = Path(__file__).parents[3] / "research/reproduction/recipes"


@pytest.mark.parametrize("name", [file.stem for file in SHIPPED.glob("*.toml")])
def test_shipped_recipes_are_good(name):
    experiment = Experiment.read(name)
    assert experiment.final_offset >= experiment.evaluation_episodes
    assert {job.kind for job in jobs_of(experiment)} >= {"pretrain", "train", "play"}


@pytest.mark.slow
def test_large_base_has_twenty_times_the_parameters():
    for name in ("full", "quick"):
        experiment = Experiment.read(name)
        sizes = {}
        for base in ("small", "large"):
            recipe = replace(experiment.recipe(base), examples=300)
            model = make_model(recipe, make_tokenizer(demonstrate(recipe)))
            sizes[base] = sum(p.numel() for p in model.parameters())
        assert sizes["large"] >= 20 * sizes["small"], (name, sizes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 1", "seeds = 0", "mine.toml: seeds must be greater than or equal to 1, got 0"),
        ("seeds = 1", "seedz = 1", "no setting of a reproduction .* named 'seedz'; did you mean 'seeds'?"),
        ("temperature = 0.5", "temperature = nan", "temperature must be a finite number, got nan"),
        ("[bases.small]", "[bases]\nsmall = 3\n[bases.other]", "bases.small must be a valid dictionary .*, got 3"),
        ('games = ["frozen-lake"]', 'games = ["frozen-lak"]', "no scenario named 'frozen-lak'; did you mean"),
        ('games = ["frozen-lake"]', 'games = ["snake"]', "scenarios must hold every game .* 'snake' is missing"),
        ("final_offset = 1000", "final_offset = 3", "would play some of the 4 fixed episodes again"),
        ('"aaw"', '"aw"', "settings of arm 'aaw' on frozen-lake: episode_sampling = 'aw'"),
        ("hidden_size = 16", "hiden_size = 16", "did you mean 'hidden_size'"),
        ("seeds = 1", "seeds = ", "isn't TOML"),
    ],
)
def test_wrong_settings_are_said_before_anything_starts(tmp_path, old, new, message):
    text = (SHIPPED / "miniature.toml").read_text()
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=message):
        Experiment.read(file)


def test_folder_refuses_other_settings_and_names_the_first(tmp_path):
    folder = Folder(tmp_path / "out")
    experiment = Experiment.read("miniature")
    folder.claim(experiment)
    folder.claim(experiment)
    with pytest.raises(UsageError, match="was made with iterations = 2, now it is 3; give the recipe and the options"):
        folder.claim(Experiment.read("miniature", {"iterations": 3, "seeds": 2}))
    changed = (SHIPPED / "miniature.toml").read_text().replace("learning_rate = 1e-4", "learning_rate = 2e-4")
    (tmp_path / "changed.toml").write_text(changed)
    with pytest.raises(UsageError, match=r"msgrpo\.learning_rate = 0\.0001, now it is 0\.0002"):
        folder.claim(Experiment.read(tmp_path / "changed.toml"))


def test_a_folder_takes_more_seeds_but_not_fewer(tmp_path):
    folder = Folder(tmp_path / "out")
    folder.claim(Experiment.read("miniature"))
    folder.claim(Experiment.read("miniature", {"seeds": 3}))
    assert json.loads((tmp_path / "out" / SETTINGS_NAME).read_text())["seeds"] == 3
    with pytest.raises(UsageError, match="was made with seeds = 3, now it is 1; give the recipe and the options"):
        folder.claim(Experiment.read("miniature"))
    assert json.loads((tmp_path / "out" / SETTINGS_NAME).read_text())["seeds"] == 3


def test_a_damaged_result_is_named(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "result.json").write_text('{"points": [')
    with pytest.raises(UsageError, match=r"train/result\.json is damaged \(.*\); delete it, and the same command"):
        Folder(tmp_path).result("train")
