"""Where rollouts are sampled from."""
