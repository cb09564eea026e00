"""A run on a Ray cluster: workers play, and this process alone writes.

``agents, options -> TableSetup -> (on a worker) policies -> episodes -> lines -> (here) the run folder``. A worker
makes the line of an episode that this process would have made, to the byte but for the measured seconds.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from agents.cluster.cluster import Cluster, Pace
from agents.cluster.connection import ClusterError
from agents.cluster.worker import PlayError
from agents.common.reading import read_bytes
from agents.common.redaction import Redactor
from agents.episode import Episode
from agents.loop.live import Policies
from agents.loop.rollout import DEFAULT_CONCURRENCY
from agents.models.served.model import NOTICES
from agents.turn import Policy
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec, own_prompts, secrets_of
from benchmark.play.agents.players import Players, card_of
from benchmark.play.manifest import innermost
from benchmark.play.options import RunOptions
from benchmark.play.progress import noticed
from benchmark.play.runner import Elsewhere, Stopped, TableWork
from benchmark.runs.folder import RunFolder
from benchmark.runs.provenance import code_version
from benchmark.runs.record import parse_line, recorded, to_line, unscored


@dataclass(frozen=True)
class TableSetup:
    """Makes the agents of a table on a worker, and what it sends back: :class:`agents.cluster.worker.Setup`."""

    seats: dict[str, str]  # ``{player: agent}`` in the order of the game's players
    specs: tuple[AgentSpec, ...]  # of these agents
    options: RunOptions
    cards: tuple[dict[str, Any], ...]  # as the manifest has them: the worker's have to be the same
    code: tuple[str, str | None]  # version and commit of the code here, which has to be the worker's
    folder: str  # the working folder here; names of files mean the same on a worker that has it, too
    prompts: dict[str, bytes]  # ``{file: content}`` of the files of prompts that the options name
    # ``{agent: policy}`` of those that a Python program has made; equal cards stand for them if setups are compared
    objects: dict[str, Policy] = field(default_factory=dict, compare=False)

    def make(self) -> Policies:
        _notices()  # from here on they are kept
        code = code_here()
        if any(None not in pair and pair[0] != pair[1] for pair in zip(code, self.code, strict=True)):
            raise UsageError(f"its textbench is {code}, and that of the run {self.code}; install the same everywhere")
        with suppress(OSError):  # a machine need not have the folder
            os.chdir(self.folder)
        with TemporaryDirectory() as folder:
            options = _with_prompt_files(self.options, self.prompts, Path(folder))
            players = Players(self.specs, options, self.objects)
            policies = {spec.name: players.load(spec.name) for spec in self.specs}
        for card in self.cards:
            if card["name"] in self.objects:
                continue
            its = card_of(players.specs[card["name"]], policies[card["name"]])
            if its != card:
                what, here, there = innermost(f"agent {card['name']}", card, its)
                raise UsageError(
                    f"{what} is {here!r} in the run and {there!r} on the worker; bring the same files and packages to "
                    "all machines, and start the run on a machine like the workers'"
                )
        return {player: policies[name] for player, name in self.seats.items()}

    def policies(self, made: Policies, news: Any) -> Policies:
        return made

    def result(self, episode: Episode) -> "Result":
        """Return the line of the episode, under the agents' names in this run and without the worker's secrets."""
        redactor = _redactor(tuple(secrets_of(self.options)))
        record = recorded(episode, self.seats)
        try:
            line = redactor.scrub_bytes(to_line(record))
            parse_line(line)
        except ValueError as error:  # figures beyond anything real, from a server or a game
            line = redactor.scrub_bytes(to_line(unscored(record, str(error))))
        new = tuple(map(redactor.scrub, _notices()))
        _notices().clear()
        return Result(line, new)


class Result(NamedTuple):
    """An episode that a worker has played."""

    line: bytes  # of the run folder
    notices: tuple[str, ...]  # about the servers that were asked, as far as they are new


@cache
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    return Redactor.from_environment(secrets=secrets)  # the driver doesn't know the secrets of this machine


_FOR_LIFE = ExitStack()  # holds the notices that a worker listens to until it ends


@cache
def _notices() -> list[str]:
    """Return the notices of this process since they were last sent."""
    heard: list[str] = []
    _FOR_LIFE.enter_context(noticed(heard.append))
    return heard


def _with_prompt_files(options: RunOptions, prompts: Mapping[str, bytes], folder: Path) -> RunOptions:
    """Return the options with the contents of their files of prompts written into ``folder``."""
    here = {file: folder / f"{number}.toml" for number, file in enumerate(prompts)}
    for file, place in here.items():
        place.write_bytes(prompts[file])
    own = {
        name: dict(one) | ({"prompts": str(here[one["prompts"]])} if one.get("prompts") else {})
        for name, one in options.by_agent.items()
    }
    prompts_here = str(here[options.prompts]) if options.prompts else None
    return replace(options, prompts=prompts_here, agent_options=own or None)


def code_here() -> tuple[str, str | None]:
    """Return the version of the code that runs here, and its commit if it is known."""
    code = code_version()
    return code["version"], code["commit"]


@contextmanager
def playing_elsewhere(options: RunOptions, players: Players, folder: RunFolder) -> Iterator[Elsewhere | None]:
    """Hold the workers of a run with ``--ray``, and yield what plays on them; ``None`` for a run without."""
    if options.ray is None:
        yield None
        return
    cluster = Cluster(options.ray, most_workers=options.ray_workers, cpus=options.ray_cpus, gpus=options.ray_gpus)
    with ExitStack() as stack:
        try:
            stack.enter_context(cluster)
        except ClusterError as error:
            raise UsageError(f"--ray: {error}") from None
        cards = {card["name"]: card for card in folder.manifest["agents"]}
        files = [*([options.prompts] if options.prompts else []), *own_prompts(options)]
        prompts = {file: read_bytes(file) for file in files}
        yield partial(_play, cluster, options, players, cards, prompts)


def _play(
    cluster: Cluster,
    options: RunOptions,
    players: Players,
    cards: Mapping[str, dict[str, Any]],
    prompts: dict[str, bytes],
    work: TableWork,
) -> Generator[Episode]:
    """Play a table on the cluster."""
    names = tuple(dict.fromkeys(work.seats.values()))
    setup = TableSetup(
        seats=dict(work.seats),
        specs=tuple(players.specs[name] for name in names),
        options=options,
        cards=tuple(cards[name] for name in names),
        code=code_here(),
        folder=str(Path.cwd()),
        prompts=prompts,
        objects={name: policy for name, policy in players.policies.items() if name in names},
    )
    served = not players.served.isdisjoint(names)
    in_flight = options.max_concurrency or DEFAULT_CONCURRENCY
    pace = Pace(in_flight, together=served, cautious=options.max_cost is not None)
    try:
        tasks = iter(partial(next, work.tasks, None), None)  # until there is none for now
        results = cluster.rollout(setup, tasks, work.total, pace=pace, timeout=work.seconds)
    except TypeError as error:  # what pickle says of locks, clients and open files
        why = " ".join(str(error).split())
        raise UsageError(f"{' and '.join(names)} can't be sent to workers: {why}") from None
    came = False
    try:
        with closing(results):
            for result in results:
                for notice in result.notices:
                    NOTICES.warning("%s", notice)  # as if it had been here
                yield parse_line(result.line)
                came = True
    except ClusterError as error:
        raise Stopped(str(error)) from None
    except PlayError as error:
        if error.making and not came:
            raise UsageError(f"on the worker {error.host}: {error.reason}") from None
        error.add_note(error.trace)
        raise
