"""The agents of a run: which there are, which play, and what each is given."""
