"""The config: what it accepts, what it says when it doesn't, and the way to a file and back."""

import dataclasses
import json
import subprocess
import sys

import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.config import describe, preset, presets, training_config_schema
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.surrogates.tokens import PPO


def test_every_field_is_documented():
    for about in dataclasses.fields(MSGRPOConfig):
        documentation, accepted = describe(about.name).split(" Accepted: ")
        assert len(documentation) > 10, about.name
        assert len(accepted) > 3, about.name


def test_the_schema_says_what_a_file_may_hold():
    schema = training_config_schema()
    assert set(schema["properties"]) == {about.name for about in dataclasses.fields(MSGRPOConfig)}
    assert schema["additionalProperties"] is False
    kl = schema["properties"]["kl_estimator"]
    assert (kl["enum"], kl["default"], kl["section"]) == (["k2", "k3"], "k3", "loss")
    assert schema["properties"]["group_size"]["minimum"] == 2
    assert schema["properties"]["temperature"]["exclusiveMinimum"] == 0
    assert all("\n" not in about["description"] for about in schema["properties"].values())
    json.dumps(schema)  # plain data


def test_config_is_frozen():
    for name in ("seed", "group"):  # a slip for groups would be set and never read
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"replace\\(config, {name}="):
            setattr(MSGRPOConfig(), name, 1)


@pytest.mark.parametrize("documented", [False, True])
def test_toml_round_trip(tmp_path, documented):
    config = MSGRPOConfig(
        scenarios=("snake", "frozen-lake"), learning_rate=3e-5, model='a "b"\\c\t\x7f', rollback=False
    )
    path = tmp_path / "run.toml"
    path.write_text(config.to_toml(documented=documented), encoding="utf-8")
    assert MSGRPOConfig.from_toml(path) == config


def test_flat_files_and_overrides(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('groups = 4\nscenarios = ["snake"]\n[update]\nlearning_rate = 1e-4\n')
    config = MSGRPOConfig.from_toml(path, ["groups=8", "out=runs/x", "rollback=false", 'scenarios=["a","b"]'])
    assert (config.groups, config.out, config.rollback, config.learning_rate) == (8, "runs/x", False, 1e-4)
    assert config.scenarios == ("a", "b")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"group_size": 1}, ["group_size must be a whole number of at least 2, got 1"]),
        ({"group_size": 2.5}, ["group_size", "2.5", "a whole number"]),
        ({"group_size": True}, ["group_size", "True", "a whole number"]),
        ({"temperature": 0}, ["temperature must be a number above 0, got 0"]),
        ({"temperature": float("nan")}, ["temperature", "nan"]),
        ({"learning_rate": "fast"}, ["learning_rate", "'fast'", "a number"]),
        ({"learning_rate": float("inf")}, ["learning_rate", "inf"]),
        (
            {"loss_normalizer": "tokens"},
            ["loss_normalizer", "'tokens'", "token, step, episode", "did you mean 'token'?"],
        ),
        ({"episode_sampling": "best"}, ["episode_sampling", "aaw_replacement", "uniform"]),
        ({"gruop_size": 4}, ["gruop_size", "did you mean 'group_size'?"]),
        ({"zzz": 4}, ["zzz is not a setting", "group_size"]),
        ({"lossy": {"clip_low": 0.1}}, ["[lossy] is not a section", "did you mean 'loss'?"]),
        ({"seed": 1, "run": {"seed": 2}}, ["seed is set twice", "1", "2"]),
        ({"episodes_drawn": 33}, ["episodes_drawn = 33", "32"]),
        ({"old_logprobs": "sampling"}, ["old_logprobs", "minibatches", "recompute"]),
        ({"attention": "flash_attention_2"}, ["packing", "tree", "flash_attention_2"]),
        ({"group_size": 1, "temperature": 0}, ["group_size must", "temperature must"]),
        ({"dtype": "float32", "param_dtype": "bfloat16"}, ["dtype", "param_dtype", "accepted"]),
        ({"scenarios": [1]}, ["scenarios", "list of texts"]),
    ],
)
def test_errors_name_field_value_and_what_is_accepted(settings, words):
    with pytest.raises(ConfigError) as error:
        MSGRPOConfig.from_mapping(settings)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("groups", ["key=value"]),
        ("grups=3", ["did you mean 'groups'?"]),
        ("groups=many", ["groups must be a whole number of at least 1, got 'many'"]),
        ('engine_options={"address": null}', ["no null in TOML; leave the setting out"]),
        ("method_settings=3", ["method_settings must be a table, got 3"]),
        ("around_options=3 around_options.x=1", ["around_options must be a table, got 3"]),
    ],
)
def test_override_errors(override, words):
    with pytest.raises(ConfigError) as error:
        MSGRPOConfig().with_overrides([override] if "null" in override else override.split())
    for word in words:
        assert word in str(error.value)


def test_settings_of_games_stand_in_a_table(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("[rollout]\ngroups = 3\n[game]\nsize = 6\n[game.snake]\nstep_reward = -0.01\n")
    config = MSGRPOConfig.from_toml(path, ["game.snake.width=5", "eval_game.size=5"])
    assert config.game == {"size": 6, "snake": {"step_reward": -0.01, "width": 5}}
    assert (config.groups, config.eval_game) == (3, {"size": 5})
    for documented in (False, True):
        again = tmp_path / "again.toml"
        again.write_text(config.to_toml(documented=documented))
        assert "\nsize = 6\n" in again.read_text()
        assert MSGRPOConfig.from_toml(again) == config


def test_a_class_of_a_module_with_dots_can_be_set():
    overrides = [f"credit={__name__}:Mine", f"credit.{__name__}:Mine.discount=0.5", f'credit."{__name__}:Mine".sign=-1']
    assert "." in __name__
    tables = MSGRPOConfig().with_overrides(overrides).method_settings
    assert tables == {"credit": {f"{__name__}:Mine": {"discount": 0.5, "sign": -1}}}


def test_a_flat_file_with_a_table_of_a_settings_name_says_where_the_setting_goes(tmp_path):
    (tmp_path / "flat.toml").write_text('credit = "gigpo"\n[credit.gigpo]\nstep_weight = 0.5\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="isn't TOML") as error:
        MSGRPOConfig.from_toml(tmp_path / "flat.toml")
    assert "put credit into [advantages]" in error.value.__notes__[0]


def test_a_folder_hides_no_recipe(tmp_path, monkeypatch):
    (tmp_path / "tiny-frozen-lake").mkdir()
    monkeypatch.chdir(tmp_path)
    assert MSGRPOConfig.from_toml("tiny-frozen-lake").out == "runs/tiny-frozen-lake"


@pytest.mark.slow
def test_the_config_and_the_pure_functions_need_no_torch():
    """So that settings can be checked and read on a machine without it."""
    code = (
        "import sys; import agents.msgrpo; from agents.msgrpo import group_advantages, sample_episodes, MSGRPOConfig; "
        "from agents.msgrpo.surrogates import SURROGATES; "
        "assert not {'torch', 'transformers', 'openai', 'rich'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- presets


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_config_with_its_methods(name):
    config = MSGRPOConfig.preset(name)
    assert Methods.of(config)
    if config.surrogate == "gspo":  # a ratio for each response
        assert config.loss_normalizer == "response"
    for setting, value in preset(name).items():
        assert getattr(config, setting) == value


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
