"""Task samplers."""
