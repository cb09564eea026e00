"""Playing what is left of a plan into its run folder.

``missing seeds -> tasks -> rollout -> episode -> record -> disk``. The loop itself is
:func:`agents.loop.rollout.rollout`; here every episode is written before the next one starts, and the run's limits
(time, money, patience) are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple, Protocol

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import Teams
from agents.loop.rollout import DEFAULT_CONCURRENCY, rollout
from agents.models.served.answers import is_hopeless
from agents.turn import Policy, Turn, is_served
from benchmark.play.agents.players import Players, is_shipped
from benchmark.play.progress import Display, Meter
from benchmark.runs.answers import AnswersFile
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan
from benchmark.runs.record import (
    Key,
    error_reason,
    key_of,
    paid_tokens,
    recorded,
    unscored,
)
from benchmark.runs.unreadable import FIRST_ANSWERS, Unreadable
from benchmark.score.scores import cost

FIRST_EPISODES = 3
"""Episodes of a server's agent that are in flight before its first answer, and failures in a row that end it when the
next request would fail as well."""


class TurnLimit(Protocol):
    """A limit of the caller's, on what turns use."""

    def count(self, turn: Turn) -> None:
        """Take notice of a turn that was played here; raises :class:`Stopped` if it is one too many."""

    def may_start(self, in_flight: int, finished: int) -> bool:
        """Return whether another episode may start beside those in flight, after so many; if none are in flight, it
        may."""


@dataclass(frozen=True)
class Limits:
    """How many episodes a run may play at once, and how much time and money it may take."""

    max_concurrency: int | None = None  # episodes in flight; if it is ``None``, see :meth:`in_flight`
    run_timeout: float | None = None  # seconds for this process's playing, or ``None``
    max_cost: float | None = None  # US dollars for the run, earlier processes included, or ``None``
    turns: TurnLimit | None = None
    beside: float = 0.0  # US dollars that other runs have spent which had one limit with this one
    began: float | None = None  # when the time began, by :func:`time.monotonic`, if that was before this run

    def in_flight(self, policies: Iterable[Policy]) -> int:
        """Return episodes in flight of these players, when nobody has said how many.

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


class _Mute(Stopped):
    """Nothing that a model has answered so far can be read."""

    def __init__(self, seen: Unreadable) -> None:
        self.seen = seen
        super().__init__(f"the first {seen.answers} answers of {seen.agent} can't be read: {seen.reason}")


class _MoneySpent(Stopped):
    """The run has cost what it may; the message is made when nothing is in flight any more."""


class Incomplete(NamedTuple):
    """Why not everything was played."""

    reason: str  # half a sentence
    for_money: bool  # whether the money was used up: the same limit would play nothing more


class TableWork(NamedTuple):
    """What one table of agents has to play."""

    seats: Mapping[str, str]  # ``{player: agent}``
    tasks: Iterator[EpisodeTask | None]  # as long as the run's limits allow; ``None`` if they may allow more later
    total: int  # how many they are if nothing stops them
    seconds: float | None  # that they may take


Elsewhere = Callable[[TableWork], Generator[Episode]]
"""Plays a table's episodes in other processes, and yields their records as they arrive."""


Seeds = Mapping[Matchup, Sequence[int]]
Grow = Callable[[Sequence[Matchup]], Seeds]
"""Gives the further seeds of a table's matchups, after all that it had."""


@dataclass(frozen=True)
class PlanRun:
    """What it takes to play every episode of a plan that a folder has no scored record of.

    Attributes:
        plan, folder: what is to be played, and where it goes; the folder is open for writing.
        players: the agents, each of which is made when its turn comes.
        limits: when to stop.
        meter, display: count what is played, and show it.
        answers: keeps what servers answer.
        grow: asked after all episodes of a table's matchups for further seeds of these; nothing ends its turn.
        elsewhere: plays in place of this process, which then only writes; agents aren't made here.
        ask: asked whether to continue with a model whose first answers can't be read; ``None``: continue.
    """

    plan: Plan
    folder: RunFolder
    players: Players
    limits: Limits
    meter: Meter
    display: Display
    answers: AnswersFile
    grow: Grow | None = None
    elsewhere: Elsewhere | None = None
    ask: Callable[[str], bool] | None = None

    def play(self) -> Incomplete | None:
        """Play all that is missing.

        Agents whose models are behind servers play together, start by start, so that whatever stops the run leaves each
        of them about as many episodes of the same starts. Scripted players come before them, and models of this process
        one after the other behind them, as not all may fit into memory.

        Returns:
            ``None`` when everything was played, else why not. Unscored episodes count as played. An agent for which
            nothing works stops alone.

        Raises:
            StorageError: the disk refused; what was finished before is kept.
        """
        limits, grow = self.limits, self.grow
        began = monotonic() if limits.began is None else limits.began
        deadline = None if limits.run_timeout is None else began + limits.run_timeout
        scored = self.folder.scored()
        missing = {
            matchup: [seed for seed in seeds if Key(*matchup, seed) not in scored]
            for matchup, seeds in self.plan.seeds.items()
        }
        policies: dict[str, Policy] = {}
        reasons: list[str] = []
        for_money = False
        try:
            for group in _groups(self.plan, self.players, apart=self.elsewhere is not None):
                seeds: Seeds = {matchup: missing[matchup] for matchups in group for matchup in matchups}
                if not any(seeds.values()) and grow is not None:
                    seeds = _grown(group, grow)
                if not any(seeds.values()):
                    continue
                names = {name for matchups in group for name in matchups[0].agents}
                for name in policies.keys() - names:
                    del policies[name]  # one model in memory at a time
                for name in dict.fromkeys(name for matchups in group for name in matchups[0].agents):
                    if self.elsewhere is None and name not in policies:
                        policies[name] = self.players.load(name)
                playing = _GroupRun(self, group, policies, deadline)
                while any(seeds.values()):
                    playing.play(seeds)
                    seeds = {} if grow is None else _grown(playing.alive, grow)
                reasons += playing.given_up
        except Stopped as stop:
            reasons += [*playing.given_up, str(stop)]
            for_money = isinstance(stop, _MoneySpent)
        return Incomplete("; ".join(reasons), for_money) if reasons else None


def _groups(plan: Plan, players: Players, *, apart: bool) -> list[list[list[Matchup]]]:
    """Sort the tables into groups that are played one after the other; ``apart``: each is a group of its own."""
    if apart:
        return [[team] for team in plan.teams()]
    tables: dict[tuple[str, ...], list[Matchup]] = {}
    for matchup in plan.seeds:
        tables.setdefault(matchup.agents, []).append(matchup)
    teams = [*tables.values()]
    served = [team for team in teams if not players.served.isdisjoint(team[0].agents)]
    others = [team for team in teams if team not in served]
    scripted = [team for team in others if players.scripted.issuperset(team[0].agents)]
    local = [team for team in others if team not in scripted]
    return [*([team] for team in scripted), *([served] if served else []), *([team] for team in local)]


def _grown(group: Sequence[Sequence[Matchup]], grow: Grow) -> Seeds:
    return {matchup: seeds for matchups in group for matchup, seeds in grow(matchups).items()}


class _Start(NamedTuple):
    """A start that a team has yet to play; the smallest goes first."""

    number: int  # of its scenario's starts
    place: int  # of its scenario
    scenario: str
    seed: int


class _Team:
    """One table of agents: what it has to play, and how that goes."""

    def __init__(self, matchups: Sequence[Matchup], players: Mapping[str, Sequence[str]]) -> None:
        self.matchups, self.agents = matchups, matchups[0].agents
        # ``{scenario: {player: agent}}``
        self.seats = {one.scenario: dict(zip(players[one.scenario], self.agents, strict=True)) for one in matchups}
        self.waiting: deque[_Start] = deque()
        self.flying: dict[tuple[str, int], _Start] = {}  # ``{(scenario, seed): start}`` of the episodes in flight
        self.under_way: dict[tuple[str, int], float] = {}  # US dollars so far of (scenario, seed) in flight
        self.answered = False  # whether any step was played: a wrong key or model doesn't get so far
        self.failures: Counter[str] = Counter()
        self.hopeless = 0  # failures in a row that the next request would meet as well
        self.any_scored = self.gave_up = False

    @property
    def in_flight(self) -> int:
        return len(self.flying)

    def put_back(self) -> None:
        """Have the episodes wait again that were in flight and are cancelled."""
        self.waiting = deque(sorted([*self.flying.values(), *self.waiting]))
        self.flying.clear()
        self.under_way.clear()


class _GroupRun:
    """The tables of agents that play together, in one rollout."""

    def __init__(
        self,
        run: PlanRun,
        group: Sequence[Sequence[Matchup]],
        policies: Mapping[str, Policy],
        deadline: float | None,
    ) -> None:
        self._run, self._policies, self._deadline = run, policies, deadline
        players = {
            one.scenario: run.plan.scenarios[one.scenario].game().players for matchups in group for one in matchups
        }
        self._teams = {matchups[0].agents: _Team(matchups, players) for matchups in group}
        # if they are elsewhere, they aren't here to be asked
        names = dict.fromkeys(name for agents in self._teams for name in agents if name in policies)
        self._in_flight = run.limits.in_flight(policies[name] for name in names)
        resample = run.folder.manifest["settings"].get("resample")
        self._noise = () if resample is None else (resample,)
        self.given_up: list[str] = []
        # what can't be read of models nothing of which could be read so far; ``None`` for all others
        cards = {card["name"]: card for card in run.folder.manifest["agents"]}
        self._heard = {
            name: None if cards[name]["kind"] == "scripted" or is_shipped(cards[name]["spec"]) else Unreadable(name)
            for name in names
        }

    @property
    def alive(self) -> list[Sequence[Matchup]]:
        """The matchups of the tables that haven't given up."""
        return [team.matchups for team in self._teams.values() if not team.gave_up]

    def play(self, seeds: Seeds) -> None:
        """Play these seeds; raises :class:`Stopped` when a limit is reached."""
        for team in self._teams.values():
            if team.gave_up:
                continue
            own = [(place, one, seeds.get(one, ())) for place, one in enumerate(team.matchups)]
            starts = (
                _Start(self._number(one, seed), place, one.scenario, seed) for place, one, left in own for seed in left
            )
            team.waiting = deque(sorted(starts))
        while (first := self._next()) is not None:  # what is in flight may cost less than it was feared to
            seconds = None if self._deadline is None else max(0.001, self._deadline - monotonic())
            total = sum(len(team.waiting) for team in self._teams.values())
            work = TableWork(first.seats[first.waiting[0].scenario], self._tasks(), total, seconds)
            records = (
                self._play_here(work)
                if self._run.elsewhere is None
                else self._counted(self._run.elsewhere(work), first)
            )
            try:
                with closing(records):
                    for record in records:
                        self._keep(record)
            except TimeoutError:
                raise Stopped(f"the run's time is up (--run-timeout {self._run.limits.run_timeout:g})") from None
            except _Mute as mute:
                for team in self._teams.values():
                    team.put_back()
                self._heard[mute.seen.agent] = None
                if self._run.ask is not None and not self._run.ask(f"{mute}. Play on?"):
                    self._give_up(str(mute), [mute.seen.agent])
            except _MoneySpent:
                break
        if any(team.waiting or (team.in_flight and not team.gave_up) for team in self._teams.values()):
            raise _MoneySpent(self._budget_message()) from None  # made here, if all that was in flight is counted

    def _number(self, matchup: Matchup, seed: int) -> int:
        return seed - self._run.plan.seeds[matchup][0] if self._run.plan.seeds[matchup] else seed

    def _play_here(self, work: TableWork) -> Generator[Episode]:
        policies = Teams({agents: [self._policies[name] for name in agents] for agents in self._teams})
        episodes = rollout(
            policies,
            work.tasks,
            max_concurrency=self._in_flight,
            timeout=work.seconds,
            on_step=self._on_step,
            answers=self._run.answers,
        )
        try:
            for episode in episodes:
                seats = self._teams[episode.team].seats[episode.scenario]
                for player, turn in episode.unplayed:  # of a round that no step tells of
                    self._count(seats[player], turn)
                # in results an agent has the name that the user gave it; two agents can share a model's name
                yield recorded(episode, seats)
                self._stop_above_budget()
        finally:
            getattr(episodes, "close", lambda: None)()

    def _counted(self, records: Generator[Episode], team: _Team) -> Generator[Episode]:
        """Records from elsewhere; what they cost is known when they arrive."""
        with closing(records):
            for record in records:
                for player, tokens in paid_tokens(record).items():
                    self._run.meter.count_tokens(team.seats[record.scenario][player], *tokens)
                yield replace(record, agents=dict(team.seats[record.scenario]))
                self._stop_above_budget()

    def _tasks(self) -> Iterator[EpisodeTask | None]:
        """Yield the tasks, each when there is money for another episode."""
        while any(team.waiting for team in self._teams.values()):
            if (team := self._next()) is None:
                yield None
                continue
            start = team.waiting.popleft()
            team.flying[start.scenario, start.seed] = start
            scenario = self._run.plan.scenarios[start.scenario]
            yield replace(EpisodeTask.of(scenario, start.seed, noise=self._noise), team=team.agents)

    def _next(self) -> _Team | None:
        """Return the table whose start comes first of those that may begin one now."""
        able = [team for team in self._teams.values() if team.waiting and self._may_start(team)]
        return min(able, key=lambda team: team.waiting[0][:2], default=None)

    def _may_start(self, team: _Team) -> bool:
        """Return whether a table may begin another episode, and what is left reaches for those in flight and one more.

        Each is taken to cost the mean of the kept episodes, or what the dearest one in flight has cost already: short
        ones finish first, and their mean promises too much. For the same reason no more are in flight than are kept,
        and one. Until a server has answered at all, a few requests find out whether it does.
        """
        served = any(is_served(self._policies[name]) for name in team.agents if name in self._policies)
        if served and not team.answered and team.in_flight >= FIRST_EPISODES:
            return False
        in_flight = sum(team.in_flight for team in self._teams.values())
        if self._run.limits.turns is not None and not self._run.limits.turns.may_start(
            in_flight, self._run.meter.finished
        ):
            return False
        if self._run.limits.max_cost is None:
            return True
        kept, mean = self._run.meter.mean_cost(team.matchups)
        left = self._run.limits.max_cost - self._run.meter.spent - sum(map(self._expected, self._teams.values()))
        free = not any(cost((1, 1), self._run.meter.prices.get(name)) for name in team.agents)
        return team.in_flight <= kept and max((mean, *team.under_way.values())) <= left and (free or left > 0)

    def _expected(self, team: _Team) -> float:
        """US dollars that a table's episodes in flight are expected to cost."""
        _, mean = self._run.meter.mean_cost(team.matchups)
        return team.in_flight * max((mean, *team.under_way.values()))

    def _on_step(self, task: EpisodeTask, step: Step) -> None:
        team, key = self._teams[task.team], (task.scenario, task.seed)
        team.answered = True
        for turn in step.turns:
            agent = team.seats[task.scenario][step.player]
            team.under_way[key] = team.under_way.get(key, 0.0) + self._count(agent, turn)
        self._hear(team.seats[task.scenario][step.player], step)
        self._stop_above_budget()

    def _hear(self, name: str, step: Step) -> None:
        """Stop the run when the first answers of a model are all unreadable, before all of them are paid for."""
        if self._run.ask is None or (heard := self._heard.get(name)) is None:
            return
        for answer in step.answers:
            heard.add(*answer)
        if heard.causes.total() < heard.answers:
            self._heard[name] = None
        elif heard.answers >= FIRST_ANSWERS:
            raise _Mute(heard)

    def _count(self, name: str, turn: Turn) -> float:
        """Count a turn of an agent; returns what it cost, in US dollars.

        Raises:
            Stopped: money is limited, and nobody says what the turn cost.
        """
        paid = turn.paid
        tokens = paid.prompt_tokens, paid.completion_tokens, paid.cached_prompt_tokens
        if turn.uncounted and self._run.limits.max_cost is not None and cost((1, 1), self._run.meter.prices.get(name)):
            raise Stopped(
                f"the server of {name!r} doesn't say how many tokens an answer took, so --max-cost can't be kept: make "
                "it tell (usage in its answers), or play without --max-cost"
            )
        if paid[:2] != (0, 0) and not self._run.answers.was_recalled(turn):
            self._run.meter.count_tokens(name, *tokens)
        if self._run.limits.turns is not None:
            self._run.limits.turns.count(turn)
        return cost(tokens, self._run.meter.prices.get(name)) or 0.0

    def _stop_above_budget(self) -> None:
        if self._run.limits.max_cost is not None and self._run.meter.spent > self._run.limits.max_cost:
            raise _MoneySpent

    def _budget_message(self) -> str:
        beside, limit = self._run.limits.beside, self._run.limits.max_cost or 0.0
        return (
            f"the money is used up: {beside + self._run.meter.spent:.4f} USD spent of --max-cost {beside + limit:g}; "
            "resume with a larger --max-cost"
        )

    def _keep(self, record: Episode) -> None:
        team = self._teams[tuple(record.agents.values())]
        played = record.scenario, record.seed
        team.flying.pop(played, None)
        team.under_way.pop(played, None)
        try:
            self._run.folder.append(record)
        except ValueError as error:  # figures beyond anything real, from a server or a game
            record = unscored(record, str(error))
            self._run.folder.append(record)
        self._run.answers.close_episode(key_of(record), scored=record.error is None)
        self._run.meter.count_kept(record)
        matchup = Matchup(record.scenario, team.agents)
        self._run.meter.count_episode(matchup, next(iter(record.returns.values())), record.error)
        self._run.display.update()
        if record.error is None:
            team.any_scored, team.hopeless = True, 0
        elif not team.gave_up:
            self._note_failure(team, error_reason(record.error))

    def _note_failure(self, team: _Team, reason: str) -> None:
        """Have a table of agents give up when nothing works, instead of failing in every episode."""
        team.failures[reason] += 1
        team.hopeless = team.hopeless + 1 if is_hopeless(reason) else 0
        patience = max(20, 2 * min(self._in_flight, 64))
        if team.hopeless >= FIRST_EPISODES:
            failed = f"{team.hopeless} episodes of {', '.join(team.agents)} failed one after the other"
        elif not team.any_scored and team.failures.total() >= patience:
            failed = f"the first {patience} episodes of {', '.join(team.agents)} all failed"
            reason = team.failures.most_common(1)[0][0]
        else:
            return
        # who is at fault isn't known when several agents sit at a table
        self._give_up(f"{failed}: {reason}", set(team.agents) if len(set(team.agents)) == 1 else (), team)

    def _give_up(self, reason: str, agents: Collection[str], team: _Team | None = None) -> None:
        """Play no more episodes of a table, or of agents wherever they sit."""
        self.given_up.append(reason)
        for one in self._teams.values():
            if one is team or not set(agents).isdisjoint(one.agents):
                one.gave_up = True
                one.waiting.clear()
