"""What else an exact gradient decides in hours: staleness, group size at equal tokens, and the format penalty.

``textbench reproduce --config credit-questions``: each question is a table of the recipe (:mod:`settings`).
:mod:`measures` are the figures of one policy, :mod:`jobs` says what has to be done and :mod:`work` does it;
:mod:`findings`, :mod:`answers`, :mod:`report` and :mod:`pictures` say what came of it, :mod:`command` is the command.
"""
