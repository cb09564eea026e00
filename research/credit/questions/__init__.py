"""What else an exact gradient decides in hours: staleness, group size at equal tokens, and the format penalty.

``textbench reproduce --config credit-questions``: each question is a table of the recipe (:mod:`settings`).
"""
