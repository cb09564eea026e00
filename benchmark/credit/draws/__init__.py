"""What draw rules do to the gradient: the comparison of drawn updates, and a study of rules on one policy and game."""
