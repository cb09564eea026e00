from .llama_forward import CausalAttention, LlamaWeights, Packing, hidden_states, logits, read_weights, repeat_heads

__all__ = ["CausalAttention", "LlamaWeights", "Packing", "hidden_states", "logits", "read_weights", "repeat_heads"]
