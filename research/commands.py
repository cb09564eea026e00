"""The commands that research adds to ``textbench``, by entry points: each is imported only when it runs."""

from benchmark.cli import Command

CREDIT = Command("research.credit.instrument.cli", "measure methods of credit against the true advantage")
CHECK_CREDIT = Command(
    "research.credit.checker.cli", "check the credit that any trainer assigned, by the rows that it writes"
)
DYNAMIC_PROGRAM = Command(
    "research.improve.dynamic_programs", "count how many described problems a model states exactly as programs"
)
IMPROVE = Command("research.improve.cli", "make a player better, by one of several methods and within a budget")
REPRODUCE = Command("research.reproduction.cli", "reproduce the paper's experiment")
SEASON = Command(
    "research.robustness.seasons.cli", "hold a tournament on seeds that are drawn after its agents are registered"
)
ROBUST = Command(
    "research.robustness.worst_case.cli",
    "compute the worst case of policies if the chances or the reward move a little",
)
