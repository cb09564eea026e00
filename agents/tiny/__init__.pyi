from .data import Example, demonstrations, scenarios_of
from .demonstrator import Demonstrator, StyleShares
from .imitation import Pretrained, demonstrate, make_model, make_tokenizer, pretrain
from .legal import legal_play
from .recipe import Recipe
from .saving import save
from .sight import Sight, directions_of

__all__ = [
    "Demonstrator",
    "Example",
    "Pretrained",
    "Recipe",
    "Sight",
    "StyleShares",
    "demonstrate",
    "demonstrations",
    "directions_of",
    "legal_play",
    "make_model",
    "make_tokenizer",
    "pretrain",
    "save",
    "scenarios_of",
]
