"""Adapters that ship, in ``weights``; :mod:`agents.models.adapters` finds them."""
