"""A card of published results on Frozen Lake and Sokoban, between blind play and the optimum of their own settings."""
