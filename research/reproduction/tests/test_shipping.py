"""What ships is chosen by the rule and described by its card; the models that ship load and play offline."""

import json
from pathlib import Path

import pytest

from agents import EpisodeTask, load_agent, rollout
from agents.models.embedded import READS
from benchmark.errors import UsageError
from research.reproduction.jobs import ReproductionFolder
from research.reproduction.settings import Experiment
from research.reproduction.shipping import LARGEST, ship

EMBEDDED = Path(__file__).parents[3] / "agents/tiny/weights"


def fill(folder: ReproductionFolder, experiment: Experiment) -> None:
    """A folder as a finished reproduction leaves it, with weights that say where they come from."""
    columns = {"returns": [0.0, 1.0], "successes": [0, 1], "lengths": [3, 4], "invalid": [0, 0], "first_seed": 11_000}
    played = {"seconds": 1.0, "scenarios": dict.fromkeys(experiment.scenarios, columns)}
    made = {"facts": {"textbench": "commit 1234"}, "seconds": 1.0, "parameters": 1234}
    folder.write_result("pretrain/small", made)
    folder.write_result("play/small", played)
    folder.write_result("play/random", played)
    base = folder.model("small")
    base.mkdir(parents=True)
    (base / "README.md").write_text("# Base\n\n## Results\n\nNot evaluated.\n")
    (base / "recipe.json").write_text("{}")
    for seed in range(experiment.seeds):
        for arm in experiment.arms:
            run = f"train/frozen-lake/{arm}/{seed}"
            settings = experiment.training_settings("frozen-lake", arm, seed)
            trained = {"training_seconds": 1.0, "settings": settings, "evaluations": [], "history": []}
            folder.write_result(run, {"facts": made["facts"], "seconds": 1.0, **trained})
            folder.write_result(f"play/{run}", played)
            checkpoint = folder.path / run / "checkpoints/iteration-000002"
            checkpoint.mkdir(parents=True)
            (checkpoint / "model.safetensors").write_text(run)
            (checkpoint / "trainer_state.pt").write_text("not for shipping")
            (folder.path / run / "last").symlink_to("checkpoints/iteration-000002")
    (base / "model.safetensors").write_text("base")


@pytest.fixture
def experiment():
    return Experiment.read("miniature", {"seeds": 2})


def test_seed_0_of_the_first_arm_ships_with_its_card(tmp_path, experiment):
    folder, place = ReproductionFolder(tmp_path / "out"), tmp_path / "shipped"
    fill(folder, experiment)
    written = ship(experiment, folder, place, ["A note."])
    assert [path.name for path in written] == ["tiny", "tiny-msgrpo-frozen-lake"]
    base, trained = written
    assert (trained / "model.safetensors").read_text() == "train/frozen-lake/aaw/0"
    assert sorted(path.name for path in trained.iterdir()) == ["README.md", "model.safetensors", "training.json"]
    assert json.loads((trained / "training.json").read_text())["settings"]["episode_sampling"] == "aaw"
    text = (trained / "README.md").read_text()
    for part in ("## Data", "## Which run", "Seed 0", "commit", "## Results", "## Limits", "1,234 parameters"):
        assert part in text
    text = (base / "README.md").read_text()
    assert "Not evaluated" not in text
    assert "A note." in text
    assert "| frozen-lake | 0.500" in text
    assert ship(experiment, folder, place)  # again, over what is there


def test_what_is_not_done_or_too_large_does_not_ship(tmp_path, experiment):
    folder = ReproductionFolder(tmp_path / "out")
    with pytest.raises(UsageError, match="has no base model yet"):
        ship(experiment, folder, tmp_path / "shipped")
    fill(folder, experiment)
    folder.result_file("play/train/frozen-lake/aaw/0").unlink()
    assert [path.name for path in ship(experiment, folder, tmp_path / "shipped")] == ["tiny"]
    (folder.model("small") / "model.safetensors").write_bytes(b"0" * (LARGEST + 1))
    with pytest.raises(UsageError, match="shipped models have at most 5,000,000"):
        ship(experiment, folder, tmp_path / "shipped")


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(path for path in EMBEDDED.glob("*") if path.is_dir()), ids=lambda p: p.name)
def test_shipped_models_are_small_documented_and_play(folder):
    assert sum(file.stat().st_size for file in folder.iterdir()) < LARGEST
    card = (folder / "README.md").read_text()
    for part in ("## Data", "## Results", "## Limits", "commit", "seed"):
        assert part in card, part
    policy = load_agent(folder.name)
    assert policy.name == folder.name
    tasks = [EpisodeTask.of(name, 10_000 + k) for name in READS[folder.name] for k in range(4)]
    steps = [step for episode in rollout(policy, tasks) for step in episode.steps]
    assert sum(step.valid for step in steps) >= 0.9 * len(steps)
    assert all("<think>" in step.turn.response for step in steps)
