"""Running a model of transformers in this process.

:mod:`~agents.models.local.transformers` is the model that a policy asks; begin there. Around it: ``reader`` turns
prompts into token ids and token ids into text, by the chat template of ``templates``. What it is made of has rooms of
its own: ``loading`` (from a name to weights and a tokenizer), ``forward`` (a lean forward pass for models of the Llama
type) and ``decoding`` (from prompts to responses, token by token).
"""
