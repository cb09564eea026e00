"""Games as environments of the real SkyRL-Gym."""

from importlib.util import find_spec

import pytest

from agents import EpisodeSession, PromptMap, load_agent

pytestmark = pytest.mark.skipif(
    find_spec("skyrl_gym") is None, reason="SkyRL-Gym isn't installed: pip install -c constraints.txt -e '.[skyrl]'"
)
RANDOM = load_agent("random")


def made(config=None, **row):
    import skyrl_gym

    import textbench.integrations.skyrl  # noqa: F401 - registers the environment

    return skyrl_gym.make("textbench", env_config=config or {}, extras=row)


def test_episode_pays_its_return_step_by_step():
    from textbench.integrations.skyrl import start_rows

    for row in start_rows("snake", 3, first_seed=5):
        env = made(**{key: value for key, value in row.items() if key not in ("prompt", "env_class")})
        conversation, _ = env.init(row["prompt"])
        expected = EpisodeSession("snake", 0, layout_seed=row["layout_seed"], prompt_map=PromptMap())
        assert conversation == expected.messages
        total, done = 0.0, False
        while not done:
            response = RANDOM.act([env.session.request])[0].response
            told = env.step(response)
            done, total = told["done"], total + told["reward"]
            conversation += [{"role": "assistant", "content": response}, *told["observations"]]
            assert len(told["observations"]) == (not done)
        metrics = env.get_metrics()
        assert total == pytest.approx(metrics["return"]) == env.session.episode.returns["player_0"]
        assert metrics["steps"] == len(env.session.episode.steps)
        assert metrics["invalid_rate"] == 0
        assert sum(expected.instructions in message["content"] for message in conversation) == 1


def test_a_group_shares_its_start_and_not_its_transitions():
    group = [made(scenario="frozen-lake-slippery", layout_seed=5) for _ in range(6)]
    assert len({env.init([])[0][0]["content"] for env in group}) == 1
    told = [env.step("<action>down</action>") for env in group]
    assert len({step["observations"][0]["content"] for step in told if step["observations"]}) > 1


def test_a_player_may_be_out_before_it_is_asked():
    """Seven villagers of sixty die in the first night; their row pays what the episode has paid, in one step."""
    rows = ({"scenario": "werewolf-5", "layout_seed": seed, "seat": "player_0"} for seed in range(60))
    env = next(env for env in (made(**row) for row in rows) if env.session.over)
    assert env.init([])[0] == [{"role": "user", "content": env.session.last_observation("player_0")}]
    told = env.step("anything")
    assert (told["done"], told["observations"]) == (True, [])
    assert told["reward"] == env.get_metrics()["return"] == env.session.episode.returns["player_0"]
    with pytest.raises(RuntimeError, match="is over"):
        env.step("more")


def test_configuration_of_the_trainer_is_followed():
    from omegaconf import OmegaConf

    config = OmegaConf.create(
        {"mode": "direct", "opponents": "planner", "settings": {"format_penalty": 1.0}, "scenario": "tic-tac-toe"}
    )
    env = made(config, seat="player_1")
    first = env.init([])[0][0]["content"]
    assert "Answer with the action alone" in first
    assert env.session.player == "player_1"
    assert env.step("no idea")["metadata"]["unreadable"] == "no_tag"
    assert env.session.returns["player_1"] <= -1.0
    with pytest.raises(ValueError, match="has no option mod; there are scenario, mode"):
        made({"mod": "direct"})
    with pytest.raises(ValueError, match="unknown scenario 'lake'"):
        made(scenario="lake")
    with pytest.raises(ValueError, match=r"text alone, got protocol='random\+image'"):
        made({"settings": {"protocol": "random+image"}})
