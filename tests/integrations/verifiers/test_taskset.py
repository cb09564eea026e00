"""Which tasks there are, and what is refused before any is played."""

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


def test_rollouts_of_a_training_task_share_their_start_alone():
    (task,) = tasks_of(scenario="snake", split="train", episodes=1, seed_offset=7)
    assert (task.data.seed, task.data.layout_seed) == (None, 7)
    assert task.data.settings == {"protocol": "default", "format_penalty": 1.0}
    sessions = [EpisodeSession(task.episode(seed)) for seed in range(8)]
    assert len({session.request.observation for session in sessions}) == 1
    for session in sessions:
        session.respond("<action>up</action>")
    assert len({session.request.observation for session in sessions}) > 1  # the opponent moves at random


def test_train_split_has_the_training_seeds():
    tasks = tasks_of(scenario="frozen-lake", split="train")
    assert [task.data.layout_seed for task in tasks] == list(range(10_000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"taskset": {"scenario": "frozen-lak"}}, "did you mean 'frozen-lake'"),
        ({"taskset": {"suite": "plannning"}}, "did you mean 'planning'"),
        ({"taskset": {"scenario": "snake", "settings": {"widht": 5}}}, "no setting 'widht'"),
        ({"taskset": {"split": "train", "seed_offset": 10_000}}, "10000 training seeds"),
        ({"taskset": {"mode": "thnk"}}, "did you mean 'think'"),
        ({"taskset": {"prompts": "no-such-file.toml"}}, "no-such-file.toml"),
        ({"taskset": {"scenario": "tic-tac-toe"}, "env": {"seat": "player_7"}}, "has player_0, player_1"),
        ({"env": {"opponents": "plannner"}}, "did you mean 'planner'"),
        ({"env": {"player": {"harness": {"max_retries": -1}}}}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_played_is_refused_with_advice(options, message):
    with pytest.raises(ValidationError, match=message):
        config_of("http://localhost/v1", **options)
