"""Improvers that train on preferences: by DPO, with a judge that learns along, and towards an equilibrium."""
