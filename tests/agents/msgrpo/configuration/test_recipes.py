"""The trainings that ship: found by name, in the wheel, readable, and made for the bases that they start from."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.__main__ import main
from agents.msgrpo.configuration import config as recipes_module
from agents.msgrpo.configuration.config import packaged_recipes, recipe_path
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.trajectories import games_of, prompts_of

ROOT = Path(__file__).parents[4]
RECIPES = {file.stem: file for file in (ROOT / "configs").glob("*.toml")}


def test_recipes_are_found_by_name_and_by_the_path_that_documents_have(tmp_path, monkeypatch, capsys):
    assert packaged_recipes() == RECIPES
    monkeypatch.chdir(tmp_path)  # where there is no configs/
    for given in ("tiny-frozen-lake", "tiny-frozen-lake.toml", "configs/tiny-frozen-lake.toml"):
        assert recipe_path(given) == RECIPES["tiny-frozen-lake"]
        assert main(["--config", given, "--print-config"]) == 0
        assert 'out = "runs/tiny-frozen-lake"' in capsys.readouterr().out
    for given in ("elsewhere/tiny-frozen-lake.toml", "no-such-recipe"):
        assert recipe_path(given) == Path(given)
    (tmp_path / "tiny-frozen-lake").write_text('out = "mine"')  # a file of one's own goes first
    assert MSGRPOConfig.from_toml("tiny-frozen-lake").out == "mine"


def test_no_recipe_fixes_a_type_that_many_processors_are_slow_in():
    """``auto`` is bfloat16 on a GPU, and on a processor if it multiplies it fast."""
    files = [*RECIPES.values(), *(ROOT / "research").glob("*/recipes/*.toml")]
    assert len(files) > 15
    fixed = re.compile(r"^[^#\n]*\bdtype *= *\"bfloat16\"", re.MULTILINE)
    assert [file.name for file in files if fixed.search(file.read_text())] == []


def test_recipes_of_the_wheel_are_those_of_the_clone(tmp_path, monkeypatch):
    """Hatch puts the folder into the package, where an installed version looks first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert settings["force-include"] == {"configs": "agents/msgrpo/configs"}
    assert recipes_module._IN_WHEEL == ROOT / "agents/msgrpo/configs"
    (tmp_path / "own.toml").write_text("")
    monkeypatch.setattr(recipes_module, "_IN_WHEEL", tmp_path)
    assert packaged_recipes() == {"own": tmp_path / "own.toml"}


@pytest.mark.slow
def test_the_wheel_has_them(tmp_path):
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT, check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in RECIPES:
        assert f"agents/msgrpo/configs/{name}.toml" in names
    assert "agents/prompts/without-clock.toml" in names
    assert not [name for name in names if name.startswith("research/")]  # is run from a clone
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    command = [sys.executable, "-m", "benchmark.cli", "reproduce", "--dry-run"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "in the checkout: pip install" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_used(name):
    """Also those for a GPU: their settings, games, methods and prompts are what the trainer takes."""
    config = MSGRPOConfig.from_toml(name)
    assert games_of("", config)
    assert Methods.of(config).credit
    assert prompts_of(config).mode == config.response_mode
    assert config.out == f"runs/{name}"
    head = RECIPES[name].read_text().partition("\n\n[")[0]
    assert f"python -m agents.msgrpo --config configs/{name}.toml" in head or "research/perf/seeds.py" in head


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["response_mode=direct"], "set response_mode = 'think'"),
        (["prompt_file=default"], "leave prompt_file out"),
        (["prompt_file=defalt"], "did you mean 'default'"),
    ],
)
def test_a_base_for_other_prompts_is_refused_before_training(settings, says, tmp_path, capsys):
    """What destroyed the first model that a new user trained: 97.5% invalid, success 0, exit 0."""
    words = [word for setting in ["model=tiny", *settings, f'out="{tmp_path / "out"}"'] for word in ("--set", setting)]
    assert main(["--config", "tiny-frozen-lake", *words]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out" / "metrics.jsonl").exists()


def test_a_base_that_is_there_for_another_mode_is_refused(tmp_path, monkeypatch, capsys):
    from agents.tiny import Recipe

    small = {"steps": 1, "examples": 40, "hidden_size": 16, "intermediate_size": 16, "layers": 1}
    quick = Recipe.quick
    monkeypatch.setattr(Recipe, "quick", lambda **changes: quick(**(small | changes)))
    words = ["--quiet", "--set", f'out="{tmp_path}"', "--set", "iterations=1", "--set", "eval_every=0"]
    words += ["--set", "groups=2", "--set", "group_size=2", "--set", "episodes_drawn=1"]
    words += ["--set", "preflight_episodes=0", "--set", "stop_after=0"]  # such a base knows nothing yet
    for name, mode in (("tiny-frozen-lake-direct", "direct"), ("tiny-frozen-lake", "think")):
        code = main(["--config", name, *words])
        if mode == "direct":  # made for the run: its card says so, and the run takes it
            assert code == 0
            from agents.models.local.loading.card import read_card

            assert read_card(str(tmp_path / "base")).modes == ("direct",)  # type: ignore[union-attr]
            (tmp_path / "metrics.jsonl").unlink()
        else:
            assert code == 2
            assert "trained with response_mode = 'direct'" in capsys.readouterr().err
