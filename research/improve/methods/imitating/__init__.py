"""Improvers that imitate text: an expert's, recorded play weighed in several ways, and histories in the prompt."""
