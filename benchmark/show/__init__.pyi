from .tables.beside import BoardTable, Scored
from .tables.figures import Column, Figure, agent_figure, estimate_figure, number

__all__ = [
    "BoardTable",
    "Column",
    "Figure",
    "Scored",
    "agent_figure",
    "estimate_figure",
    "number",
]
