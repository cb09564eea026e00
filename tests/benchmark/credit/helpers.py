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
from benchmark.credit.exact.game_graph import GameGraph, expand
from textgames.registry import game_of

HORIZON = 3
ACTIONS = ("left", "down", "right", "up")


def word_tokenizer(words):
    """Each of ``words`` is one token, and so is whatever stands between two of them, as "?": prompts are short."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["<eos>", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    pattern = "|".join(sorted(words, key=len, reverse=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


@cache
def texts() -> PromptTexts:
    default = PromptTexts.default()
    return PromptTexts("", "$instructions", "$observation", {"direct": "Answer:"}, default.no_actions, default.no_limit)


@cache
def _trained():
    """Weights that mostly name an action, and their tokenizer: some steps of imitation of all actions alike."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = word_tokenizer(("<action>", "</action>", *ACTIONS, *"0123,", "player"))
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=12, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=2048, tie_word_embeddings=True, initializer_range=0.3,
        eos_token_id=0, bos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).double()
    graph = lake()
    game, state = graph.game, graph.states[graph.starts[0]]
    request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), ACTIONS)
    prompt = tokenizer(as_text(PromptMap("direct", 0, texts())(request)))["input_ids"]
    ids = torch.tensor([prompt + tokenizer(f"<action>{name}</action>")["input_ids"] for name in ACTIONS])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(22):
        optimizer.zero_grad()
        logits = model(input_ids=ids).logits[:, len(prompt) - 1 : -1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, len(prompt) :].flatten())
        loss.backward()
        optimizer.step()
    return config, model.state_dict(), tokenizer


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
