"""A card of published results on Frozen Lake, between blind play and the optimum of each one's own setting."""
