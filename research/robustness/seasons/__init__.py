"""Seasons: tournaments whose seeds nobody could have known when the agents were registered.

``new (lock) -> commit (agents) -> reveal (secret -> seeds) -> run, submit -> check``. Everything is a file in one
folder, which its people publish in any way that keeps its history; there is no server.
"""
