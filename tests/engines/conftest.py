"""Real inference engines on this machine, without a GPU: .ci/engines makes their environment and runs these tests."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import agents

WEIGHTS = Path(agents.__file__).parent / "tiny" / "weights"
READY_SECONDS = 480
CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine of this process without a process of its own: seconds to load
    "OMP_NUM_THREADS": "1",
}
IN_PROCESS = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048}


@pytest.fixture(scope="session")
def vllm():
    """The package, with what it wants of a machine without a GPU."""
    if find_spec("vllm") is None:
        pytest.skip("vLLM isn't installed here: .ci/engines makes an environment with it")
    os.environ.update(CPU)
    import vllm

    return vllm


class VLLMServer(NamedTuple):
    """A server process."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ready(self) -> "VLLMServer":
        """Wait until it answers."""
        for _ in range(READY_SECONDS):
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):
                return self
            if self.process.poll() is not None:
                break
            time.sleep(1)
        lines = self.log.read_text(errors="replace").splitlines()
        pytest.fail(f"the server isn't ready after {READY_SECONDS} s:\n" + "\n".join(lines[-30:]))

    def kill(self) -> None:
        """End it and its engine at once, as a machine that goes down does."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            for each in [*parent.children(recursive=True), parent]:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def start_server(vllm, tmp_path_factory):
    """``model folder, *flags -> server``, which may not be ready yet; all are ended with the tests."""
    started: list[VLLMServer] = []

    def start(model: Path, *flags: str) -> VLLMServer:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = tmp_path_factory.mktemp("server") / "log.txt"
        command = [
            *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)),
            *("--served-model-name", "m", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"),
            *("--enforce-eager", "--max-model-len", "2048", "--logprobs-mode", "processed_logprobs"),
            *("--enable-scale-out", "--no-enable-chunked-prefill", *flags),
        ]
        environment = os.environ | CPU | {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
        with log.open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        started.append(VLLMServer(f"http://127.0.0.1:{port}", process, log))
        return started[-1]

    yield start
    for server in started:
        server.kill()
