from .board import AGENT, SCENARIO
from .document_of import results_document
from .draw import stdout_console
from .page import write_page
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
    "results_document",
    "stdout_console",
    "value",
    "write_page",
]
