"""Which tasks there are, and what is refused before any is played."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("textbench_verifiers", reason="needs textbench-verifiers: .ci/adapters verifiers")

import verifiers.v1 as vf
from pydantic import ValidationError

from agents import EpisodeSession
from tests.integrations.verifiers.evaluation import config_of
from textgames import SCENARIOS

pytestmark = pytest.mark.adapters


def tasks_of(**taskset):
    return list(vf.load_taskset(config_of("http://localhost/v1", taskset=taskset).env.taskset))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_a_taskset(name):
    tasks = tasks_of(scenario=name, episodes=3)
    first = SCENARIOS[name].first_seed
    assert [task.data.seed for task in tasks] == [first, first + 1, first + 2]
    assert [task.key for task in tasks] == [f"{name}/{first + k}" for k in range(3)]
    assert EpisodeSession(tasks[0].episode(0), opponents=None).task.seed == first


def test_train_split_has_the_training_seeds():
    tasks = tasks_of(scenario="frozen-lake", split="train")
    assert [task.data.layout_seed for task in tasks] == list(range(10_000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"taskset": {"scenario": "frozen-lak"}}, "did you mean 'frozen-lake'"),
        ({"taskset": {"scenario": "snake", "settings": {"widht": 5}}}, "no setting 'widht'"),
        ({"taskset": {"settings": {"protocol": "tools"}}}, "'tools' is for models that textbench asks itself"),
        ({"taskset": {"split": "train", "seed_offset": 10_000}}, "10000 training seeds"),
        ({"taskset": {"prompts": "no-such-file.toml"}}, "no-such-file.toml"),
        ({"taskset": {"scenario": "tic-tac-toe"}, "env": {"seat": "player_7"}}, "has player_0, player_1"),
        ({"env": {"opponents": "plannner"}}, "did you mean 'planner'"),
        ({"env": {"player": {"harness": {"max_retries": -1}}}}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_played_is_refused_with_advice(options, message):
    with pytest.raises(ValidationError, match=message):
        config_of("http://localhost/v1", **options)


def test_types():
    pytest.importorskip("mypy", reason="checks types with mypy")
    folder = Path(__file__).parents[3] / "textbench/integrations/verifiers"
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
