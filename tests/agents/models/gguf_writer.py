"""Small models in GGUF format, written as llama.cpp's own converter writes them."""

from pathlib import Path
from typing import Any

from gguf import MODEL_ARCH, GGMLQuantizationType, GGUFWriter, get_tensor_name_map
from gguf.quants import quantize
from transformers import LlamaForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode

from tests.tiny_models import tiny_llama

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def small_llama(seed: int = 0, *, tied: bool = True) -> LlamaForCausalLM:
    """A random Llama whose widths are multiples of 32, which quantisation by blocks asks for."""
    own: dict[str, Any] = {"intermediate_size": 96, "initializer_range": 0.4, "bos_token_id": 258, "eos_token_id": 259}
    return tiny_llama(260, seed=seed, hidden=64, tie_word_embeddings=tied, **own)


def write_gguf(file: Path, model: LlamaForCausalLM, kind: str = "F32", *, architecture: str = "llama") -> Path:
    """Write a model with a tokenizer of bytes, its matrices in the number type ``kind``."""
    config: Any = model.config
    writer = GGUFWriter(file, architecture)
    writer.add_name("small")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    # a token for every byte, two that are merged, and the beginning and the end of a turn
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([*bytes_to_unicode().values(), "ac", "act", "<|begin|>", "<|end|>"])
    writer.add_token_types([1] * 258 + [3, 3])
    writer.add_token_merges(["a c", "ac t"])
    writer.add_bos_token_id(258)
    writer.add_eos_token_id(259)
    writer.add_chat_template(TEMPLATE)
    names = get_tensor_name_map(MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for tensor, weight in model.state_dict().items():
        if tensor == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = weight.numpy()
        if heads := {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(
            tensor.rpartition("_proj.")[0][-1:]
        ):
            # rotary pairs beside each other, as llama.cpp has them; transformers has them half a head apart
            halves = values.reshape(heads, 2, values.shape[0] // heads // 2, values.shape[1])
            values = halves.swapaxes(1, 2).reshape(values.shape)
        type_ = GGMLQuantizationType[kind if values.ndim == 2 else "F32"]
        writer.add_tensor(names.get_name(tensor, (".weight",)), quantize(values, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
