"""One process's work on a run folder: open it, play what is missing, say what came of it.

``options -> plan, players, manifest -> folder -> play -> leaderboard -> exit code``. ``run`` and ``resume`` are both
this.
"""

import json
import secrets
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from agents.redaction import Redactor
from benchmark.errors import BenchmarkError, StorageError, UsageError
from benchmark.interrupt import sigterm_interrupts
from benchmark.play.manifest import finish_session, new_manifest, start_session, take_over
from benchmark.play.options import ADDED, COUNTING, OPERATING, RunOptions, checked_options
from benchmark.play.players import AgentSpec, Players
from benchmark.play.progress import Meter, choose_display
from benchmark.play.runner import Limits, play_plan
from benchmark.play.until import Growth
from benchmark.runs.folder import DAMAGED_NAME, PROMPTS_NAME, RunFolder, resume_command
from benchmark.runs.manifest import MANIFEST_NAME, Manifest, Price, read_manifest
from benchmark.runs.plan import Plan
from benchmark.runs.record import Key, key_of
from benchmark.score.prices import price_of, read_prices
from benchmark.score.references import References
from benchmark.score.results import read_results
from benchmark.show.document_of import results_document
from benchmark.show.terminal_tables import leaderboard_sheets, print_sheets, stdout_console

COMPLETE, INCOMPLETE, INTERRUPTED = 0, 1, 130


@dataclass(frozen=True)
class Output:
    """What the user wants to see."""

    json: bool = False  # one JSON document on stdout instead of tables
    quiet: bool = False  # nothing on stderr but errors

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, file=sys.stderr, flush=True)


def prepare(options: RunOptions, plan: Plan, players: Players, redactor: Redactor) -> RunFolder:
    """Check every agent, then open a new run folder, or the old one of ``--out`` when it was made with equal settings.

    Raises:
        UsageError: a player or a price is missing, or the folder is somebody else's or was made with other settings.
        StorageError: the folder can't be written, or is in use.
    """
    cards = players.check(plan)
    manifest = new_manifest(options, plan, cards, agent_prices(cards, options, {}))
    # The default name sorts by time, and two runs of one second don't meet.
    path = Path(options.out or f"runs/{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
    if not (path / MANIFEST_NAME).exists():
        # The user's file of prompts may change or move; a resume needs the one that was used.
        files = {PROMPTS_NAME: Path(options.prompts).read_bytes()} if options.prompts else {}
        return RunFolder.create(path, manifest, redactor, files)
    folder = RunFolder.open_for_writing(path, redactor)
    try:
        take_over(path, folder.manifest, as_stored(manifest, redactor))
    except UsageError:
        folder.close()
        raise
    return folder


def resume_session(path: Path, given: RunOptions, output: Output, *, repair: bool = False) -> int:
    """Play what a run folder lacks, with the settings of its manifest.

    Args:
        path, output: the run folder, and what the user wants to see.
        given: the options that may change; those that nobody set stay as they were.
        repair: set damaged lines aside first, and play their episodes again.

    Raises:
        UsageError: it isn't a run folder, or what would be played isn't any more what was asked for (named).
        StorageError: it is in use or can't be written.
    """
    manifest = read_manifest(path)
    plan = Plan.from_manifest(manifest)
    options = resumed_options(path, manifest, given)
    specs = [AgentSpec.parse(text) for text in options.agents]
    if "episodes" in given.given and options.until is None:
        plan = plan.with_episodes(options.episodes, options.seed_offset)
    redactor = Redactor.from_environment([options.base_url or ""])
    players = Players(specs, options)
    with RunFolder.open_for_writing(path, redactor) as folder:
        if repair and (damaged := folder.set_damaged_lines_aside()):
            output.say(f"{damaged} damaged lines are now in {path / DAMAGED_NAME}; their episodes are played again")
        cards = players.check(plan)
        prices = agent_prices(cards, options, manifest.get("prices", {}))
        take_over(path, folder.manifest, as_stored(new_manifest(options, plan, cards, prices), redactor))
        return play_session(folder, Plan.from_manifest(folder.manifest), players, options, output, redactor)


def resumed_options(path: Path, manifest: Manifest, given: RunOptions) -> RunOptions:
    """The options of a manifest, with those that may change replaced by what is given.

    Raises:
        UsageError: the manifest's settings aren't those of this version.
    """
    settings = dict(manifest["settings"])
    odd = (set(settings) ^ set(COUNTING)) - set(ADDED)
    if odd:
        raise UsageError(f"{path} was made by another version of textbench: the setting {min(odd)!r}")
    if settings["prompts"] is not None:
        settings["prompts"] = str(path / PROMPTS_NAME)
    operation = {name: value for name, value in manifest.get("operation", {}).items() if name in OPERATING}
    operation["prices"] = None  # the manifest has what was in the file
    values = settings | operation | {name: getattr(given, name) for name in given.given}
    return RunOptions(**checked_options(values, {name: f"{path / MANIFEST_NAME}: {name}" for name in values}))


def as_stored(manifest: Manifest, redactor: Redactor) -> Manifest:
    """The manifest as it comes back from its file: tuples as lists, and without secrets."""
    stored: Manifest = json.loads(redactor.scrub(json.dumps(manifest, default=str)))
    return stored


def agent_prices(cards: list[dict[str, Any]], options: RunOptions, before: Mapping[str, Price]) -> dict[str, Price]:
    """``{agent: price}``: those that the run has had ``before``, then those of the price file.

    Raises:
        UsageError: the file is wrong, or the money is limited and an agent behind a server has no price.
    """
    table = read_prices(options.prices) if options.prices else {}
    prices = dict(before)
    for card in cards:
        model = card["settings"].get("model")
        price = price_of(table, (card["name"], card["spec"], model))
        if price is not None:
            prices[card["name"]] = price
        elif options.max_cost is not None and card["kind"] == "openai" and card["name"] not in prices:
            raise UsageError(
                f"--max-cost needs a price for {card['name']!r}; give --prices FILE with "
                f'[prices."{model}"] input = ... output = ... (USD per million tokens)'
            )
    return prices


def play_session(
    folder: RunFolder, plan: Plan, players: Players, options: RunOptions, output: Output, redactor: Redactor
) -> int:
    """Play what the folder lacks, print the results, and return the exit code."""
    meter = _meter(plan, folder)
    limits = Limits(options.max_concurrency, options.run_timeout, options.max_cost)
    growth = None if options.until is None else Growth(folder, options.until, options.episodes, meter)
    start_session(folder.manifest)
    folder.write_manifest()
    code, broken = INCOMPLETE, True
    try:
        with sigterm_interrupts(), choose_display(meter, output.quiet) as display:
            stopped = play_plan(plan, folder, players.load, limits, meter, display, growth)
        broken = False
    except KeyboardInterrupt:
        stopped, code = "interrupted", INTERRUPTED
    except StorageError as error:
        stopped = str(error)
    except BenchmarkError:
        _close(folder, "failed")
        raise
    except Exception as error:  # noqa: BLE001 - a player's own code: its author needs the traceback, its user the rest
        print(redactor.scrub(traceback.format_exc()), file=sys.stderr)
        stopped = f"a player failed: {type(error).__name__}: {error}"
    stopped = None if stopped is None else redactor.scrub(stopped)
    _close(folder, stopped or "finished")
    complete = not broken and show_run(folder.path, output, stopped)
    if growth is not None and growth.too_wide and stopped is None:
        names = ", ".join(f"{name} ({width:.3f})" for name, width in growth.too_wide.items())
        output.say(f"after {options.episodes} episodes these scores aren't known to --until {options.until:g}: {names}")
        output.say(f"play more: {resume_command(folder.path)} --episodes {2 * options.episodes}")
        return INCOMPLETE
    if stopped is None:
        return COMPLETE if complete else INCOMPLETE
    total = sum(tally.total for tally in meter.tallies.values())
    done = sum(tally.done for tally in meter.tallies.values())
    print(f"textbench: {stopped}; {done} of {total} episodes are kept. Go on with:", file=sys.stderr)
    print(f"  {resume_command(folder.path)}", file=sys.stderr, flush=True)
    return code


def show_run(path: Path, output: Output, stopped: str | None = None) -> bool:
    """Print a run's leaderboard; returns whether everything was played and scored."""
    results = read_results([path])
    document = results_document(results, max_episodes=0, references=References(results, output.say))
    if output.json:
        print_scores(document, {"run": str(path), "complete": results.complete, "stopped": stopped})
        return results.complete
    print_sheets(leaderboard_sheets(document), stdout_console())
    output.say(f"episodes and settings are in {path}; step through them with: textbench replay {quote(str(path))}")
    unscored = sum(cell.unscored for cell in results.cells.values())
    if unscored and stopped is None:
        output.say(f"{unscored} episodes are unscored; play them again with: {resume_command(path)}")
    return results.complete


def print_scores(document: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> None:
    """The scores of a document as JSON on stdout, after what is to be said ``about`` them."""
    short = {key: value for key, value in document.items() if key not in ("texts", "episodes", "comparisons")}
    print(json.dumps({**(about or {}), **short}, indent=1))


def _meter(plan: Plan, folder: RunFolder) -> Meter:
    """The meter, with what is on disk already counted in."""
    scored: set[Key] = set()
    tokens: dict[str, list[int]] = {}
    for _, record in folder.numbered_records():
        key, agents = key_of(record), record["agents"]
        if record["error"] is None:
            scored.add(key)
        # What the cache answered wasn't paid for.
        cached = record["measured"].get("cached_tokens", (0, 0))
        counted = tokens.setdefault(key.agents[0], [0, 0])
        counted[:] = [counted[i] - cached[i] for i in (0, 1)]
        for step in record["steps"]:
            counted = tokens.setdefault(agents[step["player"]], [0, 0])
            counted[:] = [counted[i] + step.get("tokens", (0, 0))[i] for i in (0, 1)]
    totals = {matchup: len(seeds) for matchup, seeds in plan.seeds.items()}
    done = {matchup: sum(Key(*matchup, seed) in scored for seed in seeds) for matchup, seeds in plan.seeds.items()}
    return Meter(totals, done, folder.manifest.get("prices", {}), tokens)


def _close(folder: RunFolder, outcome: str) -> None:
    """Note the outcome; a full disk must not hide why the run ended."""
    finish_session(folder.manifest, outcome)
    try:
        folder.write_manifest()
    except StorageError:
        pass
    finally:
        folder.close()
