"""One episode while it is being played: what each player is asked next, and what becomes of the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from agents.episode import Episode, EpisodeTask, RewardLedger, Step
from agents.turn import Policy, Refused, Turn, TurnRequest, own_action_help
from textgames.environments.rules import metrics_of
from textgames.tsmg import TSMG, GameError

if TYPE_CHECKING:
    from textgames.environments.parallel import TextParallelEnv

Past = TypeVar("Past")


@dataclass(frozen=True)
class Teams:
    """Several teams in one rollout: a task's :attr:`~agents.episode.EpisodeTask.team` says which of them plays it.

    Attributes:
        policies: ``{team: its policies by seat}``.
    """

    policies: Mapping[tuple[str, ...], Sequence[Policy]]


Policies = Policy | Mapping[str, Policy]
"""Who plays: one policy for all players, or ``{player: policy}``."""


def all_policies(policies: Policies | Teams) -> list[Policy]:
    """Return every policy that plays; one that has several seats may come several times."""
    if isinstance(policies, Teams):
        return [policy for team in policies.policies.values() for policy in team]
    return list(policies.values()) if isinstance(policies, Mapping) else [policies]


class EnvironmentPool:
    """Environments by what they were made from, to play one episode after the other in.

    Building a game costs more than an episode of a scripted player. All environments of one kind have one game object,
    so that a solver, which keeps its tables by game, solves it once. Several threads may use one pool.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: list[tuple[str, Mapping[str, Any], TextParallelEnv, list[TextParallelEnv]]] = []

    def _kind(self, task: EpisodeTask) -> "tuple[TextParallelEnv, list[TextParallelEnv]]":
        """The first environment of a kind that was made, and those of its kind that nobody plays in.

        Settings are compared one by one, as they may hold lists, which aren't keys.
        """
        for env_id, kwargs, first, idle in self._made:
            if env_id == task.env_id and kwargs == task.kwargs:
                return first, idle
        import textgames

        first = textgames.parallel_env(task.env_id, **task.kwargs)
        self._made.append((task.env_id, task.kwargs, first, [first]))
        return self._made[-1][2:]

    def take(self, task: EpisodeTask) -> "TextParallelEnv":
        """An environment for ``task``, in any state; it is the caller's until it is given back."""
        with self._lock:
            first, idle = self._kind(task)
            if idle:
                return idle.pop()
        rules = first.rules._asdict()
        return type(first)(first.game, render_mode=first.render_mode, **rules)

    def give_back(self, task: EpisodeTask, env: "TextParallelEnv") -> None:
        with self._lock:
            self._kind(task)[1].append(env)

    def game_of(self, task: EpisodeTask) -> TSMG[Any]:
        """The rules by which all environments of this kind play."""
        with self._lock:
            return self._kind(task)[0].game


class LiveEpisode:
    """One episode between its reset and its end, in an environment of the pool.

    Raises:
        ValueError: a player without a policy.
    """

    def __init__(self, task: EpisodeTask, policies: Policies | Teams, pool: EnvironmentPool) -> None:
        self.task, self._pool = task, pool
        self._env = env = pool.take(task)
        players = env.possible_agents
        if isinstance(policies, Teams):
            policies = dict(zip(players, policies.policies[task.team], strict=True))
        by_player = policies if isinstance(policies, Mapping) else dict.fromkeys(players, policies)
        if missing := [player for player in players if player not in by_player]:
            raise ValueError(
                f"no policy for {', '.join(missing)} of {task.scenario!r}: policies has "
                f"{', '.join(by_player) or 'nobody'}; give one policy for all players, or one for each"
            )
        self.policies = {player: by_player[player] for player in players}
        self._index = {player: index for index, player in enumerate(players)}
        self._instructions = {player: env.instructions(player) for player in players}
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
        self._refused: dict[str, tuple[Refused, ...]] = {}
        self._started = perf_counter()
        self._reads: dict[str, str] = {}  # what they read who are asked
        try:
            self._begin()
        except Exception as error:
            raise self._fault(error) from error

    def _begin(self) -> None:
        task, env = self.task, self._env
        if task.start is not None:
            self._infos = env.start_at(task.start.state, task.start.elapsed_steps, seed=task.seed)
            self._reads = {player: env.observe(player) for player in env.to_move}
        else:
            options = None if task.layout_seed is None else {"layout_seed": task.layout_seed}
            observations, self._infos = env.reset(seed=task.seed, options=options)
            self._reads = {player: observations[player] for player in env.to_move}

    def _fault(self, error: Exception) -> GameError:
        """What a game's own code raised, as a fault of the game, which is named."""
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
        """The game's state at this moment."""
        return self._env.state()

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was played so far; a step knows only of the reward of its own round."""
        return tuple(self._steps)

    @property
    def over(self) -> bool:
        return self._error is not None or not self._env.agents or self._left

    @property
    def _left(self) -> bool:
        """Whether the episode was to be left after so many rounds as were played."""
        return self.task.start is not None and self._round == self.task.start.rounds

    def refused_of(self, player: str) -> tuple[Refused, ...]:
        """What a player has answered in this round that couldn't be read; it is asked again."""
        return self._refused.get(player, ())

    def requests(self) -> dict[str, TurnRequest]:
        """What everybody is asked who has to answer now, or has to answer again."""
        task, env = self.task, self._env
        limit, game = env.rules.max_steps, env.game
        return {
            player: TurnRequest(
                observation=observation,
                instructions=self._instructions[player],
                legal_actions=self._infos[player]["legal_actions"],
                history=tuple(self._shown(player, self._history[player])),
                history_steps_left=tuple(self._shown(player, self._left_then[player])),
                player=player,
                steps_left=None if limit is None else limit - env.elapsed_steps,
                game=game,
                seed=(task.seed, *task.noise, self._round, self._index[player], *self._attempt(player)),
                action_help=own_action_help(game, env.state(), player, self._infos[player]["legal_actions"]),
                sample_action=None
                if self._infos[player]["legal_actions"]
                else partial(game.sample_action, env.state(), player),
                refused=self.refused_of(player),
                moves_listed=task.moves_listed,
            )
            for player, observation in self._reads.items()
            if player not in self._accepted
        }

    def _attempt(self, player: str) -> tuple[int, ...]:
        """What tells the seed of another answer from that of the first."""
        return (len(self._refused[player]),) if player in self._refused else ()

    def _shown(self, player: str, past: list[Past]) -> list[Past]:
        """The last of a player's turns, as many as its policy reads."""
        turns: int | None = getattr(self.policies[player], "history_turns", 0)
        return past if turns is None else past[-turns:] if turns else []

    def play(self, turns: Mapping[str, Turn]) -> tuple[Step, ...]:
        """Play one round with the answers of everybody who was asked, and return its steps.

        Where an answer can't be read and its player may answer again, no round is played yet, and there are no steps:
        :meth:`requests` has who is still asked.

        A provider's error ends the episode where it stands: nothing is executed in place of a response that there
        isn't.
        """
        for player, turn in turns.items():
            if turn.error is not None:
                self._error = f"round {self._round}, {player} ({self.policies[player].name}): {turn.error}"
                refused = [(who, each.turn) for who, those in self._refused.items() for each in those]
                self._unplayed = [*refused, *self._accepted.items(), *turns.items()]
                return ()
        if self.task.retries and not self._all_accepted(turns):
            return ()
        turns = {player: self._accepted.get(player) or turns[player] for player in self._reads}
        env = self._env
        state, limit = env.state(), env.rules.max_steps
        steps_left = None if limit is None else limit - env.elapsed_steps
        try:
            rewards, _, truncations, infos = env.play({player: turn.response for player, turn in turns.items()})
            reads = {player: env.observe(player) for player in env.to_move}
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
                    reward=float(rewards[player]),
                    state=state,
                    steps_left=steps_left,
                    refused=self.refused_of(player),
                )
            )
        self._accepted, self._refused = {}, {}
        self._ledger.enter(turns, {player: float(reward) for player, reward in rewards.items()})
        for player, info in infos.items():
            self._successes[player] = bool(info["success"])
        self._steps += steps
        self._truncated = any(truncations.values())
        self._infos = infos
        self._reads = reads
        self._round += 1
        self._truncated = self._truncated or (self._left and bool(env.agents))
        return tuple(steps)

    def _all_accepted(self, turns: Mapping[str, Turn]) -> bool:
        """Sort out whose answer stands; whether nobody has to answer again."""
        game, state = self._env.game, self._env.state()
        for player, turn in turns.items():
            refused = self.refused_of(player)
            if len(refused) == self.task.retries or game.interpret(turn.response, state, player) is not None:
                self._accepted[player] = turn
            else:
                reason = str(game.why_invalid(turn.response, state, player).reason)
                self._refused[player] = (*refused, Refused(turn, reason))
        return len(self._accepted) == len(self._reads)

    def finish(self) -> Episode:
        metrics = {} if self._error is not None else final_metrics(self._env)
        self._pool.give_back(self.task, self._env)
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
            metrics=metrics,
            end_state=self._env.state(),
            unplayed=tuple(self._unplayed),
            team=self.task.team,
        )


def final_metrics(env: "TextParallelEnv") -> dict[str, dict[str, float]]:
    """``{player: {name: value}}`` in an environment's last state; empty for games without metrics."""
    game, state = env.game, env.state()
    return {player: told for player in env.possible_agents if (told := metrics_of(game, state, player))}
