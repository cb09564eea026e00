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
    """A place inside an episode from which another one is begun: rules are pure, so any visited state can be one."""

    state: Any  #: the game's state, as a :class:`Step` has it
    elapsed_steps: int = 0  #: rounds that were played before it, which count towards the step limit
    rounds: int | None = None  #: how many are played before the episode is left, truncated. ``None``: to its end.


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One episode to play: which game, from which seeds."""

    scenario: str  #: what results call it: a scenario's name or the environment id
    env_id: str  #: the environment's id, ``"TextSnake-v0"``
    seed: int  #: drives the layout (unless ``layout_seed`` is given), the transitions and the sampling noise
    layout_seed: int | None = None  #: fixes the initial state alone (the groups of MS-GRPO)
    kwargs: Mapping[str, Any] = field(default_factory=dict)  #: the environment's keyword arguments
    noise: tuple[int, ...] = ()  #: more entropy for sampling alone; transitions stay the seed's
    start: EpisodeStart | None = None  #: where the episode begins, in place of an initial state that the seeds decide
    retries: int = 0  #: how many more answers a player may give to a decision when the one before couldn't be read
    moves_listed: bool = True  #: whether prompts may list the legal moves
    team: tuple[str, ...] = ()  #: names of the agents by seat, if several teams play; else empty
    observe: str = "text"  #: what the players are shown: ``"text"``, ``"image"`` or ``"both"``
    chance_seed: int | None = None  #: drives the transitions in place of ``seed``, for episodes that share their chance

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

        ``protocol`` and ``moves`` are as :mod:`agents.protocol` has them; by default the scenario's. A ValueError names
        an unknown scenario, id or protocol, or a wrong seed.
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
        invalid_action, retries, observe = read_protocol(protocol or STANDARD["protocol"])
        if chosen or invalid_action != INVALID_ACTION:
            kwargs["invalid_action"] = invalid_action
        elif protocol:  # a scenario's usual one yields to its settings, and not to what the id was registered with
            kwargs.setdefault("invalid_action", invalid_action)
        settings = {**kwargs, **settings}
        listed = moves != "unlisted"
        return cls(name, env_id, int(seed), layout_seed, settings, noise, None, retries, listed, observe=observe)


@dataclass(slots=True, unsafe_hash=True)  # nothing may change it; but a frozen one takes four times as long to make
class Step:
    """One player's part of one round."""

    index: int  #: the round, from 0
    player: str  #: who acted
    observation: str  #: what it read before acting
    turn: Turn  #: what it answered, and what the model tells about it
    action: str  #: the name of the action that was executed (for an invalid response, the one put in its place)
    valid: bool  #: whether the response named a legal action
    unreadable: str | None  #: the reason why it didn't (a value of ``textgames.UnreadableReason``), or ``None``
    reward: float  #: paid until its next decision, penalties included; the first has what was paid before, too
    state: Any = None  #: the game's state before the round, in episodes that were just played; records don't keep it
    steps_left: int | None = None  #: rounds until truncation, this one included; ``None`` without, and in records
    refused: tuple[Refused, ...] = ()  #: answers before ``turn`` that couldn't be read (``retry``)
    out: bool = False  #: whether the game ended the player's own episode; false in records
    bought: int | None = None  #: answers of a second player that a learner inside another had; ``None`` without one

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
    """Gives every reward to the latest decision of its player, or the first; ``returns`` are the sums by player."""

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
    """One episode of all players: as it was played, as a line of a run's file, and played again."""

    scenario: str  #: the name of the scenario (or the environment id)
    seed: int  #: the episode's seed; with the players' responses it determines everything else
    layout_seed: int | None  #: the seed of the initial state if it isn't ``seed``
    agents: dict[str, str]  #: ``{player: agent name}``
    steps: tuple[Step, ...]  #: in the order played; with several players, players in order within a round
    returns: dict[str, float]  #: ``{player: undiscounted sum of its rewards}``, also of a player without a decision
    successes: dict[str, bool]  #: ``{player: whether the game counts the end as a success}``
    terminated: bool  #: the game ended by its own rules
    truncated: bool  #: the game ended by its step limit, or was left; never together with ``terminated``
    error: str | None = None  #: why the episode isn't complete, and unscored (a provider's error), or ``None``
    seconds: float = 0.0  #: wall-clock time from reset to end
    #: ``{player: seconds of a core that its policy took in this process}``, its share of each batch; 0 beside a server
    cpu_seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  #: beyond the return, if any
    end_state: Any = None  #: the game's state after the last round; there as :attr:`Step.state` is
    unplayed: tuple[tuple[str, Turn], ...] = ()  #: answers of a round that an error kept from being played
    team: tuple[str, ...] = ()  #: as the task has it
    observations_digest: str = ""  #: a fingerprint of everything that the players read; there in records
    measured: Mapping[str, Any] = field(default_factory=dict)  #: depends on the machine; in records

    def steps_of(self, player: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.player == player)


def invalid_rate(steps: Sequence[Step]) -> float:
    """Return the share of responses that named no legal action, 0 to 1; 0 if there are none."""
    responses = sum(1 + len(step.refused) for step in steps)
    return sum(len(step.refused) + (not step.valid) for step in steps) / max(1, responses)
