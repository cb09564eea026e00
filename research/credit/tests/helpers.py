"""A model of two thousand weights that answers directly, in float64, and a small slippery lake for it."""

from functools import cache

import numpy as np
import torch

from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from research.credit.instrument.exact.solution import GameGraph, expand
from tests.tiny_models import teach, tiny_llama, word_tokenizer
from textgames.registry import game_of

HORIZON = 3
ACTIONS = ("left", "down", "right", "up")


@cache
def texts() -> PromptTexts:
    default = PromptTexts.default()
    return PromptTexts("", "$instructions", "$observation", {"direct": "Answer:"}, default.no_actions, default.no_limit)


@cache
def _trained():
    """Weights that mostly name an action, and their tokenizer: some steps of imitation of all actions alike."""
    tokenizer = word_tokenizer(("<action>", "</action>", *ACTIONS, *"0123,", "player"), gaps=True)
    model = tiny_llama(
        len(tokenizer), seed=1, hidden=12, layers=1, intermediate_size=16, num_attention_heads=2, num_key_value_heads=1,
        initializer_range=0.3,
    ).double()  # fmt: skip
    graph = lake()
    game, state = graph.game, graph.states[graph.starts[0]]
    request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), ACTIONS)
    prompt = tokenizer(as_text(PromptMap("direct", 0, texts())(request)))["input_ids"]
    ids = torch.tensor([prompt + tokenizer(f"<action>{name}</action>")["input_ids"] for name in ACTIONS])
    teach(model, ids, known=len(prompt), rate=0.03, steps=22)
    return model.config, model.state_dict(), tokenizer


def direct_policy(temperature: float = 1.25) -> LanguageAgentPolicy:
    """A policy of its own weights, the same ones every time."""
    from transformers import LlamaForCausalLM

    config, weights, tokenizer = _trained()
    model = LlamaForCausalLM(config).double().eval()
    model.load_state_dict(weights)
    local = TransformersModel(model, tokenizer, name="direct")
    return LanguageAgentPolicy(local, PromptMap("direct", 0, texts()), Decoding(temperature=temperature, max_tokens=8))


def lake() -> GameGraph:
    """A slippery lake of six cells: each action has up to three outcomes."""
    game = game_of("TextFrozenLake-v0", desc=["SFF", "FHG"], is_slippery=True, grid=False)
    return expand(game, [game.initial_state(np.random.default_rng(0))], HORIZON)
