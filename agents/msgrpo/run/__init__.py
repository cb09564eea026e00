"""A training run on disk and on screen: configuration, checkpoints, progress, evaluation."""
