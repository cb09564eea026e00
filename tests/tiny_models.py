"""Models and tokenizers as small as they get, which tests make themselves."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch


def word_tokenizer(words: Sequence[str], *, gaps: bool = False) -> Any:
    """Each of ``words`` is one token and every other character, or with ``gaps`` all between two of them, is "?".

    There is no pad token and no chat template.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["<eos>", "?", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokens = [re.escape(word) for word in sorted(words, key=len, reverse=True)] + ["[\\s\\S]"] * (not gaps)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("|".join(tokens)), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")


def byte_level_bpe(texts: Iterable[str], size: int, special: list[str], *, use_regex: bool = True) -> Any:
    """Pairs of bytes merged as they are frequent in ``texts``, for a PreTrainedTokenizerFast."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def tiny_llama(vocabulary: int, *, seed: int = 0, hidden: int = 32, layers: int = 2, **settings: Any) -> Any:
    """A random Llama in float32."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config: dict[str, Any] = {
        "intermediate_size": 2 * hidden, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 4096, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": 0,
    } | settings  # fmt: skip
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers, **config)
    ).eval()


def tiny_gpt2(vocabulary: int, *, seed: int = 0) -> Any:
    """A random GPT-2, whose normalisation layers are in float64 when it is."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": vocabulary, "n_positions": 32}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()


def teach(model: Any, ids: torch.Tensor, *, known: int = 1, rate: float, steps: int, enough: float = 0.0) -> Any:
    """The loss after steps of imitation of rows of tokens, of which the first ``known`` are given."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        logits = model(input_ids=ids[:, :-1]).logits[:, known - 1 :]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, known:].flatten())
        if loss < enough:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss
