from .local.loading.adapters import save_pretrained
from .local.loading.card import card_of, read_card
from .local.transformers import TransformersModel
from .provider import find_model, model_folder

__all__ = [
    "TransformersModel",
    "card_of",
    "find_model",
    "model_folder",
    "read_card",
    "save_pretrained",
]
