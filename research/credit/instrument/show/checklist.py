"""What papers on credit assignment are asked to report, filled in with what a measurement knows.

The items are those of the checklist in the survey arXiv 2604.09459 (appendix C, table 11), in our words. The last one
is our reading of its controlled forks. What a measurement can't know, as it trains nothing, is left to fill in.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agents.msgrpo.credit import METHODS
from research.credit.instrument.results import CreditReport, MethodResult

BY_EPISODE = "msgrpo", "rloo", "dr_grpo", "lite_ppo"
"""Plain methods of credit by episode, one of which is to be among those measured."""

_FAMILIES = {"igpo": "information-theoretic", "hcapo": "model-based", "gagpo": "temporal difference"}
"""Methods whose family of the survey's five doesn't follow from what they need."""


class Item(NamedTuple):
    """One item of the checklist; ``said`` is ``None`` if the measurement doesn't know."""

    item: str
    required: bool
    said: str | None


def checklist(report: CreditReport) -> list[Item]:
    """Return all items, in the survey's order."""
    setting, truth, methods = report.setting, report.truth, report.methods
    size = f", {report.parameters:,} parameters" if report.parameters is not None else ""
    played = f"{setting['batches']} batches of {setting['groups']} groups of {setting['group_size']} episodes"
    episodes = [each.name for each in methods if each.name in BY_EPISODE]
    costs = [
        f"{each.name} {1000 * each.seconds:.0f} ms"
        + (f" and {each.extra_tokens:,.0f} tokens" * (each.extra_tokens > 0))
        for each in methods
    ]
    least, median, most = report.episode_lengths
    length = f"{report.episode_length:.1f} turns, {report.episode_tokens:.0f} tokens"
    several = setting["batches"] > 1
    forks = f"{truth.forks:.1%} of the decisions played have a true advantage that isn't 0"
    return [
        Item("Base model: name, size, version", True, f"{report.agent}{size}"),
        Item("Data: source, size, filters", True, f"{played}, starts from training layouts, seed {setting['seed']}"),
        Item("Granularity of the credit", True, _each(methods, lambda one: one.granularity)),
        Item("Family of the method", True, _each(methods, lambda one: family(one.name))),
        Item("A baseline by episode on the same model", True, ", ".join(episodes) or None),
        Item("Compute of the baseline", True, "equal: all methods are given the same batches" if episodes else None),
        Item("Ablation of the credit's parts", False, None),
        Item("Benchmarks and splits", True, f"{report.game}, {setting['horizon']} rounds, training layouts"),
        Item("Metrics with definitions", True, "docs/research/credit/instrument.md"),
        Item("Variance or intervals", False, f"95% over {setting['batches']} batches" if several else None),
        Item("Hours of training", True, None),
        Item("Overhead of the credit, for a batch", False, ", ".join(costs)),
        Item("Mean length of a trajectory", True, length),
        Item("Lengths: least, median, largest", False, f"{least}, {median:g}, {most} turns"),
        Item("Controlled forks", False, forks),
    ]


def family(name: str) -> str | None:
    """Return the survey's family of a registered method, as far as what it needs tells it; else ``None``."""
    if name not in METHODS.names:
        return None
    needs = METHODS.make(name).needs
    told = {"values": "temporal difference", "reward_model": "model-based", "entropies": "information-theoretic"}
    return _FAMILIES.get(name) or next((told[need] for need in told if need in needs), "Monte Carlo")


def as_text(items: Sequence[Item]) -> str:
    """Return a line for each item, open ones marked."""
    lines = ["Checklist of arXiv 2604.09459 ([x] told by this measurement, [ ] yours to tell; * required)"]
    for item, required, said in items:
        lines.append(f"[{' ' if said is None else 'x'}] {item}{'*' * required}{'' if said is None else f': {said}'}")
    return "\n".join(lines)


def _each(methods: Sequence[MethodResult], told: Callable[[MethodResult], str | None]) -> str | None:
    """Return what is told of the methods, those that have it in common together."""
    sorted_by: dict[str, list[str]] = {}
    for method in methods:
        if (said := told(method)) is not None:
            sorted_by.setdefault(said, []).append(method.name)
    return "; ".join(f"{said}: {', '.join(names)}" for said, names in sorted_by.items()) or None
