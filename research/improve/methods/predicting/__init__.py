"""Improvers that learn a model beside the player: the value of its actions, or their consequences."""
