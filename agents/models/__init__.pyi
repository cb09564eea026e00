from .answers import LegalAnswers
from .base import Decoding
from .embedded import embedded_agents
from .local.loading.adapters import base_of, save_pretrained
from .local.loading.card import card_of, read_card, write_card
from .local.loading.load import load_model
from .local.loading.smollm2 import smollm2_file
from .local.transformers import TransformersModel
from .openai import OpenAIModel
from .provider import find_model, model_folder
from .vllm import VLLMModel

__all__ = [
    "Decoding",
    "LegalAnswers",
    "OpenAIModel",
    "TransformersModel",
    "VLLMModel",
    "base_of",
    "card_of",
    "embedded_agents",
    "find_model",
    "load_model",
    "model_folder",
    "read_card",
    "save_pretrained",
    "smollm2_file",
    "write_card",
]
