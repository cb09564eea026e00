"""Dynamic programs that a language model writes of descriptions, solved and compared with the true optimum."""
