"""Any player inside a Gymnasium environment."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

import agents
import textgames  # noqa: F401 - registers the ids
from tests.agents.baselines.own_game import Undealt
from textgames.environments.solo import TextGameEnv


@pytest.mark.parametrize("name", ["TextKuhnPoker-v0", "TextWerewolf-v0"])
def test_any_player_plays_inside(name):
    """What it is asked with is what it is asked with in the loop, where actions can't be listed, too."""
    env = gym.make(name, seat="player_0", opponents=agents.opponent("random"))
    _, info = env.reset(seed=3)
    over = False
    while not over:
        legal = info["legal_actions"]
        _, _, terminated, truncated, info = env.step(str(legal[0]) if legal else "<action>wait</action>")
        over = terminated or truncated


def test_an_environment_with_a_player_inside_is_pickled_between_episodes():
    env = gym.make("TextNim-v0", seat="player_1", opponents=agents.opponent("planner"))
    assert pickle.loads(pickle.dumps(env)).reset(seed=3) == env.reset(seed=3)
    inside = agents.opponent("planner")
    assert copy.deepcopy(inside)._answer is inside._answer  # specs are copied deeply, and models are large


def test_a_planner_inside_wins_what_can_be_won():
    inside = {"seat": "player_1", "opponents": agents.opponent("planner")}
    envs = gym.make_vec("TextNim-v0", 4, vectorization_mode="vector_entry_point", **inside)
    rng, returns = np.random.default_rng(0), []
    _, infos = envs.reset(seed=np.arange(4))
    for _ in range(40):
        answers = [str(rng.choice(legal)) if legal else "" for legal in infos["legal_actions"]]
        _, rewards, terminated, _, infos = envs.step(answers)
        returns += [float(reward) for reward, over in zip(rewards, terminated, strict=True) if over]
    assert len(returns) > 10
    assert np.mean(returns) < -0.8


def test_a_player_inside_is_named_as_everywhere():
    """By its spec alone, in each form of environment; what ``opponent`` of the same spec plays."""
    named, made = (
        gym.make("TextNim-v0", seat="player_1", opponents=who) for who in ("planner", agents.opponent("planner"))
    )
    for seed in range(3):
        assert named.reset(seed=seed) == made.reset(seed=seed)
        assert named.step("take 1 from 1") == made.step("take 1 from 1")
    for who in ("planner", {"player_0": "planner"}):
        batch = gym.make_vec("TextNim-v0", 2, vectorization_mode="vector_entry_point", seat="player_1", opponents=who)
        assert batch.reset(seed=0)[0][0] == named.reset(seed=0)[0]
    assert pickle.loads(pickle.dumps(named)).reset(seed=3) == named.reset(seed=3)
    assert named.spec is not None
    assert named.spec.make().reset(seed=3) == named.reset(seed=3)


@pytest.mark.parametrize(
    ("who", "told"),
    [
        ("plannerr", "planner"),
        ({"player_1": "plannerr"}, "planner"),
        ("planner", "greedy and planner can't play Undealt"),
    ],
)
def test_a_player_that_there_is_not_or_that_cannot_play_is_refused_when_the_environment_is_made(who, told):
    with pytest.raises(ValueError, match=told):
        TextGameEnv(Undealt, max_steps=3, opponents=who)
