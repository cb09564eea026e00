"""The results of runs and entries as columns of numbers, read one record at a time.

A hundred thousand episodes are some hundred megabytes of JSON lines and some ten megabytes of columns; only the columns
are ever in memory.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from os.path import realpath
from pathlib import Path
from sys import intern
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from agents.common.intervals import CONFIDENCE, Array
from agents.episode import Episode
from agents.turn import eaten_up
from benchmark.errors import UsageError, unknown_name
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import MANIFEST_NAME, Manifest, Price
from benchmark.runs.plan import Plan, protocol_of
from benchmark.runs.record import Key, error_reason, key_of, paid_tokens
from benchmark.score.cache import RecordCache
from benchmark.score.luck import Corrected, FolderLuck, LuckValues, SeedLuck, ToldLuck, corrected
from benchmark.score.move_losses import Losses, MoveLosses, add_metric, folder_losses
from benchmark.score.protocols import with_labels
from benchmark.score.ratings import Game
from benchmark.score.stopping import confidence_of
from textgames.scenarios import Scenario

COLUMNS = (
    *("seed", "score", "success", "invalid", "responses", "length"),
    *("prompt_tokens", "completion_tokens", "seconds", "cpu_seconds", "seat"),
    *("cut_off", "refused", "forfeited"),
)
REFUSED = ("refusal", "content_filter")  # finish reasons
UNKNOWN = float("nan")
START, SKILL, LUCK, VARIANCE = range(4)
"""The columns of :attr:`Cell.luck`."""
LUCK_LIMIT = 2000
"""The most episodes of one agent in one scenario that are played again for their luck: more have narrow intervals."""
CONTROLLED_LIMIT = 500
"""The most episodes whose luck is computed by a heuristic, which takes about a millisecond a step."""

Values = Sequence[float] | Array
About = ParamSpec("About")
Found = TypeVar("Found")


def once(compute: "Callable[Concatenate[Cell, About], Found]") -> "Callable[Concatenate[Cell, About], Found]":
    """Keep what a function makes of a cell with the same further objects: a board asks again in every comparison."""

    def kept(cell: "Cell", /, *args: About.args, **kwargs: About.kwargs) -> Found:
        before, found = cell.memo.get(compute, ((), None))
        if compute not in cell.memo or any(one is not other for one, other in zip(before, args, strict=True)):
            found = compute(cell, *args, **kwargs)
            cell.memo[compute] = args, found
        return cast(Found, found)

    return wraps(compute)(kept)


@dataclass
class Cell:
    """The results of one agent in one scenario: a row of numbers per scored episode (and seat, if it has several)."""

    planned: int = 0  # episodes that were to be played
    # {name: values} for the names in COLUMNS
    columns: dict[str, "array[float]"] = field(default_factory=lambda: {name: array("d") for name in COLUMNS})
    metrics: dict[str, "array[float]"] = field(default_factory=dict)  # of the games; NaN if a row has none of that name
    errors: Counter[str] = field(default_factory=Counter)  # reasons of the unscored episodes
    reasons: Counter[str] = field(default_factory=Counter)  # reasons of the invalid responses
    # tokens that weren't answered from the response cache, unscored episodes included: of prompts, of completions, and
    # of the prompts those that the provider had in its own cache
    paid_tokens: list[int] = field(default_factory=lambda: [0, 0, 0])
    served_by: Counter[str] = field(default_factory=Counter)  # episodes by the model that a server says answered
    left_out: Counter[str] = field(default_factory=Counter)  # episodes in which a server refused this parameter
    eaten_up: int = 0  # responses that are empty, since reasoning took all tokens
    ask_luck: Callable[[], SeedLuck | None] | None = field(default=None, compare=False)  # computes it on demand
    confidence: float = CONFIDENCE  # the level of its intervals; higher if the run looked several times
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # of :func:`once`

    @property
    def episodes(self) -> int:
        """How many episodes were scored, in games of several players one for every seat."""
        return len(self.columns["seed"])

    @property
    def unscored(self) -> int:
        return self.errors.total()

    @property
    def complete(self) -> bool:
        """Whether everything that was planned was played and scored, so that the cell can be ranked."""
        return self.episodes == self.planned > 0 and not self.errors

    def on_seeds(self, seeds: Values) -> "Cell":
        """Return the scored episodes of some seeds alone; this cell if these are all of its own."""
        rows = np.flatnonzero(np.isin(self.columns["seed"], seeds))
        if len(rows) == self.episodes:
            return self
        columns = {name: array("d", np.array(values)[rows]) for name, values in self.columns.items()}
        return Cell(len(rows), columns, ask_luck=self.ask_luck, confidence=self.confidence)

    @once
    def returns(self) -> tuple[Array, Array]:
        """Return the seeds of the scored episodes in order, and the mean return on each over games and seats."""
        return per_seed(self.columns["seed"], self.columns["score"])

    @once
    def table(self) -> dict[str, Array]:
        """Return the columns as arrays with a row for every seed, in order."""
        return dict(zip(self.columns, columns_per_seed(self.columns), strict=True))

    @cached_property
    def luck(self) -> Array | None:
        """The luck of the scored episodes in the order of their seeds, shape (episodes, 4), or ``None`` if unknown."""
        if self.ask_luck is None or self.episodes > LUCK_LIMIT:
            return None
        known = self.ask_luck()
        seeds = sorted({int(seed) for seed in self.columns["seed"]})
        if known is None or not seeds or not all(seed in known for seed in seeds):
            return None
        return np.array([known[seed] for seed in seeds])

    def add(self, record: Episode, player: str) -> None:
        steps = record.steps_of(player)
        answers = [answer for step in steps for answer in step.answers]
        for place, paid in enumerate(paid_tokens(record)[player]):
            self.paid_tokens[place] += paid
        for counter, name in ((self.served_by, "served_by"), (self.left_out, "left_out")):
            counter.update(record.measured.get(name, {}).get(player, ()))
        for turn, _ in answers:
            reasoning = turn.usage.reasoning_tokens or turn.reasoning
            self.eaten_up += eaten_up(turn.finish_reason, turn.response, reasoning)
        if record.error is not None:
            self.errors[error_reason(record.error)] += 1
            return
        invalid = [unreadable for _, unreadable in answers if unreadable is not None]
        self.reasons.update(invalid)
        row = (
            record.seed,
            record.returns[player],
            record.successes[player],
            len(invalid),
            len(answers),
            len(steps),
            sum(turn.usage.prompt_tokens for turn, _ in answers),
            sum(turn.usage.completion_tokens for turn, _ in answers),
            record.measured.get("seconds", 0.0),
            record.measured.get("cpu_seconds", {}).get(player, 0.0),
            list(record.agents).index(player),
            sum(turn.finish_reason == "length" for turn, _ in answers),
            sum(turn.finish_reason in REFUSED for turn, _ in answers),
            bool(steps) and not steps[-1].action,  # nothing was executed: the response ended the player's episode
        )
        for name, value in zip(COLUMNS, row, strict=True):
            self.columns[name].append(value)
        metrics = record.metrics.get(player, {})
        for name in metrics:
            self.metrics.setdefault(name, array("d", [UNKNOWN] * (self.episodes - 1)))
        for name, values in self.metrics.items():
            values.append(metrics.get(name, UNKNOWN))


def columns_per_seed(columns: Mapping[str, Values]) -> list[Array]:
    """Return the means of :func:`per_seed` for all columns; the seeds are sorted once, if all values are known."""
    seeds = columns["seed"]
    _, place, count = np.unique(np.array(seeds), return_inverse=True, return_counts=True)
    means = []
    for column in columns.values():
        values = np.array(column)
        whole = not np.isnan(values).any()
        means.append(np.bincount(place, values, len(count)) / count if whole else per_seed(seeds, values)[1])
    return means


def per_seed(seeds: Values, values: Values) -> tuple[Array, Array]:
    """Return every seed that has a known value, in order, and the mean of its values.

    Games and seats of one seed have the same start and depend on each other: together they are one observation.
    """
    known = ~np.isnan(values)
    found, place, count = np.unique(np.array(seeds)[known], return_inverse=True, return_counts=True)
    return found, np.bincount(place, np.array(values)[known], minlength=len(found)) / count


@once
def without_luck(cell: Cell, scenario: Scenario) -> tuple[Corrected | None, bool]:
    """Return the corrected returns in the order of seeds, if any, and whether the values behind them are exact.

    In a game without chance they are the returns themselves. By a heuristic they are a control variate, whose mean is
    that of the plain returns; its promise of a start is removed from none.
    """
    game = scenario.game()
    values = LuckValues.of(game)
    exact = values is None or values.exact
    luck = cell.luck if exact or cell.episodes <= CONTROLLED_LIMIT else None
    if luck is None:
        return None, exact
    possible = game.return_range or () if exact else ()
    returns = cell.returns()[1]
    if luck[:, VARIANCE].any():
        return corrected(returns, luck[:, START], luck[:, LUCK], possible), exact
    ends = [*returns.tolist(), *possible]
    return Corrected(returns, (min(ends), max(ends)) if possible else None, beta=None, sd_ratio=None), exact


@once
def luck_free(cell: Cell, scenario: Scenario) -> Corrected | None:
    """Return the returns corrected by exact values; ``None`` if scores are plain."""
    values = LuckValues.of(scenario.game())  # a heuristic isn't asked here, which takes long
    return without_luck(cell, scenario)[0] if values is None or values.exact else None


def corrected_returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """Return the seeds in their order, and the luck-free return on each if there are any, else the plain one."""
    seeds, returns = cell.returns()
    free = luck_free(cell, scenario)
    return seeds, returns if free is None else free.values


@dataclass
class ResultColumns:
    """The results of several sources together."""

    sources: list[tuple[Path, Manifest]] = field(default_factory=list)
    source_complete: list[bool] = field(default_factory=list)  # everything that each was to hold was played and scored
    names: list[dict[str, str]] = field(default_factory=list)  # {name in the source: name here} of each source
    scenarios: dict[str, Scenario] = field(default_factory=dict)  # in the order of first appearance
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)  # {name: its card in the manifest}
    agent_source: dict[str, int] = field(default_factory=dict)  # {name: index into sources}
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # {(agent, scenario): Cell}
    games: dict[str, list[Game]] = field(default_factory=dict)  # {scenario: games} of those for several players
    # {scenario: (least, most)} of the sum of all players' returns: equal if one's gain is the others' loss
    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    # (scenario, seed, byte offset) of every episode of each source, in the order in which they were read
    places: list[list[tuple[str, int, int]]] = field(default_factory=list)
    played: int = 0  # episodes read, unscored ones included
    planned: int = 0  # episodes that the sources were to hold
    losses: dict[str, MoveLosses | None] = field(default_factory=dict)  # {scenario: what finds the value lost}
    source_losses: list[dict[str, RecordCache[dict[str, Losses]]]] = field(
        default_factory=list
    )  # {scenario: its losses} of each source
    # the games in ``games``: two agents' entries both hold the games that they played together
    rated: set[Key] = field(default_factory=set)
    memo: dict[Any, Any] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )  # of what is computed once

    @property
    def complete(self) -> bool:
        """Whether every agent played and scored everything that was planned for it."""
        return all(cell.complete for cell in self.cells.values())

    def cell(self, agent: str, scenario: str) -> Cell:
        return self.cells.setdefault((agent, scenario), Cell())

    @property
    def prices(self) -> dict[str, Price]:
        """``{agent: {"input": USD per million tokens, "output": ...}}`` if a source states them."""
        stated = {
            name: self.sources[index][1].get("prices", {}).get(self.agents[name]["name"])
            for name, index in self.agent_source.items()
        }
        return {name: price for name, price in stated.items() if price}


def expand_sources(paths: Iterable[str | Path]) -> list[Path]:
    """Return run folders and entries, each once; a folder of folders stands for those in it, which mustn't be links."""
    found: dict[str, Path] = {}
    for given in paths:
        path = Path(given)
        inside = sorted(child.parent for child in path.glob(f"*/{MANIFEST_NAME}")) if path.is_dir() else []
        for folder in inside if inside and not (path / MANIFEST_NAME).exists() else [path]:
            place = realpath(folder)  # which takes links in a circle, too
            if folder is not path and not Path(place).is_relative_to(realpath(path)):
                raise UsageError(f"can't read {folder}: it is a link out of {path}, to {place}; to read it, name it")
            found.setdefault(place, folder)
    return [*found.values()]


def read_columns(
    paths: Sequence[str | Path], agents: Sequence[str] = (), told: ToldLuck | None = None
) -> ResultColumns:
    """Read run folders and entries, as :func:`expand_sources` takes them, into columns.

    An agent's name that a source before has taken gets the folder's name in front. If the sources were played by
    several protocols, the scenarios of each have names of their own (:mod:`benchmark.score.protocols`). ``agents`` are
    the names to keep, ``told`` the luck found so far in a folder that is read again and again. A UsageError is raised
    for no run or entry, no such agent, no episode, or two meanings of a scenario's name.
    """
    results = ResultColumns()
    folders = [RunFolder.open(path) for path in expand_sources(paths)]
    if len({protocol_of(folder.manifest["settings"]) for folder in folders}) > 1:
        # plain runs come first, so that their agents keep their names
        folders = sorted(map(with_labels, folders), key=lambda folder: "labels" in folder.manifest)
    for folder in folders:
        _add_source(results, folder, frozenset(agents), told)
    named = {card["name"] for folder in folders for card in folder.manifest["agents"]}
    if unknown := [name for name in agents if name not in named | results.agents.keys()]:
        raise unknown_name("agent in these results", unknown[0], named)
    if not results.cells:
        raise UsageError(f"no episodes to show in {', '.join(str(path) for path in paths) or 'nothing'}")
    return results


def _add_source(results: ResultColumns, folder: RunFolder, keep: frozenset[str], told: ToldLuck | None) -> None:
    plan, manifest = Plan.from_manifest(folder.manifest), folder.manifest
    places: list[tuple[str, int, int]] = []
    luck = FolderLuck(folder, places, told)
    renamed = {}
    for card in manifest["agents"]:
        name = card["name"] if card["name"] not in results.agents else f"{folder.path.resolve().name}/{card['name']}"
        while name in results.agents:
            name += "'"  # the same folder name in two places
        renamed[card["name"]] = name
    wanted = {name for name in renamed if not keep or name in keep or renamed[name] in keep}
    for card in manifest["agents"]:
        if card["name"] in wanted:
            results.agents[renamed[card["name"]]] = card
            results.agent_source[renamed[card["name"]]] = len(results.sources)
    for name, scenario in plan.scenarios.items():
        known = results.scenarios.setdefault(name, scenario)
        if known._replace(training=False) != scenario._replace(training=False):
            raise UsageError(
                f"{folder.path} defines another scenario under the name {name!r} than the sources before it"
            )
        if name not in results.losses:  # one for all sources, since it solves the game
            results.losses[name] = MoveLosses.of(scenario)
    for matchup, seeds in plan.seeds.items():
        for agent in matchup.agents:
            if agent in wanted:
                cell = results.cell(renamed[agent], matchup.scenario)
                cell.planned += len(seeds)
                cell.confidence = confidence_of(manifest["settings"], manifest.get("extended", ()))
                if len(matchup.agents) == 1:
                    cell.ask_luck = partial(luck.of, agent, plan.scenarios[matchup.scenario])
    results.names.append({name: renamed[name] for name in renamed if name in wanted})
    losses = folder_losses({name: one for name in plan.scenarios if (one := results.losses[name]) is not None}, folder)
    results.source_losses.append(losses)
    results.places.append(places)
    scored = 0
    for offset, record in folder.located_records():
        results.played += 1
        places.append((intern(record.scenario), record.seed, offset))
        scored += record.error is None
        _add_game(results, record, renamed)
        if record.scenario in losses:
            add_metric(record, losses[record.scenario])
        for player, agent in record.agents.items():
            if agent in wanted:
                results.cell(renamed[agent], record.scenario).add(record, player)
    for found in losses.values():
        found.keep()
    results.planned += plan.total
    results.source_complete.append(scored >= plan.total)
    folder.path = folder.path.absolute()  # the program may change its folder, and reads on
    results.sources.append((folder.path, manifest))


def _add_game(results: ResultColumns, record: Episode, renamed: Mapping[str, str]) -> None:
    """Count a game between agents for the ratings: the higher return wins."""
    if len(record.agents) < 2 or record.error is not None:
        return
    names = tuple(renamed.get(agent, agent) for agent in record.agents.values())
    key = key_of(record)._replace(agents=names)
    if key in results.rated:
        return
    results.rated.add(key)
    returns = [(name, record.returns[player]) for name, player in zip(names, record.agents, strict=True)]
    results.games.setdefault(record.scenario, []).extend(Game.of_table(returns, record.seed))
    total = sum(value for _, value in returns)
    least, most = results.sums.get(record.scenario, (total, total))
    results.sums[record.scenario] = min(least, total), max(most, total)
