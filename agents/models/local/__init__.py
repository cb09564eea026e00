"""A model of transformers in this process; begin at :mod:`agents.models.local.transformers`.

``reader`` turns prompts into token ids and back, by the chat template of ``templates``; ``loading`` is from a name to
weights and a tokenizer, ``forward`` a lean forward pass for models of the Llama type, ``decoding`` from prompts to
responses, token by token.
"""
