"""The config: what it accepts, what it says when it doesn't, and the way to a file and back."""

import dataclasses
import json
import re
import subprocess
import sys

import pytest

from agents.msgrpo import POINTS, PPO, ConfigError, MSGRPOConfig, training_config_schema
from agents.msgrpo.configuration.config import describe, preset, presets
from agents.msgrpo.configuration.methods import Methods


def test_the_schema_says_what_a_file_may_hold_and_documents_it():
    schema = training_config_schema()
    assert set(schema["properties"]) == {about.name for about in dataclasses.fields(MSGRPOConfig)}
    assert schema["additionalProperties"] is False
    kl = schema["properties"]["kl_estimator"]
    assert (kl["enum"], kl["default"], kl["section"]) == (["k2", "k3"], "k3", "loss")
    assert schema["properties"]["group_size"]["minimum"] == 2
    assert all("\n" not in about["description"] for about in schema["properties"].values())
    json.dumps(schema)  # plain data
    points = {name: about["point"] for name, about in schema["properties"].items() if "point" in about}
    assert points == {registry.setting: registry.point for registry in POINTS.values()}
    for name in schema["properties"]:
        documentation, accepted = describe(name).split(" Accepted: ")
        assert min(len(documentation) - 7, len(accepted)) > 3, name


def test_config_is_frozen():
    for name in ("seed", "group"):  # a slip for groups would be set and never read
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"replace\\(config, {name}="):
            setattr(MSGRPOConfig(), name, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"group_size": 1}, ["group_size must be a whole number of at least 2, got 1"]),
        ({"group_size": True}, ["group_size", "True", "a whole number"]),
        ({"temperature": float("nan")}, ["temperature", "nan"]),
        ({"loss_normalizer": "tokens"}, ["loss_normalizer", "'tokens'", "token, step, episode", "you mean 'token'"]),
        ({"gruop_size": 4}, ["gruop_size", "did you mean 'group_size'?"]),
        ({"lossy": {"clip_low": 0.1}}, ["[lossy] is not a section", "did you mean 'loss'?"]),
        ({"seed": 1, "run": {"seed": 2}}, ["seed is set twice", "1", "2"]),
        ({"episodes_drawn": 33}, ["episodes_drawn = 33", "32"]),
        ({"old_logprobs": "sampling"}, ["old_logprobs", "minibatches", "recompute"]),
        ({"attention": "flash_attention_2"}, ["packing", "tree", "flash_attention_2"]),
        ({"group_size": 1, "temperature": 0}, ["group_size must", "temperature must"]),
        ({"dtype": "float32", "param_dtype": "bfloat16"}, ["dtype", "param_dtype", "accepted"]),
        ({"scenarios": [1]}, ["scenarios", "list of texts"]),
        ({"preset": "dr-grpo"}, ["preset = 'dr-grpo' is not one; did you mean 'dr_grpo'?"]),
        ({"preset": "common"}, ["preset = 'common' is not one"]),
    ],
)
def test_errors_name_field_value_and_what_is_accepted(settings, words):
    with pytest.raises(ConfigError) as error:
        MSGRPOConfig.from_mapping(settings)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["groups"], "key=value"),
        (["grups=3"], "did you mean 'groups'?"),
        (['engine_options={"address": null}'], "no null in TOML; leave the setting out"),
        (["method_settings=3"], "method_settings must be a table, got 3"),
        (["around_options=3", "around_options.x=1"], "around_options must be a table, got 3"),
        (["preset=3"], "preset = 3 is not one"),
    ],
)
def test_override_errors(overrides, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        MSGRPOConfig().with_overrides(overrides)


@pytest.mark.parametrize("documented", [False, True])
def test_a_file_overrides_and_a_file_again(tmp_path, documented):
    path = tmp_path / "run.toml"
    path.write_text(
        'groups = 4\nscenarios = ["snake"]\nmodel = "a \\"b\\"\\\\c\\t"\n[update]\nlearning_rate = 1e-4\n'
        "[game]\nsize = 6\n[game.snake]\nstep_reward = -0.01\n"
    )
    overrides = ["groups=8", "out=runs/x", "rollback=false", 'scenarios=["a","b"]', "game.snake.width=5"]
    config = MSGRPOConfig.from_toml(
        path, [*overrides, "eval_game.size=5", "engine=vllm", "engine_options.deep={a = 1}"]
    )
    assert (config.groups, config.out, config.rollback, config.learning_rate) == (8, "runs/x", False, 1e-4)
    assert (config.scenarios, config.model) == (("a", "b"), 'a "b"\\c\t')
    assert config.game == {"size": 6, "snake": {"step_reward": -0.01, "width": 5}}
    assert (config.eval_game, config.engine_options) == ({"size": 5}, {"deep": {"a": 1}})
    path.write_text(config.to_toml(documented=documented), encoding="utf-8")
    assert MSGRPOConfig.from_toml(path) == config


def test_the_settings_of_a_class_in_a_module_with_dots_can_be_set_and_those_before_stay():
    assert "." in __name__
    config = MSGRPOConfig.from_mapping({"credit": {"gigpo": {"discount": 0.9}}})
    overrides = [f"credit.{__name__}:Mine.discount=0.5", f'credit."{__name__}:Mine".sign=-1', "credit.gigpo.discount=1"]
    tables = config.with_overrides(overrides).method_settings["credit"]
    assert tables == {"gigpo": {"discount": 1}, f"{__name__}:Mine": {"discount": 0.5, "sign": -1}}
    assert config.method_settings["credit"] == {"gigpo": {"discount": 0.9}}


def test_a_flat_file_with_a_table_of_a_settings_name_says_where_the_setting_goes(tmp_path):
    (tmp_path / "flat.toml").write_text('credit = "gigpo"\n[credit.gigpo]\nstep_weight = 0.5\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="isn't TOML") as error:
        MSGRPOConfig.from_toml(tmp_path / "flat.toml")
    assert "put credit into [advantages]" in error.value.__notes__[0]


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


def test_a_preset_leaves_the_rest_of_the_run_alone_and_the_plain_method_is_the_default():
    assert MSGRPOConfig.preset("msgrpo") == MSGRPOConfig()
    assert MSGRPOConfig().differences(MSGRPOConfig.preset("dr_grpo")) == {
        "credit": ("msgrpo", "dr_grpo"), "episode_sampling": ("aaw", "off"), "loss_normalizer": ("token", "constant"),
    }  # fmt: skip


def test_a_file_s_keys_count_more_than_its_preset_and_less_than_that_of_the_command_line(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('preset = "dr_grpo"\n[loss]\nclip_high = 0.3\n[sampling]\nepisode_sampling = "uniform"\n')
    config = MSGRPOConfig.from_toml(path)
    assert (config.credit, config.episode_sampling, config.clip_high) == ("dr_grpo", "uniform", 0.3)
    path.write_text('[advantages]\ncredit = "gigpo"\n[loss]\nclip_high = 0.3\n[credit.gigpo]\ndiscount = 0.9\n')
    config = MSGRPOConfig.from_toml(path, ["clip_low=0.1", "preset=dr_grpo", "credit.rtg.scale=group_std"])
    assert (config.credit, config.clip_low, config.clip_high) == ("dr_grpo", 0.1, "auto")
    assert config.method_settings == {"credit": {"gigpo": {"discount": 0.9}, "rtg": {"scale": "group_std"}}}


def test_the_authors_settings_and_where_a_run_departs_from_them():
    paper, recipe = MSGRPOConfig.preset("paper"), MSGRPOConfig.from_toml("paper")
    assert (paper.departures(), recipe.departures()) == ({}, {})
    assert (paper.draws, paper.minibatches, paper.game) == (32, 2, {"snake": {"step_reward": -0.01}})
    assert Methods.of(paper).surrogate == PPO(dual_clip=3.0)
    assert MSGRPOConfig().departures() == {
        "episode_sampling": "off", "loss_normalizer": "micro_batch", "shared_chance": True, "prompt_file": "paper",
        "minibatch_order": "time", "game.snake.step_reward": -0.01, "surrogate.ppo.dual_clip": 3.0,
    }  # fmt: skip
    assert "game.snake.step_reward" not in MSGRPOConfig(scenarios=("frozen-lake",)).departures()
    assert paper.with_overrides(["learning_rate=1e-3", "game.snake.width=5"]).departures() == {"learning_rate": 1e-6}
    own = MSGRPOConfig(game={"size": 6}, method_settings={"credit": {"msgrpo": {"discount": 0.9}}})
    assert own.with_overrides(["preset=paper"]).departures() == {}  # tables are laid over each other
    assert own.with_overrides(["preset=paper"]).game == {"size": 6, "snake": {"step_reward": -0.01}}
