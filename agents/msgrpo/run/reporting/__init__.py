"""What a run tells while it runs: a table in the terminal, ``metrics.jsonl``, trackers.

Begin at :mod:`agents.msgrpo.run.reporting.progress`. ``trackers`` send metrics to TensorBoard and the like.
"""
