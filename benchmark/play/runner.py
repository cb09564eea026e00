"""Playing what is left of a plan into its run folder.

``missing seeds -> tasks -> rollout -> episode -> record -> disk``. The loop itself is
:func:`agents.loop.rollout.rollout`; here every episode is written before the next one starts, and the run's limits
(time, money, patience) are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Protocol

from agents.episode import EpisodeTask, Step
from agents.loop.rollout import DEFAULT_CONCURRENCY, rollout
from agents.turn import Policy, Turn, is_served
from benchmark.play.progress import Display, Meter
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan
from benchmark.runs.record import Key, Record, error_reason, paid_tokens, to_record, unscored
from benchmark.score.scores import cost


class TurnLimit(Protocol):
    """A limit of the caller's, on what turns use."""

    def count(self, turn: Turn) -> None:
        """Take notice of a turn that was played here; raises :class:`Stopped` where it is one too many."""

    def may_start(self, in_flight: int, finished: int) -> bool:
        """Whether another episode may start beside those in flight, after so many; where none are in flight, it may."""


@dataclass(frozen=True)
class Limits:
    """How many episodes a run may play at once, and how much time and money it may take."""

    max_concurrency: int | None = None  # episodes in flight; where it is ``None``, see :meth:`in_flight`
    run_timeout: float | None = None  # seconds for this process's playing, or ``None``
    max_cost: float | None = None  # US dollars for the run, earlier processes included, or ``None``
    turns: TurnLimit | None = None
    beside: float = 0.0  # US dollars that other runs have spent which had one limit with this one
    began: float | None = None  # when the time began, by :func:`time.monotonic`, where that was before this run

    def in_flight(self, policies: Iterable[Policy]) -> int:
        """Episodes in flight of these players, when nobody has said how many.

        Models in this process are asked for a batch of as many. Servers are asked as fast as they take it, whatever is
        in flight here; but with a limit on money or turns, few should be on their way when it is reached.
        """
        if self.max_concurrency is not None:
            return self.max_concurrency
        here = list(policies)
        unlimited = self.max_cost is None and self.turns is None
        finds_its_pace = unlimited and bool(here) and all(map(is_served, here))
        return 256 if finds_its_pace else DEFAULT_CONCURRENCY


class Stopped(Exception):  # noqa: N818 - not an error: a limit that somebody set was reached
    """A limit was reached; the message says which."""


class _MoneySpent(Stopped):
    """The run has cost what it may; the message is made when nothing is in flight any more."""


class GaveUp(Exception):  # noqa: N818 - the other agents' run goes on
    """One agent can't play at all (a wrong key, a server that is down); the message says why."""


class Incomplete(NamedTuple):
    """Why not everything was played."""

    reason: str  # half a sentence
    for_money: bool  # whether the money was used up: the same limit would play nothing more


class TableWork(NamedTuple):
    """What one table of agents has to play."""

    seats: Mapping[str, str]  # ``{player: agent}``
    tasks: Iterator[EpisodeTask | None]  # as long as the run's limits allow; ``None`` where they may allow more later
    total: int  # how many they are if nothing stops them
    seconds: float | None  # that they may take


Elsewhere = Callable[[TableWork], Generator[Record]]
"""Plays a table's episodes in other processes, and yields their records as they arrive."""


def play_plan(
    plan: Plan,
    folder: RunFolder,
    load_policy: Callable[[str], Policy],
    limits: Limits,
    meter: Meter,
    display: Display,
    grow: Callable[[Sequence[Matchup]], Mapping[Matchup, Sequence[int]]] | None = None,
    elsewhere: Elsewhere | None = None,
) -> Incomplete | None:
    """Play every episode of the plan that the folder has no scored record of.

    Args:
        plan, folder: what is to be played, and where it goes; the folder is open for writing.
        load_policy: makes the policy of an agent's name; called when the agent's turn comes.
        limits: when to stop.
        meter, display: count what is played, and show it.
        grow: asked after all episodes of a table's matchups for further seeds of these; nothing ends its turn.
        elsewhere: plays in place of this process, which then only writes; agents aren't made here.

    Returns:
        ``None`` when everything was played, else why not. Unscored episodes count as played. An agent for which
        nothing works stops alone.

    Raises:
        StorageError: the disk refused; what was finished before is kept.
    """
    began = monotonic() if limits.began is None else limits.began
    deadline = None if limits.run_timeout is None else began + limits.run_timeout
    missing = missing_seeds(plan, folder)
    policies: dict[str, Policy] = {}
    reasons: list[str] = []
    for_money = False
    dead: set[str] = set()
    try:
        for matchups in plan.teams():
            team = matchups[0].agents
            if dead.intersection(team):
                continue
            seeds: Mapping[Matchup, Sequence[int]] = {matchup: missing[matchup] for matchup in matchups}
            if not any(seeds.values()) and grow is not None:
                seeds = grow(matchups)
            if not any(seeds.values()):
                continue
            for name in [name for name in policies if name not in team]:
                del policies[name]  # one model in memory at a time
            for name in team if elsewhere is None else ():
                policies.setdefault(name, load_policy(name))
            try:
                while any(seeds.values()):
                    _TeamRun(plan, folder, seeds, policies, limits, meter, display, deadline).play(elsewhere)
                    seeds = {} if grow is None else grow(matchups)
            except GaveUp as failure:
                reasons.append(str(failure))
                if len(set(team)) == 1:  # of two at a table nobody knows whose fault it was
                    dead.update(team)
    except Stopped as stop:
        reasons.append(str(stop))
        for_money = isinstance(stop, _MoneySpent)
    return Incomplete("; ".join(reasons), for_money) if reasons else None


def missing_seeds(plan: Plan, folder: RunFolder) -> dict[Matchup, list[int]]:
    """The planned seeds that have no scored record, in the order in which they are played."""
    scored = {key for key, (_, is_scored) in folder.index().items() if is_scored}
    return {
        matchup: [seed for seed in seeds if Key(*matchup, seed) not in scored] for matchup, seeds in plan.seeds.items()
    }


class _TeamRun:
    """All matchups of one table of agents, in one rollout."""

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        seeds: Mapping[Matchup, Sequence[int]],
        policies: Mapping[str, Policy],
        limits: Limits,
        meter: Meter,
        display: Display,
        deadline: float | None,
    ) -> None:
        self._plan, self._folder, self._seeds, self._policies = plan, folder, seeds, policies
        matchup = next(iter(seeds))
        self._team = matchup.agents
        self._seat = dict(zip(plan.scenarios[matchup.scenario].game().players, self._team, strict=True))
        self._limits, self._meter, self._display, self._deadline = limits, meter, display, deadline
        # where they are elsewhere, they aren't here to be asked
        self._in_flight = limits.in_flight(self._policies[name] for name in self._team if name in self._policies)
        scenarios = {name: plan.scenarios[name] for name, _ in seeds}
        self._waiting = deque((scenarios[matchup.scenario], seed) for matchup, left in seeds.items() for seed in left)
        self._started = self._finished = 0
        self._under_way: dict[tuple[str, int], float] = {}  # US dollars so far of (scenario, seed) in flight
        self._failures: Counter[str] = Counter()
        self._any_scored = False
        resample = folder.manifest["settings"].get("resample")
        self._noise = () if resample is None else (resample,)

    def play(self, elsewhere: Elsewhere | None) -> None:
        while self._waiting and self._affordable():  # what is in flight may cost less than it was feared to
            seconds = None if self._deadline is None else max(0.001, self._deadline - monotonic())
            work = TableWork(self._seat, self._tasks(), len(self._waiting), seconds)
            records = self._play_here(work) if elsewhere is None else self._counted(elsewhere(work))
            try:
                with closing(records):
                    for record in records:
                        self._keep(record)
            except TimeoutError:
                raise Stopped(f"the run's time is up (--run-timeout {self._limits.run_timeout:g})") from None
            except _MoneySpent:
                break
        if self._waiting or self._finished < self._started:
            raise _MoneySpent(self._budget_message()) from None  # made here, where all that was in flight is counted

    def _play_here(self, work: TableWork) -> Generator[Record]:
        policies = {player: self._policies[name] for player, name in work.seats.items()}
        most, seconds = self._in_flight, work.seconds
        episodes = rollout(policies, work.tasks, max_concurrency=most, timeout=seconds, on_step=self._on_step)
        try:
            for episode in episodes:
                for player, turn in episode.unplayed:  # of a round that no step tells of
                    self._count(player, turn)
                yield to_record(episode)
                self._stop_above_budget()
        finally:
            getattr(episodes, "close", lambda: None)()

    def _counted(self, records: Generator[Record]) -> Generator[Record]:
        """Records from elsewhere; what they cost is known when they arrive."""
        with closing(records):
            for record in records:
                for player, tokens in paid_tokens(record).items():
                    self._meter.count_tokens(self._seat[player], *tokens)
                yield record
                self._stop_above_budget()

    def _tasks(self) -> Iterator[EpisodeTask | None]:
        """The tasks, each when there is money for another episode."""
        while self._waiting:
            if not self._affordable():
                yield None
                continue
            scenario, seed = self._waiting.popleft()
            self._started += 1
            yield EpisodeTask.of(scenario, seed, noise=self._noise)

    def _affordable(self) -> bool:
        """Whether what is left reaches for those in flight and one more.

        Each is taken to cost the mean of the kept episodes, or what the dearest one in flight has cost already: short
        ones finish first, and their mean promises too much. For the same reason no more are in flight than are kept,
        and one.
        """
        in_flight = self._started - self._finished
        if self._limits.turns is not None and not self._limits.turns.may_start(in_flight, self._meter.finished):
            return False
        if self._limits.max_cost is None:
            return True
        kept, mean = self._meter.mean_cost(self._seeds)
        each, left = max((mean, *self._under_way.values())), self._limits.max_cost - self._meter.spent
        free = not any(cost((1, 1), self._meter.prices.get(name)) for name in self._team)
        return in_flight <= kept and (in_flight + 1) * each <= left and (free or left > 0)

    def _on_step(self, task: EpisodeTask, step: Step) -> None:
        key = task.scenario, task.seed
        for turn in step.turns:
            self._under_way[key] = self._under_way.get(key, 0.0) + self._count(step.player, turn)
        self._stop_above_budget()

    def _count(self, player: str, turn: Turn) -> float:
        """Count a turn; returns what it cost, in US dollars.

        Raises:
            Stopped: money is limited, and nobody says what the turn cost.
        """
        name, paid = self._seat[player], turn.paid
        tokens = paid.prompt_tokens, paid.completion_tokens, paid.cached_prompt_tokens
        if turn.uncounted and self._limits.max_cost is not None and cost((1, 1), self._meter.prices.get(name)):
            raise Stopped(
                f"the server of {name!r} doesn't say how many tokens an answer took, so --max-cost can't be kept: make "
                "it tell (usage in its answers), or play without --max-cost"
            )
        if paid[:2] != (0, 0):
            self._meter.count_tokens(name, *tokens)
        if self._limits.turns is not None:
            self._limits.turns.count(turn)
        return cost(tokens, self._meter.prices.get(name)) or 0.0

    def _stop_above_budget(self) -> None:
        if self._limits.max_cost is not None and self._meter.spent > self._limits.max_cost:
            raise _MoneySpent

    def _budget_message(self) -> str:
        beside, limit = self._limits.beside, self._limits.max_cost or 0.0
        return (
            f"the money is used up: {beside + self._meter.spent:.4f} USD spent of --max-cost {beside + limit:g}; "
            "go on with a larger --max-cost"
        )

    def _keep(self, record: Record) -> None:
        self._finished += 1
        self._under_way.pop((record["scenario"], record["seed"]), None)
        # In results an agent has the name that the user gave it; two agents can share a model's name.
        record["agents"] = dict(zip(record["agents"], self._team, strict=True))
        try:
            self._folder.append(record)
        except ValueError as error:  # figures beyond anything real, from a server or a game
            record = unscored(record, str(error))
            self._folder.append(record)
        self._meter.count_kept(record)
        matchup = Matchup(record["scenario"], tuple(self._team))
        self._meter.count_episode(matchup, next(iter(record["returns"].values())), record["error"])
        self._display.update()
        if record["error"] is None:
            self._any_scored = True
            return
        # When nothing works at all, stop instead of failing every episode.
        self._failures[error_reason(record["error"])] += 1
        patience = max(20, 2 * min(self._in_flight, 64))
        if not self._any_scored and self._failures.total() >= patience:
            reason = self._failures.most_common(1)[0][0]
            raise GaveUp(f"the first {patience} episodes of {', '.join(self._team)} all failed: {reason}")
