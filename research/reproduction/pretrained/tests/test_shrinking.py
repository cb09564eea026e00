"""Adapters that ship: in half precision, of a lower rank, or of a whole model's difference from its base."""

import shutil

import pytest
import torch

pytest.importorskip("peft")
from safetensors.torch import load_file, save_file

from agents.models.embedded import FOLDER
from agents.models.local.loading.card import read_card
from research.reproduction.pretrained.shrinking import main, shrink
from tests.agents.adapters.made import logits, make_adapter, settings_in


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return make_adapter(tmp_path_factory.mktemp("trained") / "adapter")


@pytest.mark.slow
def test_half_precision_takes_half_the_room_and_changes_next_to_nothing(trained, tmp_path):
    made = shrink(trained, tmp_path / "half", scenarios=["frozen-lake"])
    assert made.size == pytest.approx((trained / "adapter_model.safetensors").stat().st_size / 2, rel=0.1)
    assert {weight.dtype for weight in load_file(made.folder / "adapter_model.safetensors").values()} == {torch.float16}
    assert 0 < made.error < 1e-3
    as_trained, as_shipped, base = logits(trained), logits(made.folder), logits("tiny")
    assert (as_trained - base).abs().max() > 1
    assert (as_trained - as_shipped).abs().max() < 0.01
    settings = settings_in(made.folder)
    assert (settings["r"], settings["lora_alpha"], settings["base_model_name_or_path"]) == (6, 12, "tiny")
    card, before = read_card(str(made.folder)), read_card(str(trained))
    assert card is not None
    assert before is not None
    assert card == before._replace(scenarios=("frozen-lake",))
    assert {path.name for path in made.folder.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "textbench.json",
    }  # fmt: skip


@pytest.mark.slow
def test_a_lower_rank_keeps_as_much_as_a_matrix_of_that_rank_can(trained, tmp_path):
    made = [shrink(trained, tmp_path / str(rank), rank=rank, dtype="float32") for rank in (1, 3, 5)]
    errors = [one.error for one in made]
    assert 1 > errors[0] > errors[1] > errors[2] > 0
    far = [float((logits(trained) - logits(one.folder)).abs().mean()) for one in made]
    assert far[0] > far[1] > far[2] > 0
    assert shrink(trained, tmp_path / "same", dtype="float32").error < 1e-6
    factors, settings = load_file(made[1].folder / "adapter_model.safetensors"), settings_in(made[1].folder)
    assert settings["r"] == settings["lora_alpha"] == 3
    whole, own = load_file(trained / "adapter_model.safetensors"), next(name for name in factors if "lora_A" in name)
    other = own.replace("lora_A", "lora_B")
    sizes = torch.linalg.svdvals(2 * whole[other] @ whole[own])
    missing = (2 * whole[other] @ whole[own] - factors[other] @ factors[own]).norm()
    assert missing == pytest.approx(float(sizes[3:].norm()), rel=1e-3)  # no matrix of rank 3 is nearer


@pytest.mark.slow
def test_whole_weights_become_an_adapter_of_their_difference(trained, tmp_path):
    from agents.models.local.loading.load import load_model

    model, tokenizer = load_model(str(trained), dtype="float32", device="cpu")
    whole = model.merge_and_unload()
    whole.save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    made = shrink(tmp_path / "whole", tmp_path / "adapter", base="tiny", rank=6, dtype="float32")
    assert made.error < 1e-3  # what the adapter had added has that rank
    assert (logits(made.folder) - logits(trained)).abs().max() < 0.01
    with torch.no_grad():  # what no adapter of maps holds is counted as missing
        whole.model.norm.weight.mul_(3)
    whole.save_pretrained(tmp_path / "normed")
    tokenizer.save_pretrained(tmp_path / "normed")
    assert shrink(tmp_path / "normed", tmp_path / "adapter", base="tiny", rank=6).error > 0.1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rank": 99}, "rank is at most 64"),
        ({"rank": -1}, "rank is 1 or more, .* got -1"),
        ({"dtype": "int8"}, "dtype is float16, bfloat16 or float32, got 'int8'"),
    ],
)
def test_what_cant_be_made_is_refused(trained, tmp_path, options, says):
    with pytest.raises(ValueError, match=says):
        shrink(trained, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_weights_that_half_precision_cant_hold_are_refused(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "large")
    weights = load_file(tmp_path / "large" / "adapter_model.safetensors")
    save_file({name: weight * 1e7 for name, weight in weights.items()}, tmp_path / "large/adapter_model.safetensors")
    with pytest.raises(ValueError, match="float16 can't hold"):
        shrink(tmp_path / "large", tmp_path / "out")


def test_the_command_says_the_size_and_what_is_lost(trained, tmp_path, capsys):
    assert main([str(trained), "--out", str(tmp_path / "out"), "--rank", "2"]) == 0
    said = capsys.readouterr().out
    assert "rank 2, float16" in said
    assert "% of what was learnt isn't in it" in said
    assert main([str(FOLDER / "tiny"), "--out", str(tmp_path / "whole")]) == 2
    assert "--base smollm2 --rank 16" in capsys.readouterr().err
