"""One episode while it is being played: asking its players, which may be a user's own, and what their answers do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import iscoroutine
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agents.episode import Episode, EpisodeTask, RewardLedger, Step
from agents.turn import Policy, Refused, Turn, TurnRequest, own_action_help
from textgames.environments.render import observed_picture
from textgames.environments.table import Table
from textgames.texts.actions import Unreadable
from textgames.tsmg import GameError

if TYPE_CHECKING:
    from textgames.environments.parallel import TextParallelEnv

Past = TypeVar("Past")


class AnswerStore(Protocol):
    """Keeps the answers of players behind servers when they arrive, so that no decision is asked and paid for twice."""

    def recall(self, task: EpisodeTask, request: TurnRequest) -> Turn | None:
        """Return the answer that an earlier process got to a decision of an episode; ``None`` if there is none."""

    def keep(self, task: EpisodeTask, request: TurnRequest, turn: Turn) -> None:
        """Keep an answer that has just arrived."""


def ask(policy: Policy, requests: Sequence[TurnRequest]) -> Sequence[Turn]:
    """Ask a policy for one turn a request; a TypeError or a RuntimeError says how it answered and what is accepted."""
    turns: Any = policy.act(requests)
    if iscoroutine(turns):
        turns.close()
    if isinstance(turns, str) or not isinstance(turns, Sequence):
        raise TypeError(
            f"{policy.name}.act returned a {type(turns).__name__}; accepted: a list, an agents.Turn(response) for each "
            "request; for asynchronous answers define async def act_async(request) beside act; it returns one Turn"
        )
    if len(turns) != len(requests):
        raise RuntimeError(f"{policy.name} returned {len(turns)} turns for {len(requests)} requests")
    for turn in turns:
        check_turn(policy, turn)
    return turns


def check_turn(policy: Policy, turn: Any) -> None:
    """Raise a TypeError for anything but a turn with a response; it names the player and what is accepted."""
    if not isinstance(turn, Turn) or not isinstance(turn.response, str):
        got = f"Turn({turn.response!r})" if isinstance(turn, Turn) else f"a {type(turn).__name__}"
        raise TypeError(f"{policy.name} returned {got}; accepted: agents.Turn(response) for every request, with a text")


@dataclass(frozen=True)
class Teams:
    """Several teams in one rollout: a task's :attr:`~agents.episode.EpisodeTask.team` says which of them plays it."""

    policies: Mapping[tuple[str, ...], Sequence[Policy]]  #: ``{team: its policies by seat}``


Policies = Policy | Mapping[str, Policy] | Teams
"""The players: one policy for all players, ``{player: policy}``, or several teams."""


def all_policies(policies: Policies) -> list[Policy]:
    """List every policy that plays; one that has several seats may come several times."""
    if isinstance(policies, Teams):
        return [policy for team in policies.policies.values() for policy in team]
    return list(policies.values()) if isinstance(policies, Mapping) else [policies]


MOST_KEPT = 1024
"""Environments that a process keeps."""

_lock = Lock()
_kept: dict[str, tuple[Mapping[str, Any], "TextParallelEnv"]] = {}


def environment_of(task: EpisodeTask) -> "TextParallelEnv":
    """Return the environment whose game and rules a task is played by: the same one for equal settings.

    Building a game costs more than an episode of a scripted player, and a solver keeps its tables by game.
    """
    import textgames

    settings = {**textgames.settings_of(task.env_id), **task.kwargs}
    key = f"{task.env_id} {settings!r}"  # lists among the settings can't be keys
    with _lock:
        known = _kept.get(key)
        if known is None or known[0] != settings:  # a game may have been registered again
            _kept[key] = known = settings, textgames.parallel_env(task.env_id, **task.kwargs)
            if len(_kept) > MOST_KEPT:
                del _kept[next(iter(_kept))]
        return known[1]


class LiveEpisode:
    """One episode between its reset and its end; a ValueError for a player without a policy."""

    def __init__(self, task: EpisodeTask, policies: Policies) -> None:
        env = environment_of(task)
        self.task, self._table, game = task, Table(env.game, env.rules), env.game
        players = game.players
        if isinstance(policies, Teams):
            policies = dict(zip(players, policies.policies[task.team], strict=True))
        by_player = policies if isinstance(policies, Mapping) else dict.fromkeys(players, policies)
        if missing := [player for player in players if player not in by_player]:
            raise ValueError(
                f"no policy for {', '.join(missing)} of {task.scenario!r}: policies has "
                f"{', '.join(by_player) or 'none'}; give one policy for all players, or one for each"
            )
        self.policies = {player: by_player[player] for player in players}
        self._index = {player: index for index, player in enumerate(players)}
        self._instructions = {player: game.instructions(player) for player in players}
        self._history: dict[str, list[tuple[str, str]]] = {player: [] for player in players}
        self._left_then: dict[str, list[int | None]] = {player: [] for player in players}
        self._steps: list[Step] = []
        self._ledger = RewardLedger(players)
        self._successes = dict.fromkeys(players, False)
        self._truncated = False
        self._error: str | None = None
        self._unplayed: list[tuple[str, Turn]] = []
        self._round = 0
        self._accepted: dict[str, Turn] = {}  # of this round; the others are still asked
        self._read: dict[str, str | Unreadable] = {}  # what the game has read in them
        self._refused: dict[str, tuple[Refused, ...]] = {}
        self._started, self.cpu_seconds = perf_counter(), dict.fromkeys(players, 0.0)
        chance = task.seed if task.chance_seed is None else task.chance_seed
        try:
            if task.start is not None:
                self._table.resume(task.start.state, task.start.elapsed_steps, chance)
            else:
                self._table.reset(chance, task.layout_seed)
            self._reads = self._observed()  # what the players read that are asked
        except Exception as error:
            raise self._fault(error) from error

    def _observed(self) -> dict[str, str]:
        return {player: self._table.observe(player) for player in self._table.asked}

    def _fault(self, error: Exception) -> GameError:
        """Blame the game, by its name, for what its own code raised."""
        what = str(error) if isinstance(error, GameError) else f"{type(error).__name__}: {error}"
        return GameError(
            f"the game {self.task.scenario} failed: {what}; textgames.conformance.check({self.task.env_id!r}) says "
            "what a game has to do"
        )

    @property
    def returns(self) -> Mapping[str, float]:
        """``{player: what it was paid so far}``."""
        return self._ledger.returns

    @property
    def state(self) -> Any:
        return self._table.state

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was played so far; a step knows only of the reward of its own round."""
        return tuple(self._steps)

    @property
    def over(self) -> bool:
        return self._error is not None or not self._table.agents or self._left

    @property
    def _left(self) -> bool:
        """Whether the episode was to be left after so many rounds as were played."""
        return self.task.start is not None and self._round == self.task.start.rounds

    def refused_of(self, player: str) -> tuple[Refused, ...]:
        """Return the answers of a player in this round that couldn't be read; it is asked again."""
        return self._refused.get(player, ())

    def requests(self) -> dict[str, TurnRequest]:
        """Return the request of each player that has to answer now, or has to answer again."""
        task, game, state = self.task, self._table.game, self._table.state
        steps_left = self._table.steps_left
        legal = {player: self._table.legal_actions(player) for player in self._reads}
        attempts = {player: (len(refused),) for player, refused in self._refused.items()}
        return {
            player: TurnRequest(
                observation=observation,
                instructions=self._instructions[player],
                legal_actions=legal[player],
                history=tuple(self._shown(player, self._history[player])),
                history_steps_left=tuple(self._shown(player, self._left_then[player])),
                player=player,
                steps_left=steps_left,
                game=game,
                # another answer to one decision has another seed
                seed=(task.seed, *task.noise, self._round, self._index[player], *attempts.get(player, ())),
                action_help=own_action_help(game, state, player, legal[player]),
                sample_action=None if legal[player] else partial(game.sample_action, state, player),
                refused=self.refused_of(player),
                moves_listed=task.moves_listed,
                picture=b"" if task.observe == "text" else observed_picture(game, state, player),
                reads_text=task.observe != "image",
            )
            for player, observation in self._reads.items()
            if player not in self._accepted
        }

    def _shown(self, player: str, past: list[Past]) -> list[Past]:
        """Return the last of a player's turns, as many as its policy reads."""
        turns: int | None = getattr(self.policies[player], "history_turns", 0)
        return past if turns is None else past[-turns:] if turns else []

    def play(self, turns: Mapping[str, Turn]) -> tuple[Step, ...]:
        """Play one round with the answers of all players that were asked, and return its steps.

        If an answer can't be read and its player may answer again, no round is played yet, and there are no steps:
        :meth:`requests` has the players that are still asked. A provider's error ends the episode as it stands.
        """
        for player, turn in turns.items():
            if turn.error is not None:
                self._error = f"round {self._round}, {player} ({self.policies[player].name}): {turn.error}"
                before = [(who, each.turn) for who, those in self._refused.items() for each in those]
                self._unplayed = [*before, *self._accepted.items(), *turns.items()]
                return ()
        if self.task.retries:
            for player, turn in turns.items():
                refused = self.refused_of(player)
                understood = self._table.game.read(turn.response, self._table.state, player)
                if isinstance(understood, Unreadable) and len(refused) < self.task.retries:
                    self._refused[player] = (*refused, Refused(turn, str(understood.reason)))
                else:
                    self._accepted[player], self._read[player] = turn, understood
            if len(self._accepted) < len(self._reads):
                return ()
        turns = {player: self._accepted.get(player) or turns[player] for player in self._reads}
        state, steps_left = self._table.state, self._table.steps_left
        responses = {player: turn.response for player, turn in turns.items()}
        try:
            accepted = self._read if self.task.retries else None
            rewards, terminated, truncated, infos = self._table.play(responses, accepted)
            reads = self._observed()
        except Exception as error:
            raise self._fault(error) from error
        steps = []
        for player, turn in turns.items():
            info, read = infos[player], self._reads[player]
            self._history[player].append((read, turn.response))
            self._left_then[player].append(steps_left)
            steps.append(
                Step(
                    index=self._round,
                    player=player,
                    observation=read,
                    turn=turn,
                    action=info["action"],
                    valid=info["valid"],
                    unreadable=info["unreadable"],
                    reward=rewards[player],
                    state=state,
                    steps_left=steps_left,
                    refused=self.refused_of(player),
                    out=player in terminated,
                )
            )
        self._accepted, self._read, self._refused = {}, {}, {}
        self._ledger.enter(turns, rewards)
        self._successes |= {player: bool(info["success"]) for player, info in infos.items()}
        self._steps += steps
        self._reads = reads
        self._round += 1
        self._truncated = bool(truncated) or (self._left and bool(self._table.agents))
        return tuple(steps)

    def finish(self) -> Episode:
        return Episode(
            scenario=self.task.scenario,
            seed=self.task.seed,
            layout_seed=self.task.layout_seed,
            agents={player: policy.name for player, policy in self.policies.items()},
            steps=tuple(
                step if step.reward == reward else replace(step, reward=reward)
                for step, reward in zip(self._steps, self._ledger.rewards, strict=True)
            ),
            returns=self._ledger.returns,
            successes=self._successes,
            terminated=self._error is None and not self._truncated,
            truncated=self._truncated,
            error=self._error,
            seconds=perf_counter() - self._started,
            cpu_seconds=self.cpu_seconds,
            metrics={} if self._error is not None else self._table.metrics(),
            end_state=self._table.state,
            unplayed=tuple(self._unplayed),
            team=self.task.team,
        )
