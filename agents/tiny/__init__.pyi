from .demonstrator import Demonstrator, StyleShares
from .imitation import Pretrained, pretrain
from .legal import legal_play
from .recipe import Recipe
from .saving import save

__all__ = [
    "Demonstrator",
    "Pretrained",
    "Recipe",
    "StyleShares",
    "legal_play",
    "pretrain",
    "save",
]
