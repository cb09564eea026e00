"""The environments of a game: for one player, for several, in batches. All play by the same rules, on one table."""
