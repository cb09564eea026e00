"""Solvers that work on any game that tells its outcomes: value iteration, minimax, equilibria of hidden information."""
