"""Adapters that ship, in ``weights``; :mod:`agents.models.embedded` finds them."""
