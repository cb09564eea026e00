from .demonstrator import Demonstrator, StyleShares
from .imitation import Pretrained, pretrain
from .recipe import Recipe
from .saving import save

__all__ = [
    "Demonstrator",
    "Pretrained",
    "Recipe",
    "StyleShares",
    "pretrain",
    "save",
]
