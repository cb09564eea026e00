"""Commands that read runs and entries: their scores, their comparison, one episode, and runs merged into one."""

import sys
from pathlib import Path

from agents.common.redaction import Redactor
from benchmark.cli.settings import Compare, Leaderboard, Merge, Output, Replay, Rescore, View
from benchmark.errors import UsageError, storing, unknown_name
from benchmark.results import read_results
from benchmark.runs.folder import RunFolder, check_file_place, resume_command
from benchmark.runs.manifest import MANIFEST_NAME
from benchmark.runs.merge import merge
from benchmark.score.readings import reading_rows
from benchmark.score.samples import without_samples
from benchmark.show.board import rescored_table
from benchmark.show.draw import print_tables
from benchmark.show.notes import listed
from benchmark.show.page import render_page, write_page
from benchmark.show.page.server import pages_of, serve_page
from benchmark.show.viewer import EpisodePicker, print_episode, step_through


def run_leaderboard(settings: Leaderboard) -> int:
    """Print the scores, or write the page."""
    output, page, file = settings.output, settings.page, settings.html
    if file == "-":
        raise UsageError("--html takes a file, such as page.html, got '-'")
    if file:
        check_file_place(file)
    sources = output.folders(settings.sources)
    results = read_results(*sources, agents=settings.agents, quiet=output.quiet)
    if file:
        document = results.document(title=page.title, max_episodes=page.max_episodes)
        with storing(file):
            size = write_page(document, file)
        count = f"{len(document['episodes'])} of {document['episodes_total']} episodes"
        output.say(f"{file}: {size / 1000:.0f} kB, {count}")
        return 0
    leaderboard = results.leaderboard(title=page.title)
    if settings.json:
        output.document(leaderboard.document)
    elif settings.markdown:
        print(leaderboard.to_markdown(), end="")
    else:
        leaderboard.print(stats=settings.stats)
    return 0


def run_view(settings: View) -> int:
    """Serve the page until Ctrl-C."""
    sources, page = Output().folders(settings.sources), settings.page

    def announce(url: str) -> None:
        print(url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr, flush=True)

    def make(version: str) -> tuple[str, bool]:
        document = read_results(*sources, quiet=True).document(title=page.title, max_episodes=page.max_episodes)
        complete = all(source["complete"] for source in document["sources"])
        return render_page(document, follow="" if complete else version), complete

    try:
        browser = not settings.no_browser
        serve_page(pages_of(sources, make), port=settings.port, open_browser=browser, announce=announce)
    except OSError as error:
        raise UsageError(str(error)) from None
    return 0


def run_compare(settings: Compare) -> int:
    """Print the comparison of all pairs of the agents."""
    folders = [name for name in settings.agents if (Path(name) / MANIFEST_NAME).exists()]
    if not settings.sources:  # with --in a path may be an agent's name; without, reading refuses it by its own
        folders += [name for name in settings.agents if name not in folders and "/" in name and Path(name).is_dir()]
    names = [name for name in settings.agents if name not in folders]
    output = Output()
    results = read_results(*output.folders([*folders, *settings.sources]))
    for name in names:
        if name not in results.agents and ("/" in name or Path(name).exists()):
            known = ", ".join(results.agents)
            raise UsageError(f"{name} is neither a run's folder nor an agent of these results, which are {known}")
    # a folder among the names stands for all its agents
    everyone = [agent for agent in without_samples(results.columns).agents if agent not in names] if folders else []
    comparison = results.compare(*names, *everyone, scenarios=settings.scenarios)
    if settings.json:
        output.document(comparison.document)
    elif settings.markdown:
        print(comparison.to_markdown(), end="")
    else:
        comparison.print()
    return 0


def run_rescore(settings: Rescore) -> int:
    """Print what the reading changes."""
    output = settings.output
    results = read_results(*output.folders(settings.runs), agents=settings.agents, quiet=output.quiet)
    rows = reading_rows(results.columns, results.agents, settings.reading)
    if output.json:
        output.document({"reading": settings.reading, "readings": rows})
    elif rows:
        print_tables([rescored_table(rows)])
    else:
        print(f"every answer could be read when it was played; the {settings.reading} reading changes nothing")
    return 0


def run_replay(settings: Replay) -> int:
    """Step through the episode, or print it if there is no terminal."""
    agent, scenario, seed, failed = settings.agent, settings.scenario, settings.seed, settings.failed
    (source,) = Output().folders([settings.source] if settings.source else [])
    folder = RunFolder.open(source)
    picker = EpisodePicker(folder, agent, scenario, seed, failed, settings.worst)
    for kind, name, known in (
        ("agent in this run", agent, [card["name"] for card in folder.manifest["agents"]]),
        ("scenario in this run", scenario, folder.manifest["scenarios"]),
    ):
        if name is not None and name not in known:
            raise unknown_name(kind, name, known)
    names = [scenario] if scenario else list(picker.scenarios)
    if settings.worst and not any(map(picker.losses, names)):
        raise UsageError(
            f"--worst orders episodes by the value lost, and {listed(names)} has no exact values of moves; order by "
            "scenario and seed: leave --worst out, or show failures alone: --failed"
        )
    if not picker.count:
        asked = {"of": agent, "in": scenario, "with seed": seed}
        told = "".join(f" {word} {value}" for word, value in asked.items() if value is not None)
        told += " whose value lost is known" * settings.worst
        others = "; without these options it shows all that there are" if failed or told else ""
        raise UsageError(f"{source} has no {'failed' if failed else 'finished'} episode{told}{others}")
    number = 1 if settings.episode is None else settings.episode
    if not 1 <= number <= picker.count:
        raise UsageError(f"--episode must be from 1 to {picker.count} here, got {number}")
    if settings.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_episode(picker, number)
        return 0
    return step_through(picker, number, worst=settings.worst)


def run_merge(settings: Merge) -> int:
    """Merge the runs, and say what was found."""
    out = Path(settings.out)
    report = merge([Path(run) for run in settings.runs], out, Redactor.from_environment())
    print(out)
    differently = f", {report.conflicts} of them played differently (the first run's were kept)"
    conflicts = differently if report.conflicts else ""
    print(f"{report.episodes} episodes; {report.duplicates} were in several runs{conflicts}", file=sys.stderr)
    if report.missing:
        print(f"{report.missing} planned episodes are missing; play them: {resume_command(out)}", file=sys.stderr)
    return 0
