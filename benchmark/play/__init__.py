"""Playing a run: options, players, the runner, and what a person sees meanwhile."""
