"""The games of the suite ``planning``: games whose rules and state are known: think ahead."""

from textgames.planning.sokoban_levels import Level, LevelTable, level_table

__all__ = ["Level", "LevelTable", "level_table"]
