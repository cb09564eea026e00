"""Trainings do what is said of them: recipes are run as written, and every training command of the documents is run.

What a recipe has to reach stands in ``research/perf/recipes.toml``. The README's is run in CI, the others every night.
"""

import re
import shlex
from contextlib import chdir
from pathlib import Path

import pytest

from agents.msgrpo.__main__ import main
from agents.msgrpo.configuration.config import packaged_recipes
from research.perf.recipes import RECIPES, outcome

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "configs").glob("*.toml"))]
TRAINING = re.compile(
    r"^[#$ ]*((?:\w+=\S+ )*(?:python -m (?:agents\.msgrpo|research\.[a-z]+\.tiny)|textbench train) -.*?)(?: +#.*)?$",
    re.M,
)
COMMANDS = sorted({found for page in PAGES for found in TRAINING.findall(page.read_text())})

RECIPE_COMMANDS = {command: name for name, recipe in RECIPES.items() for command in recipe["commands"]}
SHORT = ["model=tiny", "iterations=2", "groups=2", "group_size=2", "episodes_drawn=2", "eval_episodes=4"]
LAKE = "python -m agents.msgrpo --config configs/tiny-frozen-lake.toml"
SHORTENED = {
    LAKE: SHORT,
    "python -m agents.msgrpo --print-config": [],
    "python -m agents.msgrpo --resume runs/tiny-frozen-lake": ["iterations=3"],
    f'{LAKE} --set \'trackers=["tensorboard", "wandb"]\'': SHORT,
}
"""Commands about something else than an outcome, run as written with these settings behind them."""
OF_THE_EXPERIMENT = ("smollm2-frozen-lake", "smollm2-snake", "tiny-league-snake-duel")
"""Recipes that experiments compare: ``textbench reproduce --config smollm2``, which takes hours, and snake_duel.py."""
ELSEWHERE = ("engine=ray", "engine=vllm", "qwen2.5-", "configs/paper.toml", *OF_THE_EXPERIMENT)
"""What needs a cluster, a server, a GPU or hours: ``.ci/engines``, the test of a Ray cluster, nobody yet, and those."""
PLACEHOLDERS = re.compile(r"\b(FILE|NAME|DIR)\b")


def succeeds(command: str, folder: Path) -> None:
    """Run one of the shortened commands in a folder, in this process, which has imported torch."""
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "agents.msgrpo"]
    words += [word for setting in SHORTENED[command] for word in ("--set", setting)]
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        assert main(words[3:]) == 0


def test_every_recipe_has_an_outcome_or_needs_a_gpu():
    elsewhere = {
        name for name in packaged_recipes() if name.startswith("qwen") or name in ("paper", *OF_THE_EXPERIMENT)
    }
    assert packaged_recipes().keys() - elsewhere == set(RECIPES)
    for name, recipe in RECIPES.items():
        assert any(f"configs/{name}.toml" in command for command in recipe["commands"])
        assert recipe["gain"] >= 0
        assert recipe["when"] in ("slow", "nightly")
    assert RECIPES["tiny-frozen-lake"]["when"] == "slow"  # the README's


def test_every_training_command_of_the_documents_is_run_somewhere():
    """As written by its outcome's test, or shortened by the one below; or it is known to need what isn't here."""
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        known = command in RECIPE_COMMANDS or command in SHORTENED
        assert known or any(word in command for word in ELSEWHERE) or PLACEHOLDERS.search(command), command


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=getattr(pytest.mark, recipe["when"])) for name, recipe in RECIPES.items()]
)
def test_a_recipe_as_written_reaches_what_is_stated(name, tmp_path):
    found = outcome(name, tmp_path)
    assert found.gain > RECIPES[name]["gain"], found
    if found.blind is not None:
        assert found.trained.low > found.blind, found  # the best that a player gets without reading


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    succeeds(LAKE, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(set(SHORTENED) & set(COMMANDS) - {LAKE}))
def test_the_other_commands_of_the_documents_run(command, trained, tmp_path):
    if "wandb" in command:
        pytest.importorskip("wandb")
    succeeds(command, trained if "--resume" in command else tmp_path)
