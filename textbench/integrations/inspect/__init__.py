"""The scenarios as tasks of Inspect: ``inspect eval textbench/frozen-lake -T episodes=5 --model PROVIDER/MODEL``."""

from textbench.integrations.inspect.logs import import_log
from textbench.integrations.inspect.scorers import episode_return, failed, invalid, success
from textbench.integrations.inspect.solver import play_episode
from textbench.integrations.inspect.tasks import scenario_task

__all__ = ["episode_return", "failed", "import_log", "invalid", "play_episode", "scenario_task", "success"]
