"""Models of the recipes' real shapes with random weights, and a tokenizer for them: nothing is downloaded."""

from typing import Any

import numpy as np
import torch
from recipe_cost import SHAPES, Shape

from agents import Prompt, PromptMap, TurnRequest, as_text
from agents.msgrpo import MSGRPOConfig
from agents.tiny import Recipe
from textgames import SCENARIOS

SMALL = Shape(layers=2, hidden=64, intermediate=128, heads=4, kv_heads=2, vocabulary=2048)
SMALL_FOR_VLLM = Shape(layers=2, hidden=128, intermediate=256, heads=4, kv_heads=2, vocabulary=2048)
_TOKENIZER_SIZE = 2000


def shape_of(config: MSGRPOConfig, *, small: bool) -> Shape:
    """Return the shape of a recipe's model; ``small`` puts a tiny one in place of those that need a GPU."""
    if config.model in SHAPES:
        return SMALL if small else SHAPES[config.model]
    # what stands in runs/ was made by python -m research.reproduction.tiny --quick, or on smollm2, which needs no GPU
    if config.model in ("tiny-quick", "tiny-legal", "smollm2-lake-start") or config.model.startswith("runs/"):
        made = Recipe.legal_play(config.scenarios) if config.model == "tiny-legal" else Recipe.quick()
        return Shape(made.layers, made.hidden_size, made.intermediate_size, made.heads, made.kv_heads, SMALL.vocabulary)
    raise ValueError(f"no shape is known for model = {config.model!r}; known: {', '.join((*SHAPES, 'tiny-quick'))}")


def random_model(shape: Shape, dtype: torch.dtype, device: torch.device, *, context: int = 32_768) -> Any:
    """Return a Qwen2 of that shape; seeded."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=context,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        bos_token_id=None,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model: Any = Qwen2ForCausalLM._from_config(config, dtype=dtype)
    return model.eval()


def word_tokenizer(prompts: list[Prompt]) -> Any:
    """Byte pairs learnt from these prompts: about a token a word, as in the tokenizers of large models."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_TOKENIZER_SIZE,
        special_tokens=["<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([as_text(prompt) for prompt in prompts], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


def frozen_lake_prompts(count: int) -> list[Prompt]:
    """Return a prompt for each map, all different."""
    game, prompt_map = SCENARIOS["frozen-lake"].game(), PromptMap.from_file("without-clock")
    rules, prompts, seed = game.instructions("player_0"), dict[Prompt, None](), 0
    while len(prompts) < count:
        state = game.initial_state(np.random.default_rng(seed))
        prompts[prompt_map(TurnRequest(game.observe(state, "player_0"), rules, game.actions))] = None
        seed += 1
    return list(prompts)
