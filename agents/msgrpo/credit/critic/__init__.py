"""Methods that need a critic's values."""
