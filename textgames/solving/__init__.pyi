from .blind import best_constant, blind_play, standard_error
from .equilibrium import Behaviour, exploitability, realisation_plan
from .game_tree import GameTree, expand
from .mirror_descent import descended
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
    "descended",
    "expand",
    "exploitability",
    "joint_actions",
    "realisation_plan",
    "standard_error",
]
