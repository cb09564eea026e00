"""From what a person names to weights and a tokenizer, and what lies beside the weights on disk.

Begin at :func:`agents.models.local.loading.load.load_model`. ``gguf`` and ``smollm2`` make a folder in Hugging Face
format of what isn't one yet; ``plain_llama`` reads the very small models without transformers' modelling code, whose
import takes longer than their whole run. ``adapters`` are peft's, and a ``card`` says how a model wants to be asked.
"""
