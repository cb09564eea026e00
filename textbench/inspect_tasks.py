"""The scenarios as tasks of Inspect, which names a task after the package that it stands in: ``textbench/frozen-lake``.

Inspect imports this file by the entry point ``textbench`` of the group ``inspect_ai``. What the tasks do is in
:mod:`textbench.integrations.inspect`.
"""

from collections.abc import Callable

from inspect_ai import Task, task

from agents.protocol import STANDARD
from textbench.integrations.inspect import scenario_task
from textgames.scenarios import SCENARIOS


def _register(name: str) -> Callable[..., Task]:
    @task(name=name)
    def scenario(
        episodes: int = 50,
        seed_offset: int = 0,
        mode: str = "think",
        history: int = 0,
        prompts: str | None = None,
        opponents: str = "random",
        seat: str | None = None,
        protocol: str = STANDARD["protocol"],
        moves: str = STANDARD["moves"],
        twin: int = 0,
    ) -> Task:
        return scenario_task(
            name,
            episodes=episodes,
            seed_offset=seed_offset,
            mode=mode,
            history=history,
            prompts=prompts,
            opponents=opponents,
            seat=seat,
            protocol=protocol,
            moves=moves,
            twin=twin,
        )

    registered: Callable[..., Task] = scenario
    return registered


TASKS = {name: _register(name) for name in SCENARIOS}
"""Every task by its scenario's name."""
