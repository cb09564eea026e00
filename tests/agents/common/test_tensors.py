"""Weights and states are read without running code: as safetensors, or by a PyTorch whose unpickler is safe."""

import ast
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

import agents.common.tensors as tensors  # noqa: E402
from agents.common.tensors import load_tensors  # noqa: E402

ROOT = Path(__file__).parents[3]
PACKAGES = ("textgames", "agents", "benchmark", "textbench", "research")


@cache
def calls() -> list[tuple[str, str, dict[str | None, str]]]:
    """Every call in the modules of the packages that may load a model: its file, what is called, and by which names."""
    files = [file for name in PACKAGES for file in (ROOT / name).rglob("*.py") if "tests" not in file.parts]
    assert len(files) > 300
    found = []
    for file, text in ((file.relative_to(ROOT), file.read_text()) for file in files):
        tree = ast.parse(text if re.search(r"torch\W+load|from_pretrained", text) else "")
        for node in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            found.append((str(file), ast.unparse(node.func), given))
    return found


def test_one_place_calls_torch_load_and_passes_weights_only():
    found = {file: given.get("weights_only") for file, called, given in calls() if called == "torch.load"}
    assert found == {"agents/common/tensors.py": "True"}


def test_models_are_read_from_safetensors_alone():
    """A GGUF file, which has no code in it either, is named by ``gguf_file``; peft has no such argument."""
    reads = [
        (file, given) for file, called, given in calls() if called.endswith("AutoModelForCausalLM.from_pretrained")
    ]
    assert reads
    assert [file for file, given in reads if given.get("use_safetensors") != "True" and "gguf_file" not in given] == []


def test_an_older_torch_reads_nothing_and_a_later_one_what_was_saved(tmp_path, monkeypatch):
    file, state = tmp_path / "state.pt", {"weight": torch.arange(3.0), "losses": [0.5]}
    torch.save(state, file)
    for version in ("2.10.0", "2.11.0a0+git123", "3.0.0"):
        monkeypatch.setattr(torch, "__version__", version)
        torch.testing.assert_close(load_tensors(file), state)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was read"))
    for version in ("2.9.1+cu128", "1.13.1"):
        monkeypatch.setattr(torch, "__version__", version)
        with pytest.raises(ModuleNotFoundError, match=r"state\.pt.*PyTorch 2\.10 or later.*pip install") as told:
            load_tensors(file)
        assert version in str(told.value)


def test_the_floor_is_the_one_that_is_installed_and_promised():
    floor = ".".join(map(str, tensors.OLDEST))
    assert f'"torch>={floor}"' in (ROOT / "pyproject.toml").read_text()
    assert f"PyTorch {floor} or later" in (ROOT / "SECURITY.md").read_text()


class Hostile(NamedTuple):
    """Unpickled, it writes a file."""

    file: Path

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("save", [torch.save, lambda value, file: file.write_bytes(pickle.dumps(value))])
def test_code_in_a_state_is_not_run(save, tmp_path):
    save({"step": Hostile(tmp_path / "ran")}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"^[^\n]+$") as told:
        load_tensors(tmp_path / "state.pt")
    assert "weights_only" not in str(told.value)  # torch's own advice is to run the code
    assert not (tmp_path / "ran").exists()
