"""Improvers that let a language model write programs: a player, or the rules that a planner plays by."""
