"""The commands that research adds to ``textbench``, by entry points: each is imported only when it runs."""

from benchmark.cli import Command

REPRODUCE = Command("research.reproduce.cli", "reproduce the paper's experiment")
SEASON = Command(
    "research.robustness.seasons.cli", "hold a tournament on seeds that are drawn after its agents are registered"
)
