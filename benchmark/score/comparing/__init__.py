"""Agents beside each other: on the same seeds, in all pairs, in games where they met; what may stand together."""
