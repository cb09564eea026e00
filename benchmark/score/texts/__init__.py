"""What the text does to a score: the gap to its twins, and the spread between wordings."""
