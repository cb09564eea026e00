"""The true values of a policy in a small game: backward induction over what may come, forward over how often it does.

A *decision* is a state and a player who is to move there; its *choices* are the legal actions. States don't know the
time: with a horizon, what can be reached is kept apart for every number of steps played.

With ``h`` steps played, ``a`` the choices of everybody who is to move and ``pi`` the policy in every seat,

``U_h(s, a) = r(s, a) + sum_s' P(s'|s, a) V_{h+1}(s')``, for every player; ``V_H = 0``
``Q_h(s, a_i) = sum over the others' choices of pi(a_-i) U_h(s, a)``, of the player who makes the choice ``a_i``
``V_h(s) = sum_a pi(a) U_h(s, a) - format_penalty * P(invalid)``, ``A_h(s, a_i) = Q_h(s, a_i) - V_h(s)``

An invalid response is a choice of its own: what the environment executes in its place, minus the format penalty.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from textgames import TSMG, Action, InvalidAction, Player
from textgames.solving import END, Floats, Indices, StateSpace

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
    outcome_state = np.repeat(round_state, np.diff(space.first_outcome))
    layers = [np.unique(space.starts)]
    for _ in range(1, horizon):
        here = np.zeros(len(space.numbers), dtype=bool)
        here[layers[-1]] = True
        after = np.unique(space.successors[here[outcome_state]])
        layers.append(after[after != END])
    return GameGraph(
        game=game,
        horizon=horizon,
        space=space,
        layers=tuple(layers),
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


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How a policy plays, at every number of steps played."""

    choices: Floats  # (horizon, choices) the probability of every choice at its decision, given by a valid response
    # (horizon, decisions) the probability of an invalid response. Decisions that can't be reached after so many steps
    # have zeros everywhere
    invalid: Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """The exact values of a behaviour."""

    graph: GameGraph  # of the game
    values: Floats  # (horizon + 1, states + 1, players) the expected return from there on; the last state is the end
    own_values: Floats  # (horizon, decisions) the same for the player who decides
    choice_values: Floats  # (horizon, choices) ``Q`` of every choice, for the player who makes it
    invalid_values: Floats  # (horizon, decisions) ``Q`` of an invalid response
    # (horizon, states) the probability of being in a state after so many steps, from a start drawn evenly
    visits: Floats
    returns: Floats  # (players,) what each player expects at the start: ``J``

    def advantage(self, steps_played: int, decision: int, place: int) -> float:
        """Return ``A`` of the choice at a place of a decision's list of actions; place -1 is an invalid response."""
        if place < 0:
            value = self.invalid_values[steps_played, decision]
        else:
            value = self.choice_values[steps_played, self.graph.decisions[decision].first + place]
        return float(value - self.own_values[steps_played, decision])


def solve(
    graph: GameGraph, behaviour: Behaviour, *, format_penalty: float = 0.0, invalid_action: InvalidAction = "default"
) -> Solution:
    """Compute a behaviour's values, and how often it is where; a ValueError if invalid responses can't be computed."""
    stand_ins = stand_ins_for(graph, invalid_action)
    horizon, players, ends = graph.horizon, len(graph.players), len(graph.states)
    player_of, state_of = graph.player_of, graph.state_of
    values = np.zeros((horizon + 1, ends + 1, players))
    own_values = np.zeros((horizon, len(graph.decisions)))
    choice_values = np.zeros_like(behaviour.choices)
    invalid_values = np.zeros_like(own_values)
    executed = behaviour.choices + stood_in_by(graph, behaviour, stand_ins)
    for step in reversed(range(horizon)):
        rounds = graph.space.round_values(graph.space.rewards, values[step + 1])  # U, (rounds, players)
        np.add.at(values[step], graph.round_state, joint(graph, executed[step])[:, None] * rounds)
        np.add.at(values[step], (state_of, player_of), -format_penalty * behaviour.invalid[step])
        choice_values[step] = _choice_values(graph, executed[step], rounds, player_of)
        stood_in = np.bincount(graph.choice_decision, stand_ins * choice_values[step], len(graph.decisions))
        invalid_values[step] = stood_in - format_penalty
        own_values[step] = values[step, state_of, player_of]
    visits = np.zeros((horizon, len(graph.states)))
    np.add.at(visits[0], list(graph.starts), 1 / len(graph.starts))
    sizes, lasting = np.diff(graph.space.first_outcome), graph.space.successors != END
    for step in range(horizon - 1):
        arriving = np.repeat(visits[step][graph.round_state] * joint(graph, executed[step]), sizes)
        arriving *= graph.space.chances
        visits[step + 1] = np.bincount(graph.space.successors[lasting], arriving[lasting], len(graph.states))
    returns = values[0, list(graph.starts)].mean(axis=0)
    return Solution(graph, values, own_values, choice_values, invalid_values, visits, returns)


def stand_ins_for(graph: GameGraph, invalid_action: InvalidAction) -> Floats:
    """Return (choices,) how probable each choice is as the stand-in of an invalid response; 0 if that ends the
    episode."""
    if invalid_action == "forfeit":
        raise ValueError(
            "what giving up pays isn't computed; accepted as invalid_action: default, random, noop, terminate"
        )
    stand_ins = np.zeros(len(graph.choice_decision))
    if invalid_action == "terminate":
        if len(graph.players) > 1:
            raise ValueError(
                "invalid_action = 'terminate' sends one player of several away, whose values aren't computed; "
                "accepted in games of several players: default, random, noop"
            )
        return stand_ins
    for decision in graph.decisions:
        count = len(decision.actions)
        if invalid_action == "random":
            stand_ins[decision.first : decision.first + count] = 1 / count
        elif invalid_action == "noop":
            if graph.game.noop not in decision.actions:
                raise ValueError("invalid_action = 'noop' needs a game in which doing nothing is always legal")
            stand_ins[decision.first + decision.actions.index(graph.game.noop)] = 1
        else:
            stand_ins[decision.first + decision.default] = 1
    return stand_ins


def stood_in_by(graph: GameGraph, behaviour: Behaviour, stand_ins: Floats) -> Floats:
    """Return (horizon, choices) how probable it is that each choice stands in for an invalid response."""
    return np.asarray(behaviour.invalid[:, graph.choice_decision] * stand_ins)


def joint(graph: GameGraph, executed: Floats, but: int | None = None) -> Floats:
    """Return (rounds,) the probability of every round's choices at its state, leaving one column of players out."""
    probability = np.ones(len(graph.round_state))
    for column in range(graph.round_choices.shape[1]):
        if column != but:
            choices = graph.round_choices[:, column]
            probability *= np.where(choices < 0, 1.0, executed[choices])
    return probability


def _choice_values(graph: GameGraph, executed: Floats, rounds: Floats, player_of: Indices) -> Floats:
    """Return (choices,) ``Q``: what a round pays the player who makes the choice, averaged over the others' choices."""
    found = np.zeros(len(graph.choice_decision))
    for column in range(graph.round_choices.shape[1]):
        choices = graph.round_choices[:, column]
        there = choices >= 0
        paid = rounds[there, player_of[graph.choice_decision[choices[there]]]]
        others = joint(graph, executed, but=column)[there]
        found += np.bincount(choices[there], others * paid, len(found))
    return found
