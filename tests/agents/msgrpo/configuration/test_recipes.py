"""The trainings that ship: found by name, in the wheel, readable, and made for the bases that they start from."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agents.msgrpo import MSGRPOConfig, main, prompts_of
from agents.msgrpo.configuration.config import packaged_recipes, recipe_path
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.trajectories import games_of

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
    (tmp_path / "tiny-frozen-lake").mkdir()  # which hides no recipe
    assert MSGRPOConfig.from_toml("tiny-frozen-lake").out == "runs/tiny-frozen-lake"
    (tmp_path / "tiny-frozen-lake").rmdir()
    (tmp_path / "tiny-frozen-lake").write_text('out = "mine"')  # a file of one's own goes first
    assert MSGRPOConfig.from_toml("tiny-frozen-lake").out == "mine"


def test_no_recipe_fixes_a_type_that_many_processors_are_slow_in():
    """``auto`` is bfloat16 on a GPU, and on a processor if it multiplies it fast."""
    files = [*RECIPES.values(), *(ROOT / "research").glob("*/recipes/*.toml")]
    assert len(files) > 15
    fixed = re.compile(r"^[^#\n]*\bdtype *= *\"bfloat16\"", re.MULTILINE)
    assert [file.name for file in files if fixed.search(file.read_text())] == []


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


def test_a_base_for_other_prompts_is_refused_before_training(tmp_path, capsys):
    """What destroyed the first model that a new user trained: 97.5% invalid, success 0, exit 0."""
    for setting, says in {
        "response_mode=direct": "set response_mode = 'think'",
        "prompt_file=default": "leave prompt_file out",
        "prompt_file=defalt": "did you mean 'default'",
    }.items():
        words = [word for one in ("model=tiny", setting, f'out="{tmp_path / "out"}"') for word in ("--set", one)]
        assert main(["--config", "tiny-frozen-lake", *words]) == 2
        assert says in capsys.readouterr().err
        assert not (tmp_path / "out" / "metrics.jsonl").exists()
