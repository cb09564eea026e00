"""The commands that research adds to ``textbench``, by entry points: each is imported only when it runs."""

from benchmark.cli import Command

IMPROVE = Command("research.improve.cli", "make a player better, by one of several methods and within a budget")
REPRODUCE = Command("research.reproduce.cli", "reproduce the paper's experiment")
SEASON = Command(
    "research.robustness.seasons.cli", "hold a tournament on seeds that are drawn after its agents are registered"
)
