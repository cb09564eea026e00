"""A report on runs that opens anywhere: sections of sentences, tables and commands, drawn as Markdown or HTML."""

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from agents.common.terminal import printable
from agents.episode import Step
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay_if_unchanged
from benchmark.score.beside import Seat, losses_in, seat_losses
from benchmark.score.document import ViewDocument
from benchmark.score.move_losses import LIMIT, MOST, TIE
from benchmark.score.results import ResultColumns
from benchmark.score.scores import cost
from benchmark.show.board import AGENT, COST, CPU
from benchmark.show.draw import escaped, inert, to_html, to_markdown
from benchmark.show.notes import listed, protocol_note
from benchmark.show.table import Table, text_table, value

MOST_DECISIONS = 10  # of an agent
MOST_LETTERS = 240  # of an observation or a response
_MISTAKES = ("<scenario", "seed", "round", "<what it read", "<what it answered", "executed", "best", "value lost")
_HEAD = """\
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto }
td, th { padding: .2em .6em; border-bottom: 1px solid #8884; vertical-align: top; white-space: pre-line }
pre { background: #8881; padding: .6em; overflow-x: auto }
</style>
"""


class Section(NamedTuple):
    """A part of a report."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    commands: Sequence[str] = ()


def markdown_report(title: str, sections: Sequence[Section]) -> str:
    """Return a report as GitHub Markdown; texts of others are text in it."""
    parts = [f"# {escaped(title)}"]
    for one in sections:
        parts += [f"## {one.title}", *map(escaped, one.sentences)]
        parts += ["\n".join(["```sh", *map(_line, one.commands), "```"])] if one.commands else []
        parts += [to_markdown(one.tables).rstrip()] if one.tables else []
    return "\n\n".join(parts) + "\n"


def html_report(title: str, sections: Sequence[Section]) -> str:
    """Return a report as one HTML file, which needs no other and runs nothing; texts of others are text in it."""
    parts = [f"{_HEAD}<title>{inert(title)}</title><h1>{inert(title)}</h1>"]
    for one in sections:
        parts += [f"<h2>{one.title}</h2>", *(f"<p>{inert(sentence)}</p>" for sentence in one.sentences)]
        parts += [f"<pre>{inert(chr(10).join(map(_line, one.commands)))}</pre>"] if one.commands else []
        parts.append(to_html(one.tables))
    return "\n".join(parts) + "</html>\n"


def _line(command: str) -> str:
    return " ".join(printable(command).splitlines())


def cost_table(results: ResultColumns) -> Table:
    """Make the table of what each agent used, over all of its episodes; each sample has a row."""
    rows = []
    for agent in results.agents:
        cells = [cell for (name, _), cell in results.cells.items() if name == agent]
        costs = [cost(cell.paid_tokens, results.prices.get(agent)) for cell in cells]
        count = sum(cell.episodes for cell in cells)
        known = [one for one in costs if one is not None]
        row: dict[str, Any] = {"agent": agent, "episodes": count}
        row["cost"] = sum(known) if len(known) == len(costs) else None
        for place, kind in enumerate(("prompt tokens", "completion tokens")):
            row[kind] = sum(cell.paid_tokens[place] for cell in cells)
        for kind in ("seconds", "cpu_seconds"):
            row[kind] = sum(sum(cell.columns[kind]) for cell in cells) / count if count else None
        rows.append(row)
    counts = [value(name, form=",") for name in ("episodes", "prompt tokens", "completion tokens")]
    seconds = value("seconds", form=".3f")
    note = "tokens that were paid for, in all; seconds are means of an episode, and depend on the machine"
    return Table("costs", "by agent", [AGENT, *counts, COST, seconds, CPU], [note], rows=rows)


def mistakes_section(results: ResultColumns, document: ViewDocument) -> Section:
    """Find every agent's costliest decisions; an episode is played again if one may be in it."""
    seats, tables, spotless = seat_losses(results), [], []
    for agent in (row["agent"] for row in document["overall"]):
        known = [name for name in results.scenarios if (agent, name) in seats]
        # units of value differ between games, so all of them have their turns in filling the places
        turns = zip_longest(*(_worst(results, name, seats[agent, name]) for name in known))
        places = [(place, row) for turn in turns for place, row in enumerate(turn) if row is not None][:MOST_DECISIONS]
        if places:
            rows = [row for _, row in sorted(places, key=lambda one: one[0])]
            tables.append(text_table(agent, _MISTAKES, rows))
        elif known:
            spotless.append(agent)
    unknown = [name for name in results.scenarios if losses_in(results, name) is None]
    partly = []
    for name in results.scenarios.keys() - unknown:
        found = {(seat.source, seat.offset) for key, own in seats.items() if key[1] == name for seat in own}
        played = sum(place[0] == name for places in results.places for place in places)
        partly += [f"{len(found):,} of {played:,} episodes of {name}"] * (len(found) < played)
    sentences = (
        "The value lost is the best action's less the executed one's, by exact values, in units of the game's return; "
        "of several games each has as many of the places. Equal mistakes on equal observations are listed once."
        * bool(tables),
        f"Lost nothing: {listed(spotless)}." * bool(spotless),
        f"The value lost is not known in {listed(unknown)}: no exact solver covers it." * bool(unknown),
        f"It is known in {listed(sorted(partly))}: not if an episode is unscored, if the game's rules or texts have "
        f"changed since, or beyond {LIMIT:,} episodes of a scenario." * bool(partly),
    )
    return Section("Costliest decisions", [*filter(None, sentences)], tables)


def _worst(results: ResultColumns, name: str, seats: Sequence[Seat]) -> list[tuple[str, ...]]:
    """Return the rows of an agent's costliest decisions in one scenario, the costliest first."""
    losses, found = losses_in(results, name), dict[Any, tuple[str, ...]]()  # by the loss and what makes two equal
    assert losses is not None, "it found these seats' losses"
    for seat in sorted(seats, key=lambda seat: -seat.losses[MOST][0]):
        lost = sorted((key[0] for key in found), reverse=True)
        if seat.losses[MOST][0] <= (lost[MOST_DECISIONS - 1] if len(lost) >= MOST_DECISIONS else TIE):
            break
        (record,) = RunFolder(*results.sources[seat.source]).records_at([seat.offset])
        names = results.names[seat.source]
        others = [names.get(agent, agent) for player, agent in record.agents.items() if player != seat.player]
        where = f"{name} against {', '.join(others)}" if others else name
        if (played := replay_if_unchanged(record, results.scenarios[name])) is None:
            continue
        for kept, step, one in zip(record.steps, played.steps, losses.of_replay(played), strict=True):
            if one.player == seat.player and one.lost > TIE:
                texts = (_short(step.observation), _answered(kept), step.action or "nothing", one.best)
                row = (where, f"{seat.seed}", f"{step.index + 1}", *texts, f"{one.lost:.3g}")
                found.setdefault((round(one.lost, 9), step.observation, step.action), row)
    return [row for _, row in sorted(found.items(), key=lambda item: -item[0][0])][:MOST_DECISIONS]


def _answered(step: Step) -> str:
    texts = "; then: ".join(_short(turn.response) or "(empty)" for turn in step.turns)
    return texts if step.valid else f"{texts} (unreadable: {str(step.unreadable).replace('_', ' ')})"


def _short(text: str) -> str:
    """Return the beginning and the end of a long text, as models mostly name their action there."""
    text = text.strip()
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 80].rstrip()} ... {text[-75:].lstrip()}"


def settings_tables(results: ResultColumns, document: ViewDocument) -> list[Table]:
    """Make the tables of the agents, the scenarios with their seeds, and the versions that played."""
    seeds: dict[str, set[tuple[int, int]]] = {name: set() for name in results.scenarios}
    for row in (row for _, manifest in results.sources for row in manifest["matchups"]):
        seeds[row["scenario"]].update(map(tuple, row["seeds"]))
    agents = [(one["name"], one["spec"], _told(one["settings"])) for one in document["agents"]]
    scenarios = [
        (
            *(one["name"], f"{one['env_id']}: {_told(one['kwargs']) or 'defaults'}", f"{one['horizon']} rounds"),
            *(", ".join(f"{first} to {last}" for first, last in sorted(seeds[one["name"]])), protocol_note(one)),
        )
        for one in document["scenarios"]
    ]
    versions = [
        (
            *(view["name"], f"{view['started']} to {view['finished'] or 'no end'}", view["textbench_version"]),
            f"{view['commit'] or 'unknown'}{' with changes' * bool(view['dirty'])}",
            _told({name: manifest.get(name) for name in ("python", "platform")} | manifest.get("packages", {})),
        )
        for view, (_, manifest) in zip(document["sources"], results.sources, strict=True)
    ]
    return [
        text_table("agents", ("<agent", "<spec", "<settings"), agents),
        text_table("scenarios", ("<scenario", "<game", "<length", "<seeds", "<protocol"), scenarios),
        text_table("versions", ("<folder", "<played", "<textbench", "<commit", "<beside it"), versions),
    ]


def _told(settings: Mapping[str, Any]) -> str:
    given = {name: one for name, one in settings.items() if one is not None}
    return ", ".join(
        f"{name}={_short(one if isinstance(one, str) else json.dumps(one))}" for name, one in given.items()
    )
