from .prepare import autocast_dtype, prepare_model

__all__ = [
    "autocast_dtype",
    "prepare_model",
]
