"""Everything that can come of a small game from given states, as flat arrays that are computed with.

``game, starts, horizon -> states, decisions, choices, rounds and outcomes``. A *decision* is a state and a player who
is to move there; its *choices* are the legal actions. A *round* is a state and one choice of everybody who is to move;
what may come of it are its *outcomes*. States don't know the time: with a horizon, what can be reached is kept apart
for every number of steps played.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames.tsmg import TSMG, Action, Player

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_STATES = 20_000
"""The most different states, unless said otherwise: some seconds, and a policy has to be asked in each of them."""


class Decision(NamedTuple):
    """A player who is to move in a state.

    Attributes:
        state: the state's number.
        player: the player's number.
        actions: its legal actions, in order; their choices follow each other from number ``first`` on.
        default: the place among them of the action that an unreadable response executes.
        first: the number of the first choice.
    """

    state: int
    player: int
    actions: tuple[Action, ...]
    default: int
    first: int


@dataclass(frozen=True, eq=False)
class GameGraph:
    """What can be reached from some states within a horizon.

    Attributes:
        game: the rules.
        horizon: rounds after which an episode is cut off; the values there are 0.
        states: the different states in which somebody may have to move, numbered in the order in which they are found.
        number: ``{state: its number}``.
        starts: the numbers of the states that it was expanded from; one for each of those given, so perhaps repeated.
        layers: for every number of steps played, 0 to ``horizon - 1``, the numbers of the states that may be reached.
        decisions: of all states; those of one state follow each other, in the order of the game's players.
        decision_of: ``{(state's number, player's number): decision's number}``.
        choice_decision: (choices,) the decision of every choice.
        round_state: (rounds,) the state of every round; the rounds of a state follow each other.
        round_choices: (rounds, most players that move at once) the choices that make the round, -1 where there is none.
        rewards: (rounds, players) what a round pays on average.
        first_outcome: (rounds + 1,) where the outcomes of a round begin.
        chances: (outcomes,) their probabilities.
        successors: (outcomes,) the next state's number, ``len(states)`` where the game is over.
    """

    game: TSMG[Any]
    horizon: int
    states: tuple[Any, ...]
    number: dict[Hashable, int]
    starts: tuple[int, ...]
    layers: tuple[Indices, ...]
    decisions: tuple[Decision, ...]
    decision_of: dict[tuple[int, int], int]
    choice_decision: Indices
    round_state: Indices
    round_choices: Indices
    rewards: Floats
    first_outcome: Indices
    chances: Floats
    successors: Indices

    @property
    def players(self) -> tuple[Player, ...]:
        return self.game.players


def expand(game: TSMG[Any], starts: Sequence[Hashable], horizon: int, *, max_states: int = MAX_STATES) -> GameGraph:
    """Find all that can be reached from some states, whatever the players do.

    Args:
        game: with ``outcomes``, and legal actions that are listed.
        starts: the states that episodes begin in.
        horizon: rounds after which an episode is cut off.
        max_states: the most different states.

    Raises:
        ValueError: the game doesn't tell its chances or list its actions, or there are more states than that.
    """
    name = type(game).__name__
    if not game.has_outcomes:
        raise ValueError(
            f"{name} doesn't tell its chances, outcomes(state, joint_action), so true advantages can't be computed; "
            "choose a game that does, such as frozen-lake, cliff-walking, sokoban, kuhn-poker or tic-tac-toe"
        )
    if not starts:
        raise ValueError("no state to start from was given")
    if horizon < 1:
        raise ValueError(f"the horizon must be at least 1, got {horizon}")
    builder = _Builder(game, max_states, horizon)
    first = [builder.meet(state) for state in starts]
    layers = []
    frontier = sorted(set(first))
    for _ in range(horizon):
        layers.append(np.array(frontier, dtype=np.intp))
        frontier = sorted({after for state in frontier for after in builder.successors_of(state)})
    return builder.graph(tuple(first), tuple(layers))


@dataclass
class _Builder:
    """Numbers what it meets; a state is expanded when what may follow it is first asked for."""

    game: TSMG[Any]
    max_states: int
    horizon: int
    number: dict[Hashable, int] = field(default_factory=dict)
    states: list[Any] = field(default_factory=list)
    after: dict[int, set[int]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    round_state: list[int] = field(default_factory=list)
    round_choices: list[tuple[int, ...]] = field(default_factory=list)
    rewards: list[tuple[float, ...]] = field(default_factory=list)
    first_outcome: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)

    def meet(self, state: Hashable) -> int:
        number = self.number.get(state)
        if number is None:
            number = self.number[state] = len(self.states)
            self.states.append(state)
            if len(self.states) > self.max_states:
                raise ValueError(
                    f"more than {self.max_states:,} states can be reached within {self.horizon} rounds, too many "
                    "for true advantages; choose a smaller board or fewer rounds (--horizon), or allow more states "
                    "(--max-states)"
                )
        return number

    def successors_of(self, state: int) -> set[int]:
        if state not in self.after:
            self.after[state] = self.expand(state)
        return self.after[state]

    def expand(self, number: int) -> set[int]:
        game, state = self.game, self.states[number]
        decisions = [self.decide(number, state, player) for player in game.to_move(state)]
        found: set[int] = set()
        for places in product(*[range(len(decision.actions)) for decision in decisions]):
            joint = {
                game.players[decision.player]: decision.actions[place]
                for decision, place in zip(decisions, places, strict=True)
            }
            paid = [0.0] * len(game.players)
            self.first_outcome.append(len(self.chances))
            for chance, after, rewards, over in game.outcomes(state, joint):
                for index, player in enumerate(game.players):
                    paid[index] += chance * rewards[player]
                self.chances.append(chance)
                self.successors.append(-1 if over else self.meet(after))
                if not over:
                    found.add(self.successors[-1])
            self.round_state.append(number)
            self.round_choices.append(
                tuple([decision.first + place for decision, place in zip(decisions, places, strict=True)])
            )
            self.rewards.append(tuple(paid))
        return found

    def decide(self, number: int, state: Any, player: Player) -> Decision:
        actions = self.game.legal_actions(state, player)
        if not actions:
            raise ValueError(
                f"the actions of {type(self.game).__name__} can't be listed, so true advantages can't be computed"
            )
        default = actions.index(self.game.default_action(state, player))
        decision = Decision(number, self.game.players.index(player), actions, default, len(self.choices))
        self.choices += [len(self.decisions)] * len(actions)
        self.decisions.append(decision)
        return decision

    def graph(self, starts: tuple[int, ...], layers: tuple[Indices, ...]) -> GameGraph:
        width = max(map(len, self.round_choices))
        padded = [(*row, *[-1] * (width - len(row))) for row in self.round_choices]
        successors = np.array(self.successors, dtype=np.intp)
        successors[successors < 0] = len(self.states)
        return GameGraph(
            game=self.game,
            horizon=self.horizon,
            states=tuple(self.states),
            number=self.number,
            starts=starts,
            layers=layers,
            decisions=tuple(self.decisions),
            decision_of={(each.state, each.player): number for number, each in enumerate(self.decisions)},
            choice_decision=np.array(self.choices, dtype=np.intp),
            round_state=np.array(self.round_state, dtype=np.intp),
            round_choices=np.array(padded, dtype=np.intp),
            rewards=np.array(self.rewards),
            first_outcome=np.array([*self.first_outcome, len(self.chances)], dtype=np.intp),
            chances=np.array(self.chances),
            successors=successors,
        )
