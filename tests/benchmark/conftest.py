"""Fixtures of several tests of the benchmark."""

import pytest

from tests.benchmark.helpers import named
from tests.benchmark.several_players import suite_with_strangers  # noqa: F401


@pytest.fixture
def behind(textbench):
    """``behind(server, "--episodes", 2)``: a run of the model m behind a server; on the lake, into the folder r."""

    def run(server, *words, agents=("m=openai:m",)):
        usual = (("--scenario", "frozen-lake"), ("--out", "r"))
        left = [word for pair in usual if pair[0] not in words for word in pair]
        return textbench("run", *named(agents), "--base-url", server.base_url, *words, *left)

    return run
