from .board import AGENT, SCENARIO
from .document_of import results_document
from .draw import print_tables
from .page import write_page
from .table import Column, Figure, Scored, Table, agent_figure, estimate, estimate_figure, number, text_table, value
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
    "print_tables",
    "results_document",
    "text_table",
    "value",
    "write_page",
]
