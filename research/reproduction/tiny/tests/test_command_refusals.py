"""What the operating system refuses the command is told in one sentence, and what was made before is kept."""

import resource
import signal
import subprocess
import sys
import time

import pytest

from research.reproduction.tiny.__main__ import main

QUICK = ["--quick", "--quiet", "--set", "modes=direct", "--set", "examples=300"]


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_model(tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert main(["--out", str(tmp_path / "model"), *QUICK, "--set", "steps=2"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_a_polite_kill_can_be_gone_on_from(tmp_path):
    command = [sys.executable, "-m", "research.reproduction.tiny", "--out", str(tmp_path / "model"), *QUICK, "--set"]
    process = subprocess.Popen([*command, "steps=5000"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "model.partial").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "the same command resumes" in told
    assert (tmp_path / "model.partial").exists()
