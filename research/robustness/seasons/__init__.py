"""Seasons: tournaments whose seeds couldn't be known when the agents were registered.

``new (lock) -> commit (agents) -> reveal (secret -> seeds) -> run, submit -> check``. Everything is a file in one
folder, which is published in any way that keeps its history; there is no server.
"""
