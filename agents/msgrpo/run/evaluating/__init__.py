"""How good the model is by now: the fixed episodes of scenarios, played as the benchmark plays them.

Begin at :mod:`agents.msgrpo.run.evaluating.evaluation`. ``evaluator`` is who plays them during a run, ``scale`` what a
figure lies between: the best play that doesn't read, and the best play that is known.
"""
