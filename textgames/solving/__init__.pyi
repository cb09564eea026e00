from .blind import best_constant, blind_play, standard_error
from .equilibrium import Behaviour, exploitability, normalised, realisation_plan, sequence_values
from .game_tree import GameTree, expand
from .state_space import END, Floats, Indices, StateSpace, joint_actions
from .value_iteration import ValueIteration

__all__ = [
    "END",
    "Behaviour",
    "Floats",
    "GameTree",
    "Indices",
    "StateSpace",
    "ValueIteration",
    "best_constant",
    "blind_play",
    "expand",
    "exploitability",
    "joint_actions",
    "normalised",
    "realisation_plan",
    "sequence_values",
    "standard_error",
]
