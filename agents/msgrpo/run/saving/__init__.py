"""What a run keeps on disk, and how it goes on from there.

Begin at :mod:`agents.msgrpo.run.saving.keeper`, which decides what is written when; ``checkpoint`` is the format,
``last_valid`` the state that a run which ends early is saved in. ``claims`` is what a folder names and may not do
unless its user allows it, such as running code.
"""
