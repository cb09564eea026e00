"""A training's folder from elsewhere: going on with it imports nothing and asks no server that it alone names."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.common.approvals import approve
from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.__main__ import main
from agents.msgrpo.run.saving.claims import claims_of

SENTINEL = "from pathlib import Path\nPath('SENTINEL').write_text(__name__)\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path / "cache"))
    Path("evilmod.py").write_text(SENTINEL)
    yield tmp_path
    sys.modules.pop("evilmod", None)


def stranger(*lines: str) -> Path:
    """A checkpoint with these settings, whose model isn't there."""
    folder = Path("theirs/checkpoints/iteration-000001")
    folder.mkdir(parents=True)
    (folder / "trainer_state.pt").touch()
    (folder / "msgrpo.toml").write_text("\n".join(['model = "no-such-model"', *lines]))
    Path("theirs/last").symlink_to(folder.absolute())
    return Path("theirs")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('credit = "evilmod:X"', "evilmod:X"),
        ('surrogate = "evilmod:X"', "evilmod:X"),
        ('engine = "evilmod:X"', "evilmod:X"),
        ('scenarios = ["evilmod:X-v0"]', "evilmod:X-v0"),
        ('eval_scenarios = ["evilmod:X-v0"]', "evilmod:X-v0"),
        ('eval_opponent = "evilmod.py:X"', "evilmod.py:X"),
        ('["credit"."evilmod:X"]\nweight = 1', "evilmod:X"),
        ('[credit.msgrpo]\nof = ["msgrpo", "evilmod:X"]', "evilmod:X"),
        ('engine = "vllm"\nengine_urls = ["http://127.0.0.1:9"]', "http://127.0.0.1:9"),
        ('[engine]\nengine = "vllm"\nengine_options = {dtype = "half"}', "engine_options.dtype=half"),
    ],
)
def test_what_only_the_folder_names_is_refused(line: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stranger(line)
    assert main(["--resume", str(folder), "--quiet"]) == 2
    error = capsys.readouterr().err.strip()
    advised = shlex.split(error.partition("python -m agents.msgrpo ")[2])
    assert advised == ["--resume", str(folder), "--allow", named]
    assert not Path("SENTINEL").exists()
    assert "evilmod" not in sys.modules
    assert main([*advised, "--quiet"]) == 2  # which goes further now, as far as what isn't there
    assert "if you trust this folder" not in capsys.readouterr().err


def test_a_command_line_that_names_it_itself_needs_no_approval(capsys: pytest.CaptureFixture[str]) -> None:
    folder = stranger('credit = "evilmod:X"')
    assert main(["--resume", str(folder), "--set", 'credit="evilmod:X"', "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "if you trust this folder" not in error
    assert "evilmod" in error  # it was imported, and has no such class


def test_what_the_training_was_begun_with_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    folder = stranger('credit = "evilmod:X"')
    approve(folder, claims_of(MSGRPOConfig(credit="evilmod:X")))
    assert main(["--resume", str(folder), "--quiet"]) == 2
    assert "if you trust this folder" not in capsys.readouterr().err


def test_models_and_files_are_read_as_data() -> None:
    config = MSGRPOConfig(model="C:/models/base", eval_opponent="hf:./best", prompt_file="C:/x.toml", device="cuda:1")
    assert claims_of(config) == []
