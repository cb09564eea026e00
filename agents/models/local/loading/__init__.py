"""From a model's name to weights and a tokenizer; begin at :func:`agents.models.local.loading.load.load_model`.

``gguf`` and ``smollm2`` make a folder in Hugging Face format; ``plain_llama`` reads the very small models without
transformers' modelling code, whose import takes longer than their whole run; a ``card`` records how a model wants to be
asked.
"""
