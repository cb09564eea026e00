"""The shipped base on a small lake, trained by the command line in seconds."""

import pytest

TINY = """
model = "tiny"
device = "cpu"
scenarios = ["frozen-lake"]
groups = 2
group_size = 4
temperature = 1.0
max_response_tokens = 40
minibatches = 2
learning_rate = 1e-4
eval_every = 0
samples_every = 0
threads = 1
"""


@pytest.fixture
def tiny_config(tmp_path):
    """Writes a file of such a training with further settings, into ``tmp_path/run``; returns its path."""

    def write(**settings: str) -> str:
        lines = dict(line.split(" = ", 1) for line in TINY.strip().splitlines())
        lines |= {"out": f'"{tmp_path / "run"}"'} | settings
        path = tmp_path / "tiny.toml"
        path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
        return str(path)

    return write
