"""A file beside the truth: its advantages and its gradient beside the exact ones."""
