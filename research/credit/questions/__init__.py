"""What else an exact gradient decides in hours: staleness, group size at equal tokens, and the format penalty.

``textbench reproduce --config credit-questions``: each question is a table of the recipe (:mod:`plan`). :mod:`measures`
are the figures of one policy, :mod:`work` does the jobs, :mod:`answers`, :mod:`section` and
:mod:`pictures` say what came of them.
"""
