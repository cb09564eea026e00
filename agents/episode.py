"""One episode as data: what is to be played (`EpisodeTask`), and what the loop yields of it (`Step`, `Episode`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.protocol import STANDARD, check_moves, read_protocol
from agents.turn import Refused, Turn
from textgames.settings import check_whole

if TYPE_CHECKING:
    from textgames.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """A place inside an episode from which another one is begun: rules are pure, so any visited state can be one.

    Attributes:
        state: the game's state, as a :class:`Step` has it.
        elapsed_steps: rounds that were played before it, which count towards the step limit.
        rounds: how many are played before the episode is left, truncated. ``None``: to its end.
    """

    state: Any
    elapsed_steps: int = 0
    rounds: int | None = None


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One episode to play: which game, from which seeds.

    Attributes:
        scenario: what results call it: a scenario's name or the environment id.
        env_id: the environment's id, ``"TextSnake-v0"``.
        kwargs: the environment's keyword arguments.
        seed: drives the layout (unless ``layout_seed`` is given), the transitions and the sampling noise.
        layout_seed: fixes the initial state alone, for tasks that start alike and differ in transitions and in sampling
            noise (the groups of MS-GRPO).
        noise: more entropy for sampling alone, for repeated plays of one seed; the transitions stay the seed's.
        start: where the episode begins, in place of an initial state that the seeds decide.
        retries: how many more answers a player may give to a decision when the one before couldn't be read.
        moves_listed: whether prompts may list the legal moves.
        team: the names of the agents that play, by seat, if several teams play in one rollout; else empty.
    """

    scenario: str
    env_id: str
    seed: int
    layout_seed: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    noise: tuple[int, ...] = ()
    start: EpisodeStart | None = None
    retries: int = 0
    moves_listed: bool = True
    team: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        scenario: "Scenario | str",
        seed: int,
        *,
        layout_seed: int | None = None,
        noise: tuple[int, ...] = (),
        protocol: str | None = None,
        moves: str | None = None,
        **settings: Any,
    ) -> "EpisodeTask":
        """Make the task of a scenario (by name or itself) or of a bare environment id; ``settings`` override its own.

        ``protocol`` and ``moves`` are as :mod:`agents.protocol` has them; those of the scenario when not given, else
        ``"random"`` and ``"listed"``.

        Raises:
            ValueError: neither a scenario nor a registered id, no such protocol, or a seed that isn't a whole number.
        """
        import textgames
        from textgames.environments.rules import INVALID_ACTION

        chosen = protocol is not None
        check_whole("seed", seed, 0, None)
        if layout_seed is not None:
            check_whole("layout_seed", layout_seed, 0, None)
        if isinstance(scenario, str):
            scenario = textgames.known_scenario(scenario) or scenario
        if isinstance(scenario, str):
            if ":" not in scenario and scenario not in textgames.registered_ids():
                raise ValueError(
                    f"unknown scenario {scenario!r}; {textgames.why_unknown(scenario, textgames.registered_ids())}"
                )
            name, env_id, kwargs = scenario, scenario, {}
        else:
            name, env_id, kwargs = scenario.name, scenario.env_id, scenario.settings(**settings)
            protocol, moves = protocol or scenario.protocol, moves or scenario.moves
        check_moves(moves or "listed")
        invalid_action, retries = read_protocol(protocol or STANDARD["protocol"])
        if chosen or invalid_action != INVALID_ACTION:
            kwargs["invalid_action"] = invalid_action
        elif protocol:  # a scenario's usual one yields to its settings, and not to what the id was registered with
            kwargs.setdefault("invalid_action", invalid_action)
        listed = moves != "unlisted"
        return cls(name, env_id, int(seed), layout_seed, {**kwargs, **settings}, noise, None, retries, listed)


@dataclass(slots=True, unsafe_hash=True)  # nothing may change it; but a frozen one takes four times as long to make
class Step:
    """One player's part of one round.

    Attributes:
        index: the round, from 0.
        player: who acted.
        observation: what it read before acting.
        turn: what it answered, and what the model tells about it.
        action: the name of the action that was executed (for an invalid response, the one put in its place).
        valid: whether the response named a legal action.
        unreadable: the reason why it didn't (a value of ``textgames.UnreadableReason``), or ``None``.
        reward: what the player was paid from this decision to its next one, the format penalty included; for its first
            decision also what it was paid before. They sum to its return. (Until the episode is over, a step knows only
            of its own round.)
        state: the game's state before the round, in episodes that were just played; records don't keep it.
        steps_left: rounds until truncation, this one included; ``None`` if there is no limit, and in records.
        refused: the answers before ``turn`` that couldn't be read, if the protocol lets players answer again.
        out: whether the round ended the player's own episode by the rules of the game; unknown, false, in records.
    """

    index: int
    player: str
    observation: str
    turn: Turn
    action: str
    valid: bool
    unreadable: str | None
    reward: float
    state: Any = None
    steps_left: int | None = None
    refused: tuple[Refused, ...] = ()
    out: bool = False

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All answers to this decision; the last one is :attr:`turn`."""
        return (*[each.turn for each in self.refused], self.turn) if self.refused else (self.turn,)

    @property
    def answers(self) -> tuple[tuple[Turn, str | None], ...]:
        """:attr:`turns`, each with the reason why it couldn't be read, or ``None``."""
        last = (self.turn, self.unreadable)
        return (*[(each.turn, each.unreadable) for each in self.refused], last) if self.refused else (last,)


class RewardLedger:
    """Which decision every reward belongs to, and what each player's return is.

    A reward belongs to the player's latest decision, or before its first one to the first one.

    Attributes:
        rewards: of every decision, in the order in which they were entered.
        returns: ``{player: sum of all that it was paid}``.
    """

    def __init__(self, players: Iterable[str]) -> None:
        self.returns = dict.fromkeys(players, 0.0)
        self.rewards: list[float] = []
        self._early = dict.fromkeys(self.returns, 0.0)
        self._latest: dict[str, int] = {}

    def enter(self, deciding: Iterable[str], paid: Mapping[str, float]) -> None:
        """Enter a round: who decided in it, in order, and what all players were paid."""
        for player in deciding:
            self._latest[player] = len(self.rewards)
            self.rewards.append(self._early[player])
            self._early[player] = 0.0
        for player, reward in paid.items():
            self.returns[player] += reward
            if player in self._latest:
                self.rewards[self._latest[player]] += reward
            else:
                self._early[player] += reward


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode of one scenario, of all its players: as it was played, as a line of a run's file, and played again.

    A line (:mod:`benchmark.runs.record`) lacks the states, the observations, and of a turn what only a trainer needs.

    Attributes:
        scenario: the name of the scenario (or the environment id).
        seed: the episode's seed; with the players' responses it determines everything else.
        layout_seed: the seed of the initial state if it isn't ``seed``.
        agents: ``{player: agent name}``.
        steps: in the order played; with several players, players in order within a round.
        returns: ``{player: undiscounted sum of its rewards}``, also of a player without a decision.
        successes: ``{player: whether the game counts the end as a success}``.
        metrics: ``{player: {name: value}}`` of games that tell more than the return; else empty.
        terminated: the game ended by its own rules.
        truncated: the game ended by its step limit, or was left; never together with ``terminated``.
        error: why the episode isn't complete, and unscored (a provider's error), or ``None``.
        seconds: wall-clock time from reset to end.
        end_state: the game's state after the last round; there as :attr:`Step.state` is.
        unplayed: the answers of a round that a provider's error kept from being played, each with its player.
        team: as the task has it.
        observations_digest: a fingerprint of everything that the players read; there in records.
        measured: what depends on the machine, as the line has it; there in records.
    """

    scenario: str
    seed: int
    layout_seed: int | None
    agents: dict[str, str]
    steps: tuple[Step, ...]
    returns: dict[str, float]
    successes: dict[str, bool]
    terminated: bool
    truncated: bool
    error: str | None = None
    seconds: float = 0.0
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    end_state: Any = None
    unplayed: tuple[tuple[str, Turn], ...] = ()
    team: tuple[str, ...] = ()
    observations_digest: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)

    def steps_of(self, player: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.player == player)


def invalid_rate(steps: Sequence[Step]) -> float:
    """Return the share of responses that named no legal action, 0 to 1; 0 if there are none."""
    responses = sum(1 + len(step.refused) for step in steps)
    return sum(len(step.refused) + (not step.valid) for step in steps) / max(1, responses)
