"""The fixtures of the product's tests that run commands."""

from tests.benchmark.conftest import played_once, small_run, textbench
from tests.conftest import reference_cache, workplace

__all__ = ["played_once", "reference_cache", "small_run", "textbench", "workplace"]
