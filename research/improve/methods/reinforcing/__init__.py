"""Improvers that end in MS-GRPO, from preferences (mixed) or from a document (internalise)."""
