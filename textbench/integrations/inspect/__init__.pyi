from .logs import import_log
from .scorers import episode_return, failed, invalid, success
from .solver import play_episode
from .tasks import scenario_task

__all__ = ["episode_return", "failed", "import_log", "invalid", "play_episode", "scenario_task", "success"]
