"""A real server of a real model, as people start it: ``transformers serve``."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READY_SECONDS = 240


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """Serve the model of a folder until the block ends; the URL, where the model bears the folder's name.

    Raises:
        RuntimeError: it isn't ready after four minutes, or it ended; with what it wrote last.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = model.parent / f"{model.name}.log"
    script = Path(sys.executable).parent / "transformers"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "transformers.cli.transformers"]
    command += ["serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        for _ in range(READY_SECONDS):
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            if process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{log.read_text()[-2000:]}")
            time.sleep(1)
        else:
            raise RuntimeError(f"the server isn't ready:\n{log.read_text()[-2000:]}")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
