"""Language models, one interface: scripted, behind servers, transformers, vLLM. Start at :mod:`agents.models.base`."""
