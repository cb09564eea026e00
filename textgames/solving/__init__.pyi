from .blind import blind_play, standard_error
from .equilibrium import Behaviour, exploitability, realisation_plan
from .game_tree import GameTree, expand
from .mirror_descent import descended
from .state_space import END, Floats, Indices, StateSpace
from .value_iteration import ValueIteration

__all__ = [
    "END",
    "Behaviour",
    "Floats",
    "GameTree",
    "Indices",
    "StateSpace",
    "ValueIteration",
    "blind_play",
    "descended",
    "expand",
    "exploitability",
    "realisation_plan",
    "standard_error",
]
