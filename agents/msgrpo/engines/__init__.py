"""What rollouts are sampled from: the live model, a copy of it, or an engine that is sent new weights."""
