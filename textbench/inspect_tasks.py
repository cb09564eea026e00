"""The scenarios as tasks of Inspect, which names a task after the package that it stands in: ``textbench/frozen-lake``.

Inspect imports this file by the entry point ``textbench`` of the group ``inspect_ai``. A task's parameters are those of
:func:`textbench.integrations.inspect.scenario_task`.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

from inspect_ai import Task, task

from textbench.integrations.inspect import scenario_task
from textgames.scenarios import SCENARIOS


def _register(name: str) -> Callable[..., Task]:
    def scenario(**options: Any) -> Task:
        return scenario_task(name, **options)

    _, *parameters = signature(scenario_task).parameters.values()  # Inspect reads them, and the first is the name
    scenario.__signature__ = signature(scenario).replace(parameters=parameters)  # type: ignore[attr-defined]
    registered: Callable[..., Task] = task(name=name)(scenario)
    return registered


TASKS = {name: _register(name) for name in SCENARIOS}
"""Every task by its scenario's name."""
