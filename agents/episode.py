"""One played episode, as data: what the loop yields, the trainer learns from and the benchmark stores."""

from dataclasses import dataclass

from agents.turn import Turn


@dataclass(frozen=True, slots=True)
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
        reward: this round's reward, the format penalty included.
    """

    index: int
    player: str
    observation: str
    turn: Turn
    action: str
    valid: bool
    unreadable: str | None
    reward: float


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode of one scenario, of all its players.

    Attributes:
        scenario: the name of the scenario (or the environment id).
        seed: the episode's seed; with the players' responses it determines everything else.
        layout_seed: the seed of the initial state where it isn't ``seed`` (groups that share an initial state).
        agents: ``{player: agent name}``.
        steps: in the order played; with several players, players in order within a round.
        returns: ``{player: undiscounted sum of its rewards}``.
        successes: ``{player: whether the game counts the end as a success}``.
        terminated: the game ended by its own rules.
        truncated: the game ended by its step limit; never together with ``terminated``.
        error: why the episode isn't complete (a provider's error), or ``None``. Then it is unscored.
        seconds: wall-clock time from reset to end.
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

    def steps_of(self, player: str) -> tuple[Step, ...]:
        """The steps of one player, in order."""
        return tuple(step for step in self.steps if step.player == player)
