"""The checker of other trainers' credit, ``textbench check-credit``: rows -> formulas and checks -> findings."""
