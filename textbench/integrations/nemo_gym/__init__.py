"""The games as a resources server of NeMo Gym: ``python -m textbench.integrations.nemo_gym SCENARIO --out FOLDER``."""

from textbench.integrations.nemo_gym.server import TextbenchConfig, TextbenchServer

__all__ = ["TextbenchConfig", "TextbenchServer"]
