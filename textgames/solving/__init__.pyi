from .blind import blind_play
from .state_space import END, Floats, Indices, StateSpace

__all__ = [
    "END",
    "Floats",
    "Indices",
    "StateSpace",
    "blind_play",
]
