"""What Gathering and Cleanup share: players with a heading on a map of cells, apples, beams, and social statistics.

``board`` is the map and what can be reached on it; ``state`` is what a round changes, with the numbers that the
literature compares such games by; ``text`` is what players read; ``game`` is the round itself.
"""
