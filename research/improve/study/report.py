"""The report of a comparison: ``results of jobs -> Findings -> Markdown, JSON, a curve``.

Seeds are independent: a mean is over them, its interval is Student's, and a difference is taken seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.common import Array, Estimate, duration, student
from research.improve.study.settings import TOLD, TRAINER, ComparedFolder, Comparison, jobs_of
from research.jobs.intervals import paired, student_tests
from research.jobs.pictures import COLOURS, figure_of, save, style, with_intervals
from research.jobs.report import Facts, said_first, table, whole_report

Who = tuple[str, str, int]
"""A game, who plays it (``base``, a method or a player around others), and the budget in tokens, 0 for none."""

ALPHA = 0.05


@dataclass(frozen=True)
class Findings:
    """Everything that was found so far."""

    study: Comparison  # the settings
    results: Mapping[Who, Mapping[int, Mapping[str, Any]]]  # ``{who: {seed: the result of its job}}``
    rates: Mapping[tuple[str, str], Mapping[float, float]]  # ``{(game, method): {rate: regret a decision in tuning}}``
    parameters: int  # of the first base; 0 if there is none
    missing: Sequence[str]  # names of the jobs without a result
    seconds: float  # of the processor, of all jobs
    code: Sequence[str]  # the versions that did the jobs


def read_findings(study: Comparison, folder: ComparedFolder) -> Findings:
    """Read the results of all jobs that are there."""
    jobs = jobs_of(study)
    done = folder.results(jobs)
    there = done.there
    results: dict[Who, dict[int, Any]] = {}
    rates: dict[tuple[str, str], dict[float, float]] = {}
    for job in jobs:
        if job.name not in there:
            continue
        if job.kind in ("play", "learn"):
            results.setdefault((job.game, job.method, job.budget), {})[job.seed] = there[job.name]
        elif job.kind == "tune":
            rates.setdefault((job.game, job.method), {})[job.rate] = there[job.name]["game"]["regret"]
    return Findings(
        study,
        results,
        rates,
        next((there[job.name]["parameters"] for job in jobs if job.kind == "base" and job.name in there), 0),
        done.missing,
        sum(result["processor_seconds"] for result in there.values()),
        done.code,
    )


def over_seeds(findings: Findings, who: Who, figure: str, place: str = "game") -> Estimate:
    """Return the mean of a figure over seeds, in the game or in its twin, with Student's interval."""
    return student(np.array([result[place][figure] for result in findings.results[who].values()]))


def spent(findings: Findings, who: Who) -> float:
    """Return the tokens that were spent to learn, the mean over seeds."""
    return float(np.mean([one.get("played", 0) + one.get("updated", 0) for one in findings.results[who].values()]))


class Difference(NamedTuple):
    """The regret of a player less that of another, in the game or in its twin, seed by seed."""

    who: Who
    than: Who
    place: str  # ``game`` or ``twin``
    seeds: int
    less: Estimate  # in units of the return, a decision; below 0: it loses less
    p_value: float
    p_holm: float  # corrected over all differences of the same place


def differences(findings: Findings) -> list[Difference]:
    """Return all against the base and against MS-GRPO at the same budget, players around others at the largest one.

    The corrections are Holm's over all games, budgets and opponents: one for the games, one for the twins.
    """
    found: list[Difference] = []
    for place in findings.study.places:
        regrets = {
            who: {seed: result[place]["regret"] for seed, result in results.items()}
            for who, results in findings.results.items()
        }
        less: dict[tuple[Who, Who, str], Array] = {}
        for game, name, budget in regrets:
            others: list[Who] = [(game, "base", 0), (game, TRAINER, budget or findings.study.budgets[-1])]
            for than in [] if name == "base" else others[: 1 if name == TRAINER else 2]:
                own = paired(regrets[game, name, budget], regrets.get(than, {}))
                if len(own):
                    less[(game, name, budget), than, place] = own
        found += [Difference(*key, len(less[key]), *test) for key, test in student_tests(less).items()]
    return found


CURVE = "regret.svg"

_MADE = """\
a model of {parameters:,} parameters that imitates the planner in {skill:.0%} of its decisions and plays at random in
the others, in the game and in its twin alike"""

_INTRODUCTION = """\
Every method begins at the same base, {base}. It then has the same budget of tokens to learn from the game: what it
reads and writes in its own play, and the rows of its updates, each pass counted. What a planner answers, exact values,
and passes that only score cost nothing; of these {told} alone are told. Regret is the value that a decision loses
against the best one, exactly, on {episodes} fresh episodes at temperature {temperature:g}; intervals are Student's 95%
over up to {seeds} seeds of one base and say nothing of others."""


def report_data(findings: Findings, facts: Facts, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the whole report as plain JSON data."""
    runs = [
        {"scenario": game, "who": name, "budget": budget, "seed": seed}
        | {key: value for key, value in result.items() if key not in ("facts", "budget")}
        for (game, name, budget), results in findings.results.items()
        for seed, result in results.items()
    ]
    compared = [row._asdict() | {"less": row.less._asdict()} for row in differences(findings)]
    tuned = [
        {"game": game, "method": method, "regrets": {f"{rate:g}": lost for rate, lost in lost_at.items()}}
        for (game, method), lost_at in findings.rates.items()
    ]
    data = {"runs": runs, "differences": compared, "tuning": tuned}
    return whole_report(data, findings, findings.seconds, facts, notes, findings.study.as_data())


def report_markdown(
    findings: Findings, facts: Facts, *, plots: Sequence[tuple[str, str]] = (), notes: Sequence[str] = ()
) -> str:
    """Return the report for people; figures are rounded."""
    study, rows = findings.study, differences(findings)
    base = f"the pretrained `{study.pretrained}` of {findings.parameters:,} parameters"
    if not study.pretrained:
        base = _MADE.format(parameters=findings.parameters, skill=study.skill)
    introduction = _INTRODUCTION.format(
        base=base,
        told=" and ".join(f"`{name}`" for name in study.methods if name in TOLD) or "none",
        **{"episodes": study.episodes, "temperature": study.temperature},
        seeds=max(map(len, findings.results.values()), default=0),
    )
    parts = ["# What makes a player better, at equal budgets of tokens", introduction]
    parts += said_first(findings, notes, "comparison")
    parts += [f"![{caption}]({name})\n\n*{caption}.*" for name, caption in plots]
    parts += ["## What to use when", *(_verdict(game, rows) for game in study.games)]
    for game in study.games:
        own = [who for who in findings.results if who[0] == game]
        if own:
            parts += [f"## {game}", _scores(findings, own), _budgets(findings, own)]
    told = [
        [
            *(row.who[0], _named(row.who), _named(row.than), row.place, f"{row.less:+.3f}"),
            *(str(row.seeds), f"{row.p_value:.3f}", f"{row.p_holm:.3f}"),
        ]
        for row in rows
    ]
    head = ["game", "who", "than", "in the", "difference", "seeds", "p", "p (Holm)"]
    parts += ["## All differences of regret", table(head, told)]
    done = f"{duration(findings.seconds)} of the processor; code: {', '.join(findings.code) or 'none'}"
    parts += ["## How it was done", f"{done}; report: {', '.join(facts.values())}."]
    return "\n\n".join(parts) + "\n"


def _verdict(game: str, rows: Sequence[Difference]) -> str:
    """Return what can be said on a game after the correction."""
    own = [row for row in rows if row.who[0] == game]
    told = [
        f"`{_named(row.who)}` loses {'more' if row.less.value > 0 else 'less'} than `{_named(row.than)}`"
        + (" in the twin" if row.place == "twin" else "")
        for row in own
        if row.p_holm < ALPHA
    ]
    said = "; ".join(told) or "nothing can be said: no difference is left after Holm's correction"
    return f"**{game}**: {said}." if own else f"**{game}**: nothing was measured yet."


def _scores(findings: Findings, own: Sequence[Who]) -> str:
    head = ["who", "tokens to learn", "regret", "return", "invalid", "tokens a decision"]
    head += ["regret in the twin"] if findings.study.twin else []
    rows = []
    for who in own:
        regret, result, tokens, invalid = (
            over_seeds(findings, who, figure) for figure in ("regret", "return", "tokens", "invalid")
        )
        learnt = f"{spent(findings, who):,.0f}" if who[2] else "-"
        row = [who[1], learnt, f"{regret:.3f}", f"{result:.2f}", f"{invalid.value:.1%}", f"{tokens.value:.0f}"]
        row += [f"{over_seeds(findings, who, 'regret', 'twin'):.3f}"] if findings.study.twin else []
        rows.append(row)
    return table(head, rows)


def _budgets(findings: Findings, own: Sequence[Who]) -> str:
    """Return what was spent off the budget, and when a player that costs more at each decision is dearer."""
    said = [
        f"`{name}` spent {share:.0%} of {budget:,}"
        for game, name, budget in own
        if budget and abs((share := spent(findings, (game, name, budget)) / budget) - 1) > 0.1
    ]
    text = f"Off the budget by more than a tenth: {', '.join(said)}." if said else "All spent their budgets to a tenth."
    largest = (own[0][0], TRAINER, findings.study.budgets[-1])
    for who in own:
        if who[1] in findings.study.players and not findings.study.players[who[1]].trained and largest in own:
            more = over_seeds(findings, who, "tokens").value - over_seeds(findings, largest, "tokens").value
            if more > 0:
                decisions = f"{spent(findings, largest) / more:,.0f}"
                text += f" After {decisions} decisions `{who[1]}` has cost as much as the largest budget."
    return text


def _named(who: Who) -> str:
    return f"{who[1]} {who[2]:,}" if who[2] else who[1]


def draw_curve(findings: Findings, folder: Path) -> list[tuple[str, str]]:
    """Draw regret by tokens spent to learn; return ``(file name, caption)``, empty without data."""
    study = findings.study
    games = [game for game in study.games if any(who[0] == game and who[2] for who in findings.results)]
    if not games:
        return []
    with style():
        figure, axes = figure_of(len(games), 1, 1.6 + 3.2 * len(games), 3.4)
        for axis, game in zip(axes[0], games, strict=True):
            for colour, name in zip(cycle(COLOURS), study.methods, strict=False):
                points = [who for who in findings.results if who[:2] == (game, name)]
                means = [over_seeds(findings, who, "regret") for who in points]
                tokens = [spent(findings, who) for who in points]
                with_intervals(axis, tokens, means, marker="o", capsize=2, label=name, color=colour)
            dashes = cycle((":", "--", "-.", "-"))
            for name in ("base", *study.players):
                if (game, name, 0) in findings.results:
                    level = over_seeds(findings, (game, name, 0), "regret").value
                    axis.axhline(level, linestyle=next(dashes), color="grey", label=name)
            axis.set_xscale("log")
            axis.set_xticks(study.budgets, [f"{budget:,}" for budget in study.budgets])
            axis.tick_params(which="minor", labelbottom=False)
            axis.set_ylim(bottom=0)
            axis.set_title(game, fontsize=9)
            axis.set_xlabel("tokens to learn")
            axis.set_ylabel("regret a decision")
            axis.grid(alpha=0.3)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
        save(figure, folder / CURVE)
    caption = "Regret a decision by tokens spent to learn, with 95% intervals over seeds; level lines learn nothing"
    return [(CURVE, caption)]
