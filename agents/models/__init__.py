"""Language models, one interface: scripted, OpenAI-compatible servers, transformers, vLLM. Start at :mod:`agents.models.base`."""
