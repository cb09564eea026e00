"""What texts do to a score, as tables of a board: the gap to a game's twins, and the spread between wordings."""
