"""The update: rows of tokens are packed, scored, turned into a loss and stepped on, in one process or several."""
