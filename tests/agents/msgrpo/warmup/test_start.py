"""A warm start from settings to a folder, which plays, knows its prompts and can be trained further."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents import load_agent
from agents.common import progress
from agents.common.locking import LOCK_NAME, FolderLock
from agents.models.local.loading.card import Card, read_card
from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.__main__ import main
from agents.msgrpo.warmup.start import ABOUT, CHECKPOINT, Teaching, warm_start, warmup_config
from agents.prompt_texts import PromptTexts

TEACHING = Teaching(("planner",), 48)


@pytest.fixture
def made(tmp_path):
    """Makes a warm start of the shipped base in ``tmp_path/made``."""

    def make(teaching: Teaching = TEACHING, say: Callable[[str], None] = print, **settings: Any) -> dict[str, Any]:
        settings = {"device": "cpu", "out": str(tmp_path / "made"), "response_mode": "direct"} | settings
        config = warmup_config("tiny", ["frozen-lake"], teaching.decisions, **settings, dtype="float32")
        return warm_start(config, teaching, say)

    return make


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "weights"), [(4, "adapter_model.safetensors"), (0, "model.safetensors")])
def test_the_folder_plays_and_is_trained_further_with_the_prompts_that_it_learnt(rank, weights, made, tmp_path):
    about = made(lora_rank=rank)
    assert about["held_out"] < about["held_out_before"]
    assert about["losses"][-1] < about["losses"][0]
    folder = tmp_path / "made"
    assert (folder / weights).is_file()
    assert not (folder / CHECKPOINT).exists()
    assert read_card(str(folder)) == Card(("direct",), PromptTexts.default())  # and not the base's think
    player: Any = load_agent(f"hf:{folder}")
    assert player.prompt_map.mode == "direct"
    assert player.act(["Where to?"])[0].response is not None
    if rank:
        told = json.loads((folder / "adapter_config.json").read_text())
        assert told["base_model_name_or_path"] == "tiny"  # no place on this machine
    config = tmp_path / "further.toml"
    config.write_text(
        f'model = "{folder}"\nresponse_mode = "direct"\nscenarios = ["frozen-lake"]\ndevice = "cpu"\niterations = 1\n'
        "groups = 1\ngroup_size = 2\nmax_response_tokens = 8\neval_every = 0\nsamples_every = 0\nstop_after = 0\n"
        f'min_valid_share = 0\nlora_rank = {rank}\nlora_alpha = 8\nout = "{tmp_path / "run"}"\n'
    )
    assert main(["--config", str(config), "--quiet"]) == 0
    assert (tmp_path / "run" / "last" / weights).is_file()


@pytest.mark.slow
def test_the_same_call_goes_on_where_it_was_stopped_and_does_nothing_at_the_end(made, tmp_path, monkeypatch):

    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    def interrupt(line: str) -> None:
        if line.startswith("step 2/3: "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(say=interrupt)
    assert (tmp_path / "made" / CHECKPOINT).exists()
    lines: list[str] = []
    about = made(say=lines.append)
    assert [line.partition(":")[0] for line in lines if line.startswith("step")] == ["step 3/3"]
    straight = made(out=str(tmp_path / "straight"))
    assert about["losses"] == straight["losses"]
    weights = [(tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("made", "straight")]
    assert weights[0] == weights[1]
    assert made() == about
    with pytest.raises(ConfigError, match="holds a warm start with other settings: choose another folder"):
        made(learning_rate=2e-3)
    with pytest.raises(ConfigError, match="holds a warm start with other settings"):
        made(Teaching(("random",), 48))


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json", "notes"])
def test_a_folder_that_holds_something_else_is_left_alone(name, made, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / name).write_bytes(b"somebody's")
    with pytest.raises(ConfigError, match=rf"isn't empty \(it holds '{name}'\) and is no warm start: choose another"):
        made()
    (folder / ABOUT).write_text("[]")
    with pytest.raises(ConfigError, match="doesn't say how its model was made"):
        made()
    assert (folder / name).read_bytes() == b"somebody's"
    assert len(list(folder.iterdir())) == 2


def test_nothing_is_read_or_played_through_a_link_of_a_folder_that_is_finished(made, tmp_path):
    """Its evaluation may be a link to a run of the reader's, which would be locked and written to."""
    folder = tmp_path / "made"
    folder.mkdir()
    (tmp_path / "mine").mkdir()
    (folder / ABOUT).write_text("{}")
    (folder / "evaluation").symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigError, match=r"evaluation: it is a link out of .*/made, to .*/mine; remove it"):
        made()


def test_a_folder_in_which_another_process_works_is_left_alone(made, tmp_path):
    (tmp_path / "made").mkdir()
    with FolderLock(tmp_path / "made"), pytest.raises(ConfigError, match="is in use by another textbench process"):
        made()
    assert [path.name for path in (tmp_path / "made").iterdir()] == [LOCK_NAME]


def test_settings_that_nobody_gives_fit_what_is_given():
    adapter = warmup_config("m", ["frozen-lake"], 800, response_mode="direct")
    assert (adapter.lora_rank, adapter.lora_alpha, adapter.param_dtype, adapter.dtype) == (16, 32, "float32", "auto")
    assert (adapter.minibatches, adapter.warmup, adapter.schedule) == (50, 2, "linear")
    whole = warmup_config("m", ["frozen-lake"], 800, lora_rank=0, update_passes=4)
    assert (whole.param_dtype, whole.learning_rate, whole.warmup) == ("float32", 1e-4, 10)
    assert replace(whole, seed=1) == warmup_config("m", ["frozen-lake"], 800, lora_rank=0, update_passes=4, seed=1)
    with pytest.raises(ConfigError, match="lora_rank must be a whole number of at least 0, got -1"):
        warmup_config("m", ["frozen-lake"], 800, lora_rank=-1)
    assert MSGRPOConfig().max_response_tokens == whole.max_response_tokens  # reasoning is as long as it is in training
