"""Players without a language model. Begin at :mod:`agents.baselines.scripted_player`."""
