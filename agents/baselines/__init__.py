"""Players without a language model: random, greedy and planning ones, and a person at the terminal."""
