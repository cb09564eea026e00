"""Methods that give all steps of an episode the same advantage."""
