from .tables.beside import BoardTable, Scored
from .tables.figures import Column, Figure, agent_figure, estimate_figure, number
from .training_data import EVALUATED, RecordedDecision, Source, preferences

__all__ = [
    "EVALUATED",
    "BoardTable",
    "Column",
    "Figure",
    "RecordedDecision",
    "Scored",
    "Source",
    "agent_figure",
    "estimate_figure",
    "number",
    "preferences",
]
