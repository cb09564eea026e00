"""From a model's name to weights and a tokenizer; begin at :func:`agents.models.local.loading.load.load_model`."""
