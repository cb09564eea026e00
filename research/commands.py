"""The commands that research adds to ``textbench``, by entry points: each is imported only when it runs."""

from benchmark.cli import Command

REPRODUCE = Command("research.reproduce.cli", "reproduce the paper's experiment")
