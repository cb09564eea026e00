"""Formulas of advantages: which of them a file has, and which mistake was made on the way."""
