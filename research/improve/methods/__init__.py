"""The ways to make a player better, one file each, and what those share that train weights."""
