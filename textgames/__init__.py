"""Text games for language models."""
