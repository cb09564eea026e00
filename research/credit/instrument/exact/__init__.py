"""What is true of a policy on a small game: its answers, its values and advantages, and the exact policy gradient."""
