"""What a training is told, and the methods that this names.

Begin at :mod:`agents.msgrpo.configuration.settings`, which documents every setting. ``config`` reads settings from
presets, recipes, files and ``--set``; ``methods`` makes the object of every plug-in point that a config names.
"""
