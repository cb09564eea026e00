"""What is loaded as a model, and what is refused: weights that can hold code, above all."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

from agents.models.embedded import FOLDER  # noqa: E402
from agents.models.local.loading.adapters import put_on  # noqa: E402
from agents.models.local.transformers import TransformersModel  # noqa: E402
from tests.tiny_models import tiny_llama  # noqa: E402

OLD_NAME = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft asks by it


def shipped(folder: Path, **changes: Any) -> Path:
    shutil.copytree(FOLDER / "tiny", folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | changes))
    return folder


def test_pickled_weights_of_a_model_are_refused(tmp_path):
    folder = shipped(tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"no weights as safetensors.*save_pretrained\(FOLDER\)"):
        TransformersModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../model.safetensors", "/etc/hosts"])
def test_an_index_leads_to_no_other_files_than_safetensors_of_the_folder(name, tmp_path):
    folder = shipped(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=rf"model.safetensors.index.json names {name!r} as a file of weights"):
        TransformersModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["kernels-community/flash-attn2@refs/pr/1", "flash_attention_2"])
def test_attention_is_never_code_that_a_folder_names(name, tmp_path):
    """Such a name is fetched from a hub and run, with the package kernels; without it, transformers asks for it."""
    folder = shipped(tmp_path / "model", attn_implementation=name, tie_word_embeddings=True, hidden_act="gelu")
    model = TransformersModel.from_pretrained(folder)
    assert model.model.config._attn_implementation == "sdpa"


@OLD_NAME
def test_pickled_weights_of_an_adapter_are_refused(tmp_path):
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny_llama(40, hidden=16), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    adapted.save_pretrained(tmp_path)
    weights = tmp_path / "adapter_model.safetensors"
    torch.save(peft.get_peft_model_state_dict(adapted), tmp_path / "adapter_model.bin")
    weights.unlink()
    with pytest.raises(ValueError, match=r"no weights as safetensors.*save_pretrained\(FOLDER\)"):
        put_on(tiny_llama(40, hidden=16), str(tmp_path))
