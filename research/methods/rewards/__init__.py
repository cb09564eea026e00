"""Reward rules; docs/research/credit/methods.md has their sources and our readings."""
