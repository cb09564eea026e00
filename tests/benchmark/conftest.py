"""Fixtures of several tests of the benchmark."""

from tests.benchmark.several_players import suite_with_strangers  # noqa: F401
