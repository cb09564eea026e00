"""Everything that can come of a small game from given states, and what its players are asked on the way.

``game, starts, horizon -> state space -> decisions, choices and layers``. A *decision* is a state and a player who is
to move there; its *choices* are the legal actions. States don't know the time: with a horizon, what can be reached is
kept apart for every number of steps played.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from textgames import TSMG, Action, Player
from textgames.solving import END, Indices, StateSpace

MAX_STATES = 20_000
"""The most different states, unless said otherwise: some seconds, and a policy has to be asked in each of them."""


class NumberedDecision(NamedTuple):
    """A player who is to move in a state."""

    state: int  # the state's number
    player: int  # the player's number
    actions: tuple[Action, ...]  # its legal actions, in order; their choices follow each other from number ``first`` on
    default: int  # the place among them of the action that an unreadable response executes
    first: int  # the number of the first choice


@dataclass(frozen=True, eq=False)
class GameGraph:
    """What can be reached from some states within a horizon."""

    game: TSMG[Any]  # the rules
    horizon: int  # rounds after which an episode is cut off; the values there are 0
    space: StateSpace  # the states, what everybody may do in them, and what comes of it
    # for every number of steps played, 0 to ``horizon - 1``, the numbers of the states that may be reached
    layers: tuple[Indices, ...]
    # of all states; those of one state follow each other, in the order of the game's players
    decisions: tuple[NumberedDecision, ...]
    decision_of: dict[tuple[int, int], int]  # ``{(state's number, player's number): decision's number}``
    choice_decision: Indices  # (choices,) the decision of every choice
    round_state: Indices  # (rounds,) the state of every round; the rounds of a state follow each other
    # (rounds, most players that move at once) the choices that make the round, -1 if there is none
    round_choices: Indices

    @cached_property
    def states(self) -> tuple[Any, ...]:
        return tuple(self.space.numbers)

    @cached_property
    def state_of(self) -> Indices:
        return np.array([each.state for each in self.decisions], dtype=np.intp)

    @cached_property
    def player_of(self) -> Indices:
        return np.array([each.player for each in self.decisions], dtype=np.intp)

    @property
    def starts(self) -> tuple[int, ...]:
        return self.space.starts

    @property
    def players(self) -> tuple[Player, ...]:
        return self.game.players


def expand(game: TSMG[Any], starts: Sequence[Hashable], horizon: int, *, max_states: int = MAX_STATES) -> GameGraph:
    """Find all that can be reached from some states, whatever the players do.

    Raises:
        ValueError: the game doesn't tell its chances or list its actions, or there are more than ``max_states``.
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
    too_many = (
        "too many for true advantages; choose a smaller board or fewer rounds (--max-steps), or allow more states "
        "(--max-states)"
    )
    space = StateSpace.of(game, starts, horizon, max_states, too_many=too_many)
    decisions, rounds = _numbered(game, space)
    sizes = [len(each.actions) for each in decisions]
    width = max(map(len, rounds))
    round_state = np.repeat(np.arange(len(space.decisions)), np.diff(space.first_round))
    return GameGraph(
        game=game,
        horizon=horizon,
        space=space,
        layers=_layers(space, round_state, horizon),
        decisions=tuple(decisions),
        decision_of={(each.state, each.player): number for number, each in enumerate(decisions)},
        choice_decision=np.repeat(np.arange(len(decisions)), sizes),
        round_state=round_state,
        round_choices=np.array([(*row, *[-1] * (width - len(row))) for row in rounds], dtype=np.intp),
    )


def _numbered(game: TSMG[Any], space: StateSpace) -> tuple[list[NumberedDecision], list[tuple[int, ...]]]:
    """Return all decisions with the numbers of their choices, and the choices that make each round."""
    decisions: list[NumberedDecision] = []
    rounds: list[tuple[int, ...]] = []
    choices = 0
    for number, (state, moving) in enumerate(zip(space.numbers, space.decisions, strict=False)):
        here = []
        for player, actions in moving:
            default = actions.index(game.default_action(state, player))
            decisions.append(NumberedDecision(number, game.players.index(player), actions, default, choices))
            here.append(range(choices, choices + len(actions)))
            choices += len(actions)
        rounds += product(*here)
    return decisions, rounds


def _layers(space: StateSpace, round_state: Indices, horizon: int) -> tuple[Indices, ...]:
    """Return the states that may be reached after each number of steps."""
    outcome_state = np.repeat(round_state, np.diff(space.first_outcome))
    layers = [np.unique(space.starts)]
    for _ in range(1, horizon):
        here = np.zeros(len(space.numbers), dtype=bool)
        here[layers[-1]] = True
        after = np.unique(space.successors[here[outcome_state]])
        layers.append(after[after != END])
    return tuple(layers)
