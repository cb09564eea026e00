"""A measurement of credit as tables in the terminal, and what papers on credit assignment are asked to report.

The items are those of the checklist in the survey arXiv 2604.09459 (appendix C, table 11), in our words. The last one
is our reading of its controlled forks. What a measurement can't know, as it trains nothing, is left to fill in.
"""

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np

from agents.common import Estimate
from agents.msgrpo.credit import METHODS
from benchmark.show import print_tables, text_table
from research.credit.instrument.results import LEAST_CEILING, CreditReport, Item, MethodResult


def print_report(report: CreditReport) -> None:
    """Print the methods, draw rules if they were measured, and what the figures mean."""
    setting, gradients = report.setting, report.no_gradient is None
    size = f"{setting['groups']} groups of {setting['group_size']}, {setting['batches']} batches"
    heads = ["<method", "correlation", "same sign", "without luck"]
    heads += ["gradient cosine", "bias", "variance", "signal/noise per 1000 tokens"] if gradients else []
    rows = []
    # the highest correlation first, one that isn't known last
    for method in sorted(report.methods, key=lambda each: -np.nan_to_num(each.fidelity.correlation.value, nan=-1.0)):
        told = method.fidelity
        cells = [_cell(each) for each in (told.correlation, told.sign_agreement, told.mean_correlation)]
        if (gradient := method.gradient) is not None:
            cells += [_cell(gradient.cosine), _cell(gradient.bias), _cell(gradient.variance, 2)]
            cells.append(_cell(gradient.signal_to_noise_per_token, 2, 1000))
        rows.append([method.name, *cells, *[""] * (len(heads) - 1 - len(cells))])
    tables = [text_table(f"credit of {report.agent} on {report.game} ({size})", heads, rows, _notes(report))]
    cosines = ("cosine", "minus uniform", "per 1000 tokens", "of the mean update")
    for method in report.methods:
        drawn = []
        for draw in method.draws:
            own = map(_cell, (draw.cosine, draw.minus_uniform, draw.cosine_per_kilotoken, draw.mean_cosine))
            drawn.append((draw.rule, str(draw.m), f"{draw.tokens:,.0f}", *own, _cell(draw.variance, 2)))
        if drawn:
            columns = ("<rule", "m", "tokens", *cosines, "variance of drawing")
            tables.append(text_table(f"draws of {method.name}", columns, drawn))
    print_tables(tables)


def _cell(figure: Estimate, digits: int = 3, factor: float = 1.0) -> str:
    if isnan(figure.value):
        return "-"
    value = f"{figure.value * factor:.{digits}f}"
    if figure.low is None or figure.high is None:
        return value
    digits = min(digits, 2)
    return f"{value} [{figure.low * factor:.{digits}f}, {figure.high * factor:.{digits}f}]"


def _notes(report: CreditReport) -> list[str]:
    truth = report.truth
    lines = [
        "correlation, same sign: of a step's assigned and true advantage, over the steps played; without luck: the "
        "correlation that the advantage which an action is assigned on average would have, not cut off at 1. oracle is "
        "the true advantage, noise random numbers."
    ]
    told = "exact"
    if truth.samples is not None:
        told = f"from {truth.samples} responses to each prompt, reliability {truth.reliability:.3f}"
    lines += [
        f"True advantages: {told}. {truth.states} states, {truth.questions} prompts.",
        f"The policy expects {truth.expected_return:z.3f}; {truth.invalid:.1%} of its responses are invalid.",
    ]
    if isnan(report["oracle"].fidelity.correlation.value):
        lines.append(
            f"Nothing to compare: every step that {report.agent} played has the true advantage 0, because in each "
            "state it always does the same, or all it does is worth the same."
        )
    if report.no_gradient is not None:
        lines.append(f"No gradients: {report.no_gradient}.")
    elif truth.gradient_reliability is not None:
        certain = "exact" if truth.samples is None else f"estimated, reliability {truth.gradient_reliability:.3f}"
        lines.append(
            "gradient cosine: of one batch's policy gradient, all episodes, and the true gradient of the return "
            f"({certain}); bias: of its mean, 1 being none (not cut off there); variance: relative to that mean's "
            "squared length."
        )
    if report.weak:
        lines.append(
            f"Even the oracle's gradient has a cosine below {LEAST_CEILING}: here the figures of gradients are mostly "
            "noise, and more episodes in a batch are what helps."
        )
    if truth.other_forms > 0.01:
        lines.append(
            f"{truth.other_forms:.1%} of the valid responses aren't of the plain form <action>NAME</action>, which is "
            "all that exact probabilities count."
        )
    lines += [f"{name} was left out: {reason}." for name, reason in report.skipped.items()]
    return lines


BY_EPISODE = "msgrpo", "rloo", "dr_grpo", "lite_ppo"
"""Plain methods of credit by episode, one of which is to be among those measured."""

_FAMILIES = {"igpo": "information-theoretic", "hcapo": "model-based", "gagpo": "temporal difference"}
"""Methods whose family of the survey's five doesn't follow from what they need."""


def checklist(report: CreditReport) -> list[Item]:
    """Return all items, in the survey's order."""
    setting, truth, methods = report.setting, report.truth, report.methods
    size = f", {report.parameters:,} parameters" if report.parameters is not None else ""
    played = f"{setting['batches']} batches of {setting['groups']} groups of {setting['group_size']} episodes"
    episodes = [each.name for each in methods if each.name in BY_EPISODE]
    costs = [_cost(each) for each in methods]
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


def _cost(method: MethodResult) -> str:
    played = f" and {method.extra_tokens:,.0f} tokens" if method.extra_tokens else ""
    return f"{method.name} {1000 * method.seconds:.0f} ms{played}"


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
