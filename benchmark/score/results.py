"""The results of runs and entries as columns of numbers, read one record at a time.

A hundred thousand episodes are some hundred megabytes of JSON lines and some ten megabytes of columns; only the columns
are ever in memory.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import realpath
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from agents.common.intervals import CONFIDENCE, Array
from agents.episode import Episode
from agents.turn import eaten_up
from benchmark.errors import UsageError, unknown_name
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import MANIFEST_NAME, Manifest, Price
from benchmark.runs.plan import Plan, protocol_of
from benchmark.runs.record import Key, error_reason, key_of, paid_tokens
from benchmark.score.luck import Corrected, FolderLuck, LuckValues, SeedLuck, ToldLuck, corrected
from benchmark.score.move_losses import FolderLosses, MoveLosses, folder_losses
from benchmark.score.protocols import with_labels
from benchmark.score.ratings import Game
from benchmark.score.stopping import confidence_of
from textgames.scenarios import Scenario

COLUMNS = (
    *("seed", "score", "success", "invalid", "responses", "length"),
    *("prompt_tokens", "completion_tokens", "seconds", "seat"),
    *("cut_off", "refused", "forfeited"),
)

REFUSED = ("refusal", "content_filter")
"""The finish reasons of responses that a server says are the model's refusal, or a filter's."""

UNKNOWN = float("nan")

START, SKILL, LUCK, VARIANCE = range(4)
"""The columns of :attr:`benchmark.score.results.Cell.luck`."""

CONTROLLED_LIMIT = 500
"""The most episodes whose luck is told by a heuristic, which takes about a millisecond a step."""

Values = Sequence[float] | Array

LUCK_LIMIT = 2000
"""The most episodes of one agent in one scenario that are played again for their luck: more have narrow intervals."""


@dataclass
class Cell:
    """What one agent did in one scenario: a row of numbers per scored episode (and seat, if it has several)."""

    planned: int = 0  # episodes that were to be played
    # ``{name: values}`` for the names in :data:`COLUMNS`
    columns: dict[str, "array[float]"] = field(default_factory=lambda: {name: array("d") for name in COLUMNS})
    # ``{name: values}`` of the games' metrics, as long as the columns; NaN if a row has none of that name
    metrics: dict[str, "array[float]"] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)  # reasons of the unscored episodes
    reasons: Counter[str] = field(default_factory=Counter)  # reasons of the invalid responses
    # tokens that weren't answered from the response cache, unscored episodes included: of prompts, of completions, and
    # of the prompts those that the provider had in its own cache
    paid_tokens: list[int] = field(default_factory=lambda: [0, 0, 0])
    # episodes in which a server said that this model, with this fingerprint, had answered
    served_by: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)  # episodes in which a server refused this parameter
    eaten_up: int = 0  # responses that are empty, since reasoning took all tokens
    # asks for the luck of the episodes, which is computed only if it is wanted; None if there is none
    ask_luck: Callable[[], SeedLuck | None] | None = field(default=None, compare=False)
    confidence: float = CONFIDENCE  # the level of its intervals; higher where the run looked several times
    # what is derived from the columns, once they are all read
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

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
        """Return the scored episodes of some seeds alone; this cell where these are all of its own."""
        rows = np.flatnonzero(np.isin(self.columns["seed"], seeds))
        if len(rows) == self.episodes:
            return self
        columns = {name: array("d", np.array(values)[rows]) for name, values in self.columns.items()}
        return Cell(len(rows), columns, ask_luck=self.ask_luck, confidence=self.confidence)

    def returns(self) -> tuple[Array, Array]:
        """Return the seeds of the scored episodes in order, and the mean return on each over games and seats."""
        if "returns" not in self.memo:  # asked for in every comparison
            self.memo["returns"] = per_seed(self.columns["seed"], self.columns["score"])
        found: tuple[Array, Array] = self.memo["returns"]
        return found

    @cached_property
    def luck(self) -> Array | None:
        """The luck of the scored episodes in the order of their seeds, shape (episodes, 4).

        Columns are those of :class:`benchmark.score.luck.EpisodeLuck`; ``None`` if the game offers none.
        """
        if self.ask_luck is None or self.episodes > LUCK_LIMIT:
            return None
        known = self.ask_luck()
        seeds = sorted({int(seed) for seed in self.columns["seed"]})
        if known is None or not seeds or not all(seed in known for seed in seeds):
            return None
        return np.array([known[seed] for seed in seeds])

    def table(self) -> dict[str, Array]:
        """Return the columns as arrays with a row for every seed, in order; see :func:`per_seed`."""
        if "table" not in self.memo:  # the scores of a scenario, of a suite and over all need the same one
            self.memo["table"] = dict(zip(self.columns, columns_per_seed(self.columns), strict=True))
        found: dict[str, Array] = self.memo["table"]
        return found

    def add_metrics(self, metrics: Mapping[str, float]) -> None:
        """Note the metrics of the last row."""
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


def luck_free(cell: Cell, scenario: Scenario) -> Corrected | None:
    """Return the corrected returns in the order of seeds; ``None`` if scores are plain, as without exact values.

    They are worked out once: a board asks for them in every comparison. In a game without chance they are the returns
    themselves.
    """
    if "luck_free" not in cell.memo:
        values = LuckValues.of(scenario.game())
        told = values is None or values.exact
        cell.memo["luck_free"] = _luck_free(cell, scenario.game().return_range or ()) if told else None
    found: Corrected | None = cell.memo["luck_free"]
    return found


def controlled(cell: Cell, scenario: Scenario) -> Corrected | None:
    """Return the returns with luck taken out as far as a heuristic tells it, in the order of seeds.

    A control variate: the mean is that of the plain returns. ``None`` if there is no such heuristic, the values of
    the game are exact (:func:`luck_free`), or there are too many episodes or too few. What the heuristic promised of a
    start is taken out of nothing: its mean over starts isn't known.
    """
    if "controlled" not in cell.memo:
        values = LuckValues.of(scenario.game())
        offered = values is not None and not values.exact and cell.episodes <= CONTROLLED_LIMIT
        cell.memo["controlled"] = _luck_free(cell, ()) if offered else None
    found: Corrected | None = cell.memo["controlled"]
    return found


def _luck_free(cell: Cell, possible: Sequence[float]) -> Corrected | None:
    luck = cell.luck
    if luck is None:
        return None
    returns = cell.returns()[1]
    if not luck[:, VARIANCE].any():
        ends = [*returns.tolist(), *possible]
        return Corrected(returns, (min(ends), max(ends)) if possible else None, beta=None, sd_ratio=None)
    return corrected(returns, luck[:, START], luck[:, LUCK], possible)


def corrected_returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """Return the seeds in their order, and the luck-free return on each if there are any, else the plain one."""
    seeds, returns = cell.returns()
    free = luck_free(cell, scenario)
    return seeds, returns if free is None else free.values


@dataclass
class ResultColumns:
    """What several sources hold together."""

    sources: list[tuple[Path, Manifest]] = field(default_factory=list)  # ``(path, manifest)`` of each
    # whether everything that each was to hold was played and scored
    source_complete: list[bool] = field(default_factory=list)
    names: list[dict[str, str]] = field(default_factory=list)  # ``{name in the source: name here}`` of each source
    scenarios: dict[str, Scenario] = field(default_factory=dict)  # by name, in the order of first appearance
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)  # ``{name: its card in the manifest}``
    agent_source: dict[str, int] = field(default_factory=dict)  # ``{name: index into sources}``
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # ``{(agent, scenario): Cell}``
    games: dict[str, list[Game]] = field(default_factory=dict)  # ``{scenario: games}`` of those for several players
    # ``{scenario: (least, most)}`` of the sum of all players' returns: equal where one's gain is the others' loss
    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    # ``(scenario, seed, byte offset)`` of every episode of each source, in the order in which they were read
    places: list[list[tuple[str, int, int]]] = field(default_factory=list)
    played: int = 0  # episodes read, unscored ones included
    planned: int = 0  # episodes that the sources were to hold
    losses: dict[str, MoveLosses | None] = field(default_factory=dict)  # ``{scenario: what tells the value lost}``
    # ``{scenario: what tells its losses}`` of each source, for games of two that have exact values
    source_losses: list[dict[str, FolderLosses]] = field(default_factory=list)
    # the games that are in ``games``: two agents' entries both hold the games that they played together
    rated: set[Key] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """Whether every agent played and scored everything that was planned for it."""
        return all(cell.complete for cell in self.cells.values())

    def cell(self, agent: str, scenario: str) -> Cell:
        """Return the cell of an agent in a scenario, a new one if there is none yet."""
        key = agent, scenario
        if key not in self.cells:
            self.cells[key] = Cell()
        return self.cells[key]

    @property
    def prices(self) -> dict[str, Price]:
        """``{agent: {"input": USD per million tokens, "output": ...}}`` where a source states them."""
        prices: dict[str, Price] = {}
        for name, index in self.agent_source.items():
            manifest = self.sources[index][1]
            stated = manifest.get("prices", {}).get(self.agents[name]["name"])
            if stated:
                prices[name] = stated
        return prices


def expand_sources(paths: Iterable[str | Path]) -> list[Path]:
    """Run folders and entries; a folder of folders stands for all runs and entries right inside it.

    What is named twice, however it is written, is there once: its agents would else stand beside themselves.

    Raises:
        UsageError: a path that isn't any of these, or a folder in it that is a link out of it.
    """
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
    """Read run folders and entries into columns.

    ``paths`` are as :func:`expand_sources` takes them, ``agents`` the names to keep; all when empty. An agent's name
    that a source before has taken gets the folder's name in front. Where the sources were played by several protocols,
    the scenarios of each have names of their own (:mod:`benchmark.score.protocols`). ``told`` is what was
    found of luck in a folder that is read again and again; it is added to.

    Raises:
        UsageError: a path that isn't a run or an entry, two sources that mean different things by a scenario's name, an
            agent that none has, or no episode at all.
    """
    results = ResultColumns()
    folders = [RunFolder.open(path) for path in expand_sources(paths)]
    if len({protocol_of(folder.manifest["settings"]) for folder in folders}) > 1:
        # plain runs come first, so that it is their agents who keep their names
        folders = sorted(map(with_labels, folders), key=lambda folder: "labels" in folder.manifest)
    for folder in folders:
        _add_source(results, folder, frozenset(agents), told)
    named = {card["name"] for folder in folders for card in folder.manifest["agents"]}
    if unknown := [name for name in agents if name not in named | results.agents.keys()]:
        raise unknown_name("agent in these results", unknown[0], named)
    if not results.cells:
        raise UsageError(f"no episodes to show in {', '.join(str(path) for path in paths) or 'nothing'}")
    return results


def _rename_clashes(results: ResultColumns, path: Path, manifest: Manifest) -> dict[str, str]:
    """Return ``{name in the source: name in the results}``, with the folder's name in front of names that are taken."""
    renamed = {}
    for card in manifest["agents"]:
        name = card["name"] if card["name"] not in results.agents else f"{path.resolve().name}/{card['name']}"
        while name in results.agents:
            name += "'"  # the same folder name in two places
        renamed[card["name"]] = name
    return renamed


def _add_source(results: ResultColumns, folder: RunFolder, keep: frozenset[str], told: ToldLuck | None) -> None:
    plan = Plan.from_manifest(folder.manifest)
    luck = FolderLuck(folder, told)
    renamed = _rename_clashes(results, folder.path, folder.manifest)
    source = len(results.sources)
    wanted = {name for name in renamed if not keep or name in keep or renamed[name] in keep}
    for card in folder.manifest["agents"]:
        if card["name"] in wanted:
            results.agents[renamed[card["name"]]] = card
            results.agent_source[renamed[card["name"]]] = source
    for name, scenario in plan.scenarios.items():
        known = results.scenarios.setdefault(name, scenario)
        if known._replace(training=False) != scenario._replace(training=False):
            raise UsageError(
                f"{folder.path} defines another scenario under the name {name!r} than the sources before it"
            )
    for matchup, seeds in plan.seeds.items():
        for agent in matchup.agents:
            if agent in wanted:
                cell = results.cell(renamed[agent], matchup.scenario)
                cell.planned += len(seeds)
                cell.confidence = confidence_of(folder.manifest["settings"], folder.manifest.get("extended", ()))
                if len(matchup.agents) == 1:
                    cell.ask_luck = luck.lookup(agent, plan.scenarios[matchup.scenario])
    results.names.append({name: renamed[name] for name in renamed if name in wanted})
    scored = 0
    losses = _losses_of(results, plan, folder)
    results.source_losses.append(losses)
    results.places.append([])
    for offset, record in folder.located_records():
        results.played += 1
        results.places[-1].append((intern(record.scenario), record.seed, offset))
        scored += record.error is None
        _add_game(results, record, renamed)
        if record.scenario in losses:
            losses[record.scenario].add_to(record)
        for player, agent in record.agents.items():
            if agent in wanted:
                add_to_cell(results.cell(renamed[agent], record.scenario), record, player)
    for one in losses.values():
        one.keep()
    results.planned += plan.total
    results.source_complete.append(scored >= plan.total)
    folder.path = folder.path.absolute()  # wherever the program goes, its results are read on from where they are
    results.sources.append((folder.path, folder.manifest))


def _losses_of(results: ResultColumns, plan: Plan, folder: RunFolder) -> dict[str, FolderLosses]:
    """Return what tells the value lost per move in the scenarios of a folder that have exact values."""
    for name, scenario in plan.scenarios.items():
        if name not in results.losses:  # one for all sources, since it solves the game
            results.losses[name] = MoveLosses.of(scenario)
    told = {name: losses for name in plan.scenarios if (losses := results.losses[name]) is not None}
    return folder_losses(told, folder)


def _add_game(results: ResultColumns, record: Episode, renamed: Mapping[str, str]) -> None:
    """A game between agents counts for the ratings: the higher return wins."""
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


def add_to_cell(cell: Cell, record: Episode, player: str) -> None:
    """Add one player's part of an episode to its agent's cell."""
    steps = record.steps_of(player)
    answers = [answer for step in steps for answer in step.answers]
    prompt = completion = 0
    for i, paid in enumerate(paid_tokens(record)[player]):
        cell.paid_tokens[i] += paid
    for counter, name in ((cell.served_by, "served_by"), (cell.left_out, "left_out")):
        counter.update(record.measured.get(name, {}).get(player, ()))
    for turn, _ in answers:
        prompt += turn.usage.prompt_tokens
        completion += turn.usage.completion_tokens
        reasoning = turn.usage.reasoning_tokens or turn.reasoning
        cell.eaten_up += eaten_up(turn.finish_reason, turn.response, reasoning)
    if record.error is not None:
        cell.errors[error_reason(record.error)] += 1
        return
    invalid = [unreadable for _, unreadable in answers if unreadable is not None]
    cell.reasons.update(invalid)
    row = (
        record.seed,
        record.returns[player],
        record.successes[player],
        len(invalid),
        len(answers),
        len(steps),
        prompt,
        completion,
        record.measured.get("seconds", 0.0),
        list(record.agents).index(player),
        sum(turn.finish_reason == "length" for turn, _ in answers),
        sum(turn.finish_reason in REFUSED for turn, _ in answers),
        bool(steps) and not steps[-1].action,  # nothing was executed: the response ended the player's episode
    )
    for name, value in zip(COLUMNS, row, strict=True):
        cell.columns[name].append(value)
    cell.add_metrics(record.metrics.get(player, {}))
