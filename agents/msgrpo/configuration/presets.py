"""Published methods as settings, by name: ``MSGRPOConfig.preset("dr_grpo")``, or ``preset = "dr_grpo"`` in a file.

A preset holds what makes the method; learning rates, group sizes and the like are left to the run. Sources, and what of
it is our reading, are in docs/credit/methods.md. Installed packages add presets by the group ``textbench.presets`` of
entry points, each a mapping like :data:`PRESETS`.
"""

from collections.abc import Mapping
from typing import Any

from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import loaded
from textgames.names import nearest_or_all
from textgames.plugins import installed, research_advice

Presets = Mapping[str, Mapping[str, Any]]
"""``{preset: its settings as a file has them}``."""

PRESETS: Presets = {
    "msgrpo": {"episode_sampling": "aaw"},
    "rloo": {"credit": "rloo"},
    "dr_grpo": {"credit": "dr_grpo", "loss_normalizer": "constant"},
    "lite_ppo": {"credit": "lite_ppo"},
    "rtg": {"credit": "rtg"},
    "gigpo": {"credit": "gigpo"},
    "vine": {"credit": "vine"},
    "ppo_turn": {"credit": "ppo_turn"},
    "tppo": {"credit": "tppo"},
    "gspo": {"surrogate": "gspo", "loss_normalizer": "response"},  # it has clip limits of its own
    "cispo": {"surrogate": "cispo"},
    # its credit has its reward for length, and its sampler refills groups without a difference
    "dapo": {"credit": "dapo", "task_sampling": "dynamic", "clip_high": 0.28},
}

COMMON: Mapping[str, Any] = {
    "task_sampling": "plain",
    "group_filter": "off",
    "credit": "msgrpo",
    "advantage_baseline": "mean",
    "advantage_scale": "group_std",
    "episode_sampling": "off",
    "surrogate": "ppo",
    "loss_normalizer": "token",
    "discount": "auto",
    "clip_low": "auto",
    "clip_high": "auto",
    "kl_coefficient": 0.0,
}
"""The settings of every method whose preset says nothing else."""


def presets() -> Presets:
    """Return the presets that ship, and then those that installed packages add under other names."""
    found = dict(PRESETS)
    for entry in installed("textbench.presets").values():
        found |= {name: own for name, own in loaded(entry, "preset").items() if name not in PRESETS}
    return found


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return tuple(presets())


def preset(name: str) -> dict[str, Any]:
    """Return a preset's settings as a file would have them, with tables for the methods' own settings.

    Raises:
        ConfigError: there is none of that name.
    """
    known = presets()
    if name not in known:
        raise ConfigError(f"preset = {name!r} is not one; {nearest_or_all(str(name), tuple(known))}{research_advice()}")
    return layered(COMMON, known[name])


def layered(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over others: ``above`` counts more, and tables are laid over each other in the same way."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            result[key] = layered(under, value)
        else:
            result[key] = value
    return result
