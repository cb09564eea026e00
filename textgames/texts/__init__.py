"""What games have in common in what players read and write: actions, commands, boards as text."""
