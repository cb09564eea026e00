"""Small Llama folders are read without transformers' modelling code, to the same weights, tokens and responses."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from agents.models.base import Decoding  # noqa: E402
from agents.models.embedded import READS  # noqa: E402
from agents.models.local.forward.llama_forward import LlamaWeights, read_weights, why_not  # noqa: E402
from agents.models.local.loading.load import load_model  # noqa: E402
from agents.models.local.loading.plain_llama import read_plain_llama  # noqa: E402
from agents.models.local.transformers import TransformersModel  # noqa: E402
from agents.turn import Message  # noqa: E402

TINY = Path(str(files("agents.tiny"))) / "weights" / "tiny"
SMALL = {
    "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": True, "bos_token_id": None,
}  # fmt: skip


def whole(source: Path) -> tuple[Any, Any]:
    return load_model(str(source), dtype="float32", device="cpu", revision=None, adapter=None, trust_remote_code=False)


def tensors(weights: LlamaWeights) -> list[Any]:
    found: list[Any] = [weights.embedding, weights.norm, weights.head.weight, weights.cos, weights.sin]
    for layer in weights.layers:
        found += [layer.attention_norm, layer.mlp_norm]
        found += [one.weight for one in (*layer.qkv, layer.out, *layer.gate_up, layer.down)]
    return found


@pytest.mark.skipif(torch.cuda.is_available(), reason="models go to the GPU")
@pytest.mark.slow
def test_embedded_models_play_without_importing_the_modelling_code():
    # all of them in one process, as importing torch takes most of the time
    names = [name for name, scenarios in READS.items() if "frozen-lake" in scenarios]
    code = (
        "import sys\n"
        "from agents import EpisodeTask, load_agent, rollout\n"
        f"policies = [load_agent(name) for name in {names!r}]\n"
        "for policy in policies:\n"
        "    (episode,) = rollout(policy, [EpisodeTask.of('frozen-lake', 10_000)])\n"
        "    assert all(step.valid for step in episode.steps)\n"
        "slow = {'transformers.modeling_utils', 'torch._dynamo', 'sympy'} & set(sys.modules)\n"
        "print(slow or 'none', *{type(policy.model.model).__module__ for policy in policies})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["none", "transformers.models.llama.modeling_llama"], done.stderr


@pytest.mark.parametrize("changes", [{}, {"head_dim": 8}, {"num_hidden_layers": 1, "num_key_value_heads": 4}])
def test_weights_and_rotations_are_those_of_transformers(changes, tmp_path):
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL | changes)).save_pretrained(tmp_path)
    plain = read_plain_llama(tmp_path)
    assert plain is not None
    assert why_not(plain) is None
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    ours, theirs = read_weights(plain), read_weights(model)
    assert ours[4:8] == theirs[4:8]  # heads, head size, epsilon
    for a, b in zip(tensors(ours), tensors(theirs), strict=True):
        assert torch.equal(a, b)


def test_responses_tokens_and_settings_are_the_same_whichever_way_it_is_loaded(tmp_path):
    plain = TransformersModel.from_pretrained(TINY, device="cpu")
    usual = TransformersModel(*whole(TINY), name=str(TINY))
    prompts = [(Message("user", text),) for text in ("Player: (0, 3)\n", "Actions: left, right.\n\nGrid:\nS F\nH G")]
    seeds = [(1,), (2,)]
    decoding = Decoding(temperature=1.0, max_tokens=20)
    assert plain.encode(prompts) == usual.encode(prompts)
    before = plain.generate(prompts, decoding, seeds)
    for a, b in zip(before, usual.generate(prompts, decoding, seeds), strict=True):
        assert replace(a, seconds=0.0) == replace(b, seconds=0.0)
    assert plain.settings.items() >= usual.settings.items()
    assert plain.context_length == usual.context_length == 2048

    model = plain.model  # transformers' own from here on, and what it learns shows
    assert type(model) is transformers.LlamaForCausalLM
    assert plain.model is model
    assert [one.response for one in plain.generate(prompts, decoding, seeds)] == [one.response for one in before]
    with torch.no_grad():
        model.model.norm.weight.mul_(-1)
    assert [one.response for one in plain.generate(prompts, decoding, seeds)] != [one.response for one in before]
    model.save_pretrained(tmp_path)
    assert read_plain_llama(tmp_path) is not None


def edit(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return change


def half(folder: Path) -> None:
    transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)


@pytest.mark.parametrize(
    "change",
    [
        edit(attention_bias=True),
        edit(rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}),
        edit(hidden_act="gelu"),
        edit(tie_word_embeddings=False),
        edit(architectures=["Qwen2ForCausalLM"]),
        edit(num_hidden_layers=1),
        edit(vocab_size=31),
        edit(quantization_config={}),
        edit(head_dim="8"),
        half,
        lambda folder: (folder / "model.safetensors").write_bytes(b"nonsense"),
        lambda folder: (folder / "model.safetensors").unlink(),
        lambda folder: (folder / "config.json").write_text("[1, 2]"),
    ],
)
def test_any_other_model_is_left_to_transformers(change, tmp_path):
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).save_pretrained(tmp_path)
    assert read_plain_llama(tmp_path) is not None
    change(tmp_path)
    assert read_plain_llama(tmp_path) is None
