"""What a training is told, and the methods that this names.

Begin at :mod:`agents.msgrpo.configuration.settings`, where every setting stands with its meaning, declared by the words
of ``fields``. ``config`` reads them from files and ``--set``; ``presets`` are published methods as settings,
``recipes`` the trainings that ship as files. ``methods`` makes the object of every plug-in point that a config names.
"""
