"""Very small language models made from scratch: tokenizer, noisy demonstrator, pretraining.

They read the same prompts and write the same responses as any big model, have 0.2 to 1 million parameters, and are
saved as plain Hugging Face models. Trainings whose ``model`` is ``tiny-quick`` or ``tiny-legal`` make one first::

    made = pretrain(Recipe.quick(seed=0))  # Frozen Lake, 0.2M parameters, about a minute on one core
    save(made, "runs/tiny-quick")          # then load_agent("hf:runs/tiny-quick")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
