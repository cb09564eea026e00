from .board import AGENT, SCENARIO
from .table import Column, Figure, Scored, Table, agent_figure, estimate, estimate_figure, number, value
from .training_data import EVALUATED, RecordedDecision, Source, preferences

__all__ = [
    "AGENT",
    "EVALUATED",
    "SCENARIO",
    "Column",
    "Figure",
    "RecordedDecision",
    "Scored",
    "Source",
    "Table",
    "agent_figure",
    "estimate",
    "estimate_figure",
    "number",
    "preferences",
    "value",
]
