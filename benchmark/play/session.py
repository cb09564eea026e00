"""One process's work on a run folder: open it, play what is missing, report how that ended.

``PlannedRun | folder -> manifest, prices -> Session -> play -> Ending``. ``textbench run``, ``textbench resume`` and
:func:`benchmark.evaluate` are all this; what they print or return of it is their own.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from agents.claims import approve
from agents.common.interrupt import kills_interrupt
from agents.common.reading import read_bytes
from agents.common.redaction import Redactor
from agents.protocol import LEGAL_ONLY, UNLISTED
from benchmark.errors import BenchmarkError, StorageError, UsageError
from benchmark.play.agents.choice import PlannedRun, choose_scenarios
from benchmark.play.agents.options import (
    AgentSpec,
    prompt_files,
    read_sets,
    resumed,
    secrets_of,
    together,
    with_agent_options,
)
from benchmark.play.agents.players import Players, not_cached, not_read, not_taken
from benchmark.play.claims import asked_for, check_claims, claims_of, claims_of_prices
from benchmark.play.cluster import playing_elsewhere
from benchmark.play.cost.estimate import spending
from benchmark.play.cost.prices import agent_prices
from benchmark.play.manifest import new_manifest, take_over
from benchmark.play.options import ADDED, COUNTING, OPERATING, RunOptions, flag_of
from benchmark.play.progress import Meter, choose_display, noticed, teller
from benchmark.play.runner import NO_LIMITS, Incomplete, Limits, PlanRun
from benchmark.play.until import Growth
from benchmark.runs.answers import ANSWERS_NAME, AnswersFile
from benchmark.runs.folder import DAMAGED_NAME, PROMPTS_NAME, RunFolder, resume_command
from benchmark.runs.manifest import MANIFEST_NAME, Manifest, read_manifest
from benchmark.runs.plan import Plan, import_registration, num_players, told_otherwise
from benchmark.runs.provenance import code_version, now
from benchmark.runs.record import Key, key_of, paid_tokens
from benchmark.score.comparison import too_few_starts
from textgames import GameError


@dataclass(frozen=True)
class Ending:
    """The end of one process's work on a run."""

    path: Path  # the run folder, which is closed
    done: int  # scored episodes
    total: int  # those that are planned
    stopped: str | None  # why not everything was played, as half a sentence without secrets
    # what stopped it besides limits and agents for which nothing works: Ctrl-C, the disk, an error in a player's code
    error: BaseException | None
    for_money: bool  # whether the money was used up, so that the same limit would play nothing more
    too_wide: Mapping[str, float]  # ``{agent and scenario: half-width}`` of scores that ``--until`` didn't make narrow
    options: RunOptions

    @property
    def too_wide_message(self) -> str:
        """A sentence on the scores that aren't known well enough; empty if all are."""
        names = ", ".join(f"{name} ({width:.3f})" for name, width in self.too_wide.items())
        most, width = self.options.episodes, self.options.until
        return f"after {most} episodes these scores aren't known to --until {width:g}: {names}" if names else ""


@dataclass(frozen=True)
class Session:
    """A run folder that is open for writing, and what it takes to play what it lacks."""

    folder: RunFolder
    players: Players
    options: RunOptions
    redactor: Redactor

    def play(self, *, quiet: bool = False, limits: Limits = NO_LIMITS) -> Ending:
        """Play what the folder lacks, show progress on standard error unless ``quiet``, and close the folder.

        Whatever stops it, finished episodes are kept and the manifest tells how it ended.
        """
        options, say = self.options, teller(quiet)
        with self.folder as folder:
            plan = Plan.from_manifest(folder.manifest)
            answers = AnswersFile(folder.path, self.redactor, folder.scored)
            meter = _meter(plan, folder, answers)
            growth = Growth(folder, options, meter) if options.grows else None
            folder.manifest.setdefault("sessions", []).append({"started": now(), "finished": None, **code_version()})
            folder.write_manifest()
            agents = self.players.specs.values()
            strange = [*not_taken(agents, options), *not_cached(folder.manifest["agents"], options)]
            strange += (told for agent in agents for told in not_read(agent, plan.scenarios_of(agent.name)))
            if answers.damaged:
                lines = "1 line" if answers.damaged == 1 else f"{answers.damaged} lines"
                strange.append(f"{lines} of {ANSWERS_NAME} can't be read; what they had answered is asked again")
            for sentence in filter(None, [*strange, "" if options.grows else too_few_starts(plan)]):
                say(sentence)
            incomplete: Incomplete | None = None
            stopped: str | None
            error: BaseException | None = None
            notices: list[str] = []
            try:
                with (
                    playing_elsewhere(options, self.players, folder) as elsewhere,
                    kills_interrupt(),
                    noticed(say) as notices,
                    choose_display(meter, quiet) as display,
                ):
                    incomplete = PlanRun(
                        plan=plan,
                        folder=folder,
                        players=self.players,
                        options=options,
                        meter=meter,
                        display=display,
                        answers=answers,
                        grow=growth,
                        elsewhere=elsewhere,
                        limits=limits,
                    ).play()
                stopped = incomplete.reason if incomplete else None
                if stopped is None:
                    _finish(folder, None, [*strange, *notices])
            except KeyboardInterrupt as interrupt:
                stopped, error = "interrupted", interrupt
            except StorageError as refusal:
                stopped, error = str(refusal), refusal
            except BenchmarkError:
                answers.close()
                _finish(folder, "failed", [*strange, *notices])
                raise
            except Exception as failure:  # noqa: BLE001 - a player's own code, whose author gets it from the caller
                fault = isinstance(failure, GameError)
                stopped = str(failure) if fault else f"a player failed: {type(failure).__name__}: {failure}"
                error = failure
            answers.close()
            lost = folder.lost()
            if stopped is not None:
                stopped = self.redactor.scrub(stopped if lost is None or lost in stopped else f"{stopped}; {lost}")
                _finish(folder, stopped, [*strange, *notices])
            done, total = (sum(getattr(tally, name) for tally in meter.tallies.values()) for name in ("done", "total"))
            if lost is not None:
                done = 0
                with suppress(UsageError, StorageError):  # a reader may find nothing now
                    done = len(folder.scored().intersection(plan.episodes()))
            for_money, too_wide = incomplete is not None and incomplete.for_money, growth.too_wide if growth else {}
            return Ending(folder.path, done, total, stopped, error, for_money, too_wide, options)


def open_session(planned: PlannedRun) -> Session:
    """Check every agent and its model's name, then open a new run folder, or ``--out``'s made with equal settings.

    Raises a UsageError if a player or a price is missing or the folder is another's, a StorageError if it is in use.
    """
    options, players, plan, season = planned
    redactor = Redactor.from_environment(secrets=secrets_of(options))
    # this command has named them, so a resume needn't again
    claims = claims_of(options, [scenario.env_id for scenario in plan.scenarios.values()])
    cards = players.check(plan)
    players.check_names()
    manifest = new_manifest(options, plan, cards, agent_prices(cards, options, {}))
    manifest |= {} if season is None else {"season": dict(season)}
    path, asked = Path(options.out or new_folder()), as_stored(manifest, redactor)
    if not (path / MANIFEST_NAME).exists():
        # The user's file of prompts may change or move; a resume needs the one that was used.
        kept = prompt_files(options) | ({PROMPTS_NAME: Path(options.prompts)} if options.prompts else {})
        files = {name: read_bytes(file) for name, file in kept.items()}
        folder = RunFolder.create(path, manifest, redactor, files)
    else:
        folder = RunFolder.open_for_writing(path, redactor)
        try:
            take_over(path, folder.manifest, asked, unplayed=not folder.episodes_path.stat().st_size)
            planned_there = Plan.from_manifest(folder.manifest).total
            wanted = options.episodes * len(plan.seeds) if options.grows else plan.total
            if planned_there > wanted:  # the folder may be anybody's
                raise UsageError(
                    f"{path} plans {planned_there:,} episodes, and this command asks for {wanted:,}; choose another "
                    f"--out, or resume it: {resume_command(path)}"
                )
        except UsageError:
            folder.close()
            raise
        asked = folder.manifest
    approve(path, [*claims, *claims_of_prices(manifest)], asked_for(asked))
    return Session(folder, players, options, redactor)


def new_folder() -> str:
    """Return the name of a run folder: it sorts by time, and two runs of one second don't meet."""
    return f"runs/{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def by_protocol(options: RunOptions) -> list[RunOptions]:
    """Return the runs that ``--protocols`` or ``--samples`` stands for, in folders beside each other; without these,
    the one run itself."""
    out = Path(options.out or new_folder())
    if options.samples is not None:
        for name in ("protocols", "resample", "until", "levels"):
            if getattr(options, name) is not None:
                raise UsageError(f"{flag_of(name)} can't be given with {flag_of('samples')}: leave one of them out")
        for name, scenario in choose_scenarios(options).scenarios.items():
            if num_players(scenario) > 1:
                raise UsageError(
                    f"--samples is for games of one player, whose best of k and pass@k it gives, and {name} has "
                    "several: leave one of them out"
                )
        numbers = range(options.samples)
        alone = replace(options, samples=None)
        return [replace(alone, resample=number or None, out=str(out / f"sample-{number}")) for number in numbers]
    if options.protocols is None:
        return [options]
    for name in ("protocol", "moves", "legal_only"):
        if name in options.given:
            raise UsageError(f"{flag_of(name)} can't be given with {flag_of('protocols')}, which decides it")
    runs = []
    for name in options.protocols.split(","):
        one = replace(options, moves=UNLISTED) if name == UNLISTED else options.by_protocol(name)
        legal, place = True if name == LEGAL_ONLY else None, str(out / name.replace(":", "-"))
        runs.append(replace(one, legal_only=legal, out=place, protocols=None))
    return runs


def play_all(runs: Sequence[PlannedRun], *, quiet: bool = False, ask: Callable[[str], bool] | None = None) -> Ending:
    """Play runs one after the other until one is stopped; limits, and the counts that are returned, are of all."""
    endings: list[Ending] = []
    began = monotonic() if len(runs) > 1 else None
    while len(endings) < len(runs) and not (endings and endings[-1].stopped):
        run, beside = runs[len(endings)], 0.0
        if len(runs) > 1 and (limit := run.options.max_cost) is not None:
            beside = sum(_spent(Path(str(each.options.out))) for each in runs if each is not run)
            # what is left is kept in the folder: a resume of it alone spends no more than all together may
            run = run._replace(options=replace(run.options, max_cost=max(0.0, limit - beside)))
        endings.append(open_session(run).play(quiet=quiet, limits=Limits(None, beside, began, ask)))
    done, total = (sum(getattr(ending, name) for ending in endings) for name in ("done", "total"))
    total += sum(run.plan.total for run in runs[len(endings) :])
    too_wide = {
        name if len(runs) == 1 else f"{ending.path.name}: {name}": width
        for ending in endings
        for name, width in ending.too_wide.items()
    }
    return replace(endings[-1], done=done, total=total, too_wide=too_wide)


def _spent(path: Path) -> float:
    """Return the US dollars that the run in a folder has cost so far; 0 if there is no such run yet."""
    if not (path / MANIFEST_NAME).exists():
        return 0.0
    folder = RunFolder.open(path)
    answers = AnswersFile(path, Redactor.from_environment(), folder.scored, writing=False)
    return _meter(Plan.from_manifest(folder.manifest), folder, answers).spent


def reopen_session(
    path: Path,
    given: RunOptions,
    say: Callable[[str], None],
    *,
    repair: bool = False,
    ask: Callable[[str], bool] = lambda question: False,
) -> Session:
    """Open a run folder to play what it lacks, with its manifest's settings and the ``given`` ones that may change.

    Whatever runs code, asks a server, costs money, fetches or sends a secret is only done if this user has named it, or
    says so when ``ask`` asks. With ``repair``, damaged lines are set aside, and their episodes are played again.

    Raises:
        UsageError: it isn't a run folder, it names what its user hasn't, or what would be played isn't any more what
            was asked for.
        StorageError: it is in use or can't be written.
    """
    manifest = read_manifest(path)
    options = _resumed_options(path, manifest, given)
    specs = [AgentSpec.parse(text) for text in options.agents]

    def planned() -> Plan:
        plan = Plan.from_manifest(manifest)
        grown = "episodes" in given.given and not options.grows
        return plan.with_episodes(options.episodes, options.seed_offset) if grown else plan

    def told(spec: str) -> str:
        try:
            return spending(spec, planned(), options)
        except UsageError:  # a game whose module may not be imported yet
            return ""

    claims = check_claims(path, manifest, options, given, ask, told)
    for scenario in manifest["scenarios"].values():
        import_registration(scenario["env_id"])
    plan = planned()
    if why := next(filter(None, map(told_otherwise, plan.scenarios.values())), ""):
        raise UsageError(why)
    options = with_agent_options(options, {spec.name: spec.spec for spec in specs})
    redactor = Redactor.from_environment(secrets=secrets_of(options))
    players = Players(specs, options)
    folder = RunFolder.open_for_writing(path, redactor)
    try:
        if repair and (damaged := folder.set_damaged_lines_aside()):
            say(f"{damaged} damaged lines are now in {path / DAMAGED_NAME}; their episodes are played again")
        cards = players.check(plan)
        prices = agent_prices(cards, options, manifest.get("prices", {}))
        take_over(path, folder.manifest, as_stored(new_manifest(options, plan, cards, prices), redactor))
    except BaseException:
        folder.close()
        raise
    # with the episodes and the prices that this command has added
    approve(path, [*claims, *claims_of_prices(folder.manifest)], asked_for(folder.manifest))
    return Session(folder, players, options, redactor)


def _resumed_options(path: Path, manifest: Manifest, given: RunOptions) -> RunOptions:
    """Return a manifest's options, with those given in place of what may change; agents' own aren't checked yet."""
    settings = dict(manifest["settings"])
    odd = (set(settings) ^ set(COUNTING)) - set(ADDED)
    if odd:
        raise UsageError(f"{path} was made by another version of textbench: the setting {min(odd)!r}")
    if settings["prompts"] is not None:
        settings["prompts"] = str(path / PROMPTS_NAME)
    operation = {name: value for name, value in manifest.get("operation", {}).items() if name in OPERATING}
    operation["prices"] = None  # the manifest has what was in the file
    changeable = manifest.get("operation", {}).get("agent_options")
    values = settings | operation | {name: getattr(given, name) for name in given.given if name != "sets"}
    values["agent_options"] = resumed(path, settings.get("agent_options"), changeable) or None
    options = RunOptions.of(values, {name: f"{path / MANIFEST_NAME}: {name}" for name in values})
    own = read_sets(given.sets, [AgentSpec.parse(text).name for text in options.agents])
    return replace(options, agent_options=together(options.agent_options, own) or None, given=frozenset())


def as_stored(manifest: Manifest, redactor: Redactor) -> Manifest:
    """Return the manifest as it comes back from its file: tuples as lists, and without secrets."""
    stored: Manifest = json.loads(redactor.scrub(json.dumps(manifest, default=str)))
    return stored


def _meter(plan: Plan, folder: RunFolder, answers: AnswersFile) -> Meter:
    totals = {matchup: len(seeds) for matchup, seeds in plan.seeds.items()}
    meter = Meter(totals, folder.manifest.get("prices", {}), answers.unrecorded_tokens)
    scored: set[Key] = set()
    for *_, record in folder.lines():
        if record.error is None:
            scored.add(key_of(record))
        for player, paid in paid_tokens(record).items():
            meter.count_tokens(record.agents[player], *paid)
        meter.count_kept(record)
    for matchup, seeds in plan.seeds.items():
        meter.tallies[matchup].done = sum(Key(*matchup, seed) in scored for seed in seeds)
    return meter


def _finish(folder: RunFolder, stopped: str | None, notices: Sequence[str]) -> None:
    """Note how the run ended, and what was noticed of servers; a full disk must not hide why it was stopped."""
    session = {"finished": now(), "outcome": stopped or "finished"} | ({"notices": [*notices]} if notices else {})
    folder.manifest["sessions"][-1] |= session
    try:
        folder.write_manifest()
    except StorageError:
        if stopped is None:
            raise
