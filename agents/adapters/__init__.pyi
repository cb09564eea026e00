from .shrinking import shrink

__all__ = ["shrink"]
