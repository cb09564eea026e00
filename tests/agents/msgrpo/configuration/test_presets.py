"""Presets: each makes a config whose methods exist, and what is said beside a preset counts more."""

import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.config import preset, presets
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.surrogates.tokens import PPO


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_config_with_its_methods(name):
    config = MSGRPOConfig.preset(name)
    assert Methods.of(config)
    for setting, value in preset(name).items():
        assert getattr(config, setting) == value


def test_presets_differ():
    """No two names mean the same settings."""
    made = [MSGRPOConfig.preset(name).to_toml() for name in presets()]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("name", [name for name in presets() if preset(name).get("surrogate") == "gspo"])
def test_a_ratio_for_each_response_goes_with_a_mean_over_responses(name):
    assert preset(name)["loss_normalizer"] == "response"


def test_a_preset_leaves_the_rest_of_the_run_alone():
    fresh = MSGRPOConfig()
    changed = fresh.differences(MSGRPOConfig.preset("dr_grpo"))
    assert changed == {
        "credit": ("msgrpo", "dr_grpo"), "episode_sampling": ("aaw", "off"), "loss_normalizer": ("token", "constant"),
    }  # fmt: skip


def test_the_plain_method_is_the_default():
    assert MSGRPOConfig.preset("msgrpo") == MSGRPOConfig()


def test_the_authors_settings_and_where_a_run_departs_from_them():
    paper = MSGRPOConfig.preset("paper")
    assert paper.departures() == {}
    assert (paper.draws, paper.minibatches, paper.game) == (32, 2, {"snake": {"step_reward": -0.01}})
    assert Methods.of(paper).surrogate == PPO(dual_clip=3.0)
    assert MSGRPOConfig().departures() == {
        "episode_sampling": "off", "loss_normalizer": "micro_batch", "shared_chance": True, "prompt_file": "paper",
        "minibatch_order": "time", "game.snake.step_reward": -0.01, "surrogate.ppo.dual_clip": 3.0,
    }  # fmt: skip
    assert "game.snake.step_reward" not in MSGRPOConfig(scenarios=("frozen-lake",)).departures()
    assert paper.with_overrides(["learning_rate=1e-3", "game.snake.width=5"]).departures() == {"learning_rate": 1e-6}
    recipe = MSGRPOConfig.from_toml("paper")
    assert (recipe.departures(), recipe.model) == ({}, "Qwen/Qwen2.5-3B-Instruct")
    own = MSGRPOConfig(game={"size": 6}, method_settings={"credit": {"msgrpo": {"discount": 0.9}}})
    assert own.with_overrides(["preset=paper"]).departures() == {}  # tables are laid over each other
    assert own.with_overrides(["preset=paper"]).game == {"size": 6, "snake": {"step_reward": -0.01}}


def test_in_a_file_the_other_keys_count_more(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('preset = "dr_grpo"\n[loss]\nclip_high = 0.3\n[sampling]\nepisode_sampling = "uniform"\n')
    config = MSGRPOConfig.from_toml(path)
    assert (config.credit, config.episode_sampling, config.clip_high) == ("dr_grpo", "uniform", 0.3)
    again = tmp_path / "again.toml"
    again.write_text(config.to_toml())
    assert "preset" not in again.read_text()
    assert MSGRPOConfig.from_toml(again) == config


def test_on_the_command_line_it_counts_more_than_the_file_and_less_than_other_overrides(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[advantages]\ncredit = "gigpo"\n[loss]\nclip_high = 0.3\n[credit.gigpo]\ndiscount = 0.9\n')
    config = MSGRPOConfig.from_toml(path, ["clip_low=0.1", "preset=dr_grpo", "credit.rtg.scale=group_std"])
    assert (config.credit, config.clip_low, config.clip_high) == ("dr_grpo", 0.1, "auto")
    assert config.method_settings == {"credit": {"gigpo": {"discount": 0.9}, "rtg": {"scale": "group_std"}}}


def test_overrides_leave_the_config_that_they_are_made_from_alone():
    config = MSGRPOConfig.from_mapping({"credit": {"gigpo": {"discount": 0.9}}})
    assert config.with_overrides(["credit.gigpo.discount=0.5"]).method_settings["credit"]["gigpo"] == {"discount": 0.5}
    assert config.method_settings["credit"]["gigpo"] == {"discount": 0.9}


def test_an_unknown_preset():
    with pytest.raises(ConfigError, match=r"preset = 'dr-grpo' is not one; did you mean 'dr_grpo'\?"):
        MSGRPOConfig.preset("dr-grpo")
    with pytest.raises(ConfigError, match="preset = 'common' is not one"):
        MSGRPOConfig.from_mapping({"preset": "common"})
    with pytest.raises(ConfigError, match="preset = 3 is not one"):
        MSGRPOConfig().with_overrides(["preset=3"])
