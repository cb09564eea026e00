"""Playing what is left of a plan into its run folder.

``missing seeds -> tasks -> rollout -> episode -> record -> disk``. The loop itself is
:func:`agents.loop.rollout.rollout`; here every episode is written before the next one starts, and the run's limits
(time, money, patience) are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple, Protocol

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import Teams
from agents.loop.rollout import DEFAULT_CONCURRENCY, rollout
from agents.models.served.answers import is_hopeless
from agents.turn import Policy, Turn, is_served
from benchmark.play.agents.players import Players, is_shipped
from benchmark.play.options import RunOptions
from benchmark.play.progress import Display, Meter
from benchmark.runs.answers import AnswersFile
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan
from benchmark.runs.record import Key, error_reason, key_of, paid_tokens, recorded, unscored
from benchmark.runs.unreadable import FIRST_ANSWERS, Unreadable
from benchmark.score.scores import cost

FIRST_EPISODES = 3
"""Episodes of a server's agent that are in flight before its first answer, and failures in a row that end it when the
next request would fail as well."""


class TurnLimit(Protocol):
    """A limit of the caller's, on the use of turns."""

    def count(self, turn: Turn) -> None:
        """Take notice of a turn that was played here; raises :class:`Stopped` if it is one too many."""

    def may_start(self, in_flight: int, finished: int) -> bool:
        """Report whether another episode may start beside those in flight, after so many; the first one may."""


class Limits(NamedTuple):
    """Limits of a run that aren't options of it."""

    turns: TurnLimit | None = None
    beside: float = 0.0  # US dollars that other runs have spent which had one limit with this one
    began: float | None = None  # when the time of the run began, by the monotonic clock; ``None``: with this call
    # asked whether to continue with a model whose first answers can't be read; without it a run continues
    ask: Callable[[str], bool] | None = None


NO_LIMITS = Limits()


class Stopped(Exception):  # noqa: N818 - not an error: a limit that was set has been reached
    """A limit was reached; the message names it."""


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
    """The episodes that one table of agents has to play."""

    seats: Mapping[str, str]  # ``{player: agent}``
    tasks: Iterator[EpisodeTask | None]  # as long as the run's limits allow; ``None`` if they may allow more later
    total: int  # how many they are if nothing stops them
    seconds: float | None  # that they may take


Elsewhere = Callable[[TableWork], Generator[Episode]]
"""Plays a table's episodes in other processes, and yields their records as they arrive."""

Seeds = Mapping[Matchup, Sequence[int]]
Grow = Callable[[Sequence[Matchup]], Seeds]
"""Gives the further seeds of a table's matchups, after all that it had."""


class _Start(NamedTuple):
    """A start that a team has yet to play; the smallest goes first."""

    number: int  # of its scenario's starts
    place: int  # of its scenario
    scenario: str
    seed: int


class _Team:
    """One table of agents: what it has to play, and how that goes."""

    def __init__(self, matchups: Sequence[Matchup], plan: Plan) -> None:
        self.matchups, self.agents = matchups, matchups[0].agents
        # ``{scenario: {player: agent}}``
        self.seats = {
            one.scenario: dict(zip(plan.scenarios[one.scenario].game().players, self.agents, strict=True))
            for one in matchups
        }
        self.waiting: deque[_Start] = deque()
        self.flying: dict[tuple[str, int], _Start] = {}  # ``{(scenario, seed): start}`` of the episodes in flight
        self.under_way: dict[tuple[str, int], float] = {}  # US dollars so far of (scenario, seed) in flight
        self.answered = False  # whether any step was played: a wrong key or model doesn't get so far
        self.failures: Counter[str] = Counter()
        self.hopeless = 0  # failures in a row that the next request would meet as well
        self.any_scored = self.gave_up = False

    def wait(self, plan: Plan, seeds: Seeds) -> None:
        own = [(place, one, seed) for place, one in enumerate(self.matchups) for seed in seeds.get(one, ())]
        self.waiting = deque(sorted(_Start(seed - plan.seeds[m][0], place, m.scenario, seed) for place, m, seed in own))


@dataclass
class PlanRun:
    """Plays every episode of a plan that a folder has no scored record of."""

    plan: Plan
    folder: RunFolder  # of the records, open for writing
    players: Players  # each of which is made when its turn comes
    options: RunOptions
    meter: Meter
    display: Display
    answers: AnswersFile
    grow: Grow | None = None  # asked after all episodes of a table for further ones; nothing ends its turn
    elsewhere: Elsewhere | None = None  # plays in place of this process, which then makes no agents
    limits: Limits = NO_LIMITS  # besides those among the options
    _policies: dict[str, Policy] = field(default_factory=dict, init=False)
    _teams: dict[tuple[str, ...], _Team] = field(default_factory=dict, init=False)  # that play now, in one rollout
    _in_flight: int = field(default=0, init=False)
    # the answers of models of which none could be read so far
    _heard: dict[str, Unreadable] = field(default_factory=dict, init=False)
    _given_up: list[str] = field(default_factory=list, init=False)

    def play(self) -> Incomplete | None:
        """Play all that is missing; return ``None`` when everything was played, scored or not, else why it wasn't.

        Agents whose models are behind servers play together, start by start, so that whatever stops the run leaves each
        of them about as many episodes of the same starts. Scripted players come before them, and models of this process
        one after the other behind them, as not all may fit into memory. An agent for which nothing works stops alone.
        """
        limit, began = self.options.run_timeout, monotonic() if self.limits.began is None else self.limits.began
        deadline = None if limit is None else began + limit
        scored = self.folder.scored()
        missing = {
            matchup: [seed for seed in seeds if Key(*matchup, seed) not in scored]
            for matchup, seeds in self.plan.seeds.items()
        }
        try:
            for group in self._groups():
                seeds: Seeds = {matchup: missing[matchup] for matchups in group for matchup in matchups}
                if not any(seeds.values()):
                    seeds = self._grown(group)
                if any(seeds.values()):
                    self._seat(group)
                while any(seeds.values()):
                    self._play_group(seeds, deadline)
                    seeds = self._grown([team.matchups for team in self._teams.values() if not team.gave_up])
        except Stopped as stop:
            return Incomplete("; ".join([*self._given_up, str(stop)]), isinstance(stop, _MoneySpent))
        return Incomplete("; ".join(self._given_up), for_money=False) if self._given_up else None

    def _groups(self) -> list[list[list[Matchup]]]:
        """Sort the tables into groups that are played one after the other."""
        tables: dict[Any, list[Matchup]] = {}
        for one in self.plan.seeds:
            # a worker of a cluster has the players of one table, by their seats
            seats = None if self.elsewhere is None else self.plan.scenarios[one.scenario].game().players
            tables.setdefault((one.agents, seats), []).append(one)
        if self.elsewhere is not None:
            return [[table] for table in tables.values()]
        scripted, served, local = list[list[Matchup]](), list[list[Matchup]](), list[list[Matchup]]()
        for table in tables.values():
            agents = set(table[0].agents)
            if agents & self.players.served:
                served.append(table)
            else:
                (scripted if agents <= self.players.scripted else local).append(table)
        return [*([table] for table in scripted), *([served] if served else []), *([table] for table in local)]

    def _grown(self, group: Sequence[Sequence[Matchup]]) -> Seeds:
        if self.grow is None:
            return {}
        return {matchup: seeds for matchups in group for matchup, seeds in self.grow(matchups).items()}

    def _seat(self, group: Sequence[Sequence[Matchup]]) -> None:
        names = dict.fromkeys(name for matchups in group for name in matchups[0].agents)
        for name in self._policies.keys() - names.keys():
            del self._policies[name]  # one model in memory at a time
        if self.elsewhere is None:
            for name in names:
                if name not in self._policies:
                    self._policies[name] = self.players.load(name)
        self._teams = {matchups[0].agents: _Team(matchups, self.plan) for matchups in group}
        # Models in this process are asked for a batch of as many. Servers are asked as fast as they take it, whatever
        # is in flight here; but with a limit on money or turns, few should be on their way when it is reached.
        unlimited = self.options.max_cost is None and self.limits.turns is None
        finds_its_pace = unlimited and bool(self._policies) and all(map(is_served, self._policies.values()))
        self._in_flight = self.options.max_concurrency or (256 if finds_its_pace else DEFAULT_CONCURRENCY)
        self._heard = {
            card["name"]: Unreadable(card["name"])
            for card in self.folder.manifest["agents"]
            if card["name"] in self._policies and card["kind"] != "scripted" and not is_shipped(card["spec"])
        }

    def _play_group(self, seeds: Seeds, deadline: float | None) -> None:
        """Play these seeds at the tables that are seated; raises :class:`Stopped` when a limit is reached."""
        for team in self._teams.values():
            if not team.gave_up:
                team.wait(self.plan, seeds)
        while (first := self._next()) is not None:  # what is in flight may cost less than it was feared to
            seconds = None if deadline is None else max(0.001, deadline - monotonic())
            total = sum(len(team.waiting) for team in self._teams.values())
            work = TableWork(first.seats[first.waiting[0].scenario], self._tasks(), total, seconds)
            records = self._play_here(work) if self.elsewhere is None else self.elsewhere(work)
            try:
                with closing(records):
                    for record in records:
                        if self.elsewhere is not None:  # the cost is known when the record arrives
                            for player, tokens in paid_tokens(record).items():
                                self.meter.count_tokens(record.agents[player], *tokens)
                        self._keep(record)
                        self._stop_above_budget()
            except TimeoutError:
                raise Stopped(f"the run's time is up (--run-timeout {self.options.run_timeout:g})") from None
            except _Mute as mute:
                for team in self._teams.values():  # those in flight are cancelled, and wait again
                    team.waiting = deque(sorted([*team.flying.values(), *team.waiting]))
                    team.flying.clear()
                    team.under_way.clear()
                del self._heard[mute.seen.agent]
                if self.limits.ask is not None and not self.limits.ask(f"{mute}. Play on?"):
                    self._given_up.append(str(mute))
                    self._give_up([mute.seen.agent])
            except _MoneySpent:
                break
        if any(team.waiting or (team.flying and not team.gave_up) for team in self._teams.values()):
            # said here, where all that was in flight is counted
            limit, spent = self.limits.beside + (self.options.max_cost or 0.0), self.limits.beside + self.meter.spent
            raise _MoneySpent(
                f"the money is used up: {spent:.4f} USD spent of --max-cost {limit:g}; resume with a larger --max-cost"
            ) from None

    def _play_here(self, work: TableWork) -> Generator[Episode]:
        policies = Teams({agents: [self._policies[name] for name in agents] for agents in self._teams})
        episodes = rollout(
            policies,
            work.tasks,
            max_concurrency=self._in_flight,
            timeout=work.seconds,
            on_step=self._on_step,
            answers=self.answers,
        )
        try:
            for episode in episodes:
                seats = self._teams[episode.team].seats[episode.scenario]
                for player, turn in episode.unplayed:  # of a round that no step tells of
                    self._count(seats[player], turn)
                # in results an agent has the name that the user gave it; two agents can share a model's name
                yield recorded(episode, seats)
        finally:
            getattr(episodes, "close", lambda: None)()

    def _tasks(self) -> Iterator[EpisodeTask | None]:
        """Yield the tasks, each when there is money for another episode."""
        resample = self.folder.manifest["settings"].get("resample")
        while any(team.waiting for team in self._teams.values()):
            if (team := self._next()) is None:
                yield None
                continue
            start = team.waiting.popleft()
            team.flying[start.scenario, start.seed] = start
            noise = () if resample is None else (resample,)
            task = EpisodeTask.of(self.plan.scenarios[start.scenario], start.seed, noise=noise)
            yield replace(task, team=team.agents)

    def _next(self) -> _Team | None:
        """Return the table whose start comes first of those that may begin one now."""
        able = [team for team in self._teams.values() if team.waiting and self._may_start(team)]
        return min(able, key=lambda team: team.waiting[0][:2], default=None)

    def _may_start(self, team: _Team) -> bool:
        """Report whether a table may begin another episode, and what is left reaches for those in flight and one more.

        Each is taken to cost the mean of the kept episodes, or what the dearest one in flight has cost already: short
        ones finish first, and their mean promises too much. For the same reason no more are in flight than are kept,
        and one. Until a server has answered at all, a few requests find out whether it does.
        """
        served = any(is_served(self._policies[name]) for name in team.agents if name in self._policies)
        if served and not team.answered and len(team.flying) >= FIRST_EPISODES:
            return False
        in_flight = sum(len(one.flying) for one in self._teams.values())
        if self.limits.turns is not None and not self.limits.turns.may_start(in_flight, self.meter.finished):
            return False
        if self.options.max_cost is None:
            return True
        left = self.options.max_cost - self.meter.spent
        for one in self._teams.values():
            left -= len(one.flying) * max((self.meter.mean_cost(one.matchups)[1], *one.under_way.values()))
        kept, mean = self.meter.mean_cost(team.matchups)
        free = not any(map(self._costs, team.agents))
        return len(team.flying) <= kept and max((mean, *team.under_way.values())) <= left and (free or left > 0)

    def _costs(self, name: str) -> bool:
        return bool(cost((1, 1), self.meter.prices.get(name)))

    def _on_step(self, task: EpisodeTask, step: Step) -> None:
        team, key = self._teams[task.team], (task.scenario, task.seed)
        name = team.seats[task.scenario][step.player]
        team.answered = True
        for turn in step.turns:
            team.under_way[key] = team.under_way.get(key, 0.0) + self._count(name, turn)
        if self.limits.ask is not None and (heard := self._heard.get(name)) is not None:
            for answer in step.answers:
                heard.add(*answer)
            if heard.causes.total() < heard.answers:
                del self._heard[name]
            elif heard.answers >= FIRST_ANSWERS:  # before all of them are paid for
                raise _Mute(heard)
        self._stop_above_budget()

    def _count(self, name: str, turn: Turn) -> float:
        """Count a turn and return its US dollars; raises :class:`Stopped` if money is limited and the cost unknown."""
        paid = turn.paid
        tokens = paid.prompt_tokens, paid.completion_tokens, paid.cached_prompt_tokens
        if turn.uncounted and self.options.max_cost is not None and self._costs(name):
            raise Stopped(
                f"the server of {name!r} doesn't say how many tokens an answer took, so --max-cost can't be kept: make "
                "it tell (usage in its answers), or play without --max-cost"
            )
        if paid[:2] != (0, 0) and not self.answers.was_recalled(turn):
            self.meter.count_tokens(name, *tokens)
        if self.limits.turns is not None:
            self.limits.turns.count(turn)
        return cost(tokens, self.meter.prices.get(name)) or 0.0

    def _stop_above_budget(self) -> None:
        if self.options.max_cost is not None and self.meter.spent > self.options.max_cost:
            raise _MoneySpent

    def _keep(self, record: Episode) -> None:
        team = self._teams[tuple(record.agents.values())]
        played = record.scenario, record.seed
        team.flying.pop(played, None)
        team.under_way.pop(played, None)
        try:
            self.folder.append(record)
        except ValueError as error:  # figures beyond anything real, from a server or a game
            record = unscored(record, str(error))
            self.folder.append(record)
        self.answers.close_episode(key_of(record), scored=record.error is None)
        self.meter.count_kept(record)
        self.meter.count_episode(record)
        self.display.update()
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
        self._given_up.append(f"{failed}: {reason}")
        # who is at fault isn't known when several agents sit at a table
        self._give_up(set(team.agents) if len(set(team.agents)) == 1 else (), team)

    def _give_up(self, agents: Collection[str], team: _Team | None = None) -> None:
        for one in self._teams.values():
            if one is team or not set(agents).isdisjoint(one.agents):
                one.gave_up = True
                one.waiting.clear()
