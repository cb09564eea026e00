"""What a table says of a player besides its score: how reliable it is, and at which decisions it loses value."""
