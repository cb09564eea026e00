"""From prompts' token ids to responses; begin at :mod:`agents.models.local.decoding.sampler`, the loop over tokens.

Logits come from ``lean_decoder``, which keeps the shared beginnings of prompts (``kept_prompts``), or, for every other
architecture, from ``generic_decoder``. ``drafts`` draws answers of which little is a choice; ``machine`` splits a batch
so that its caches fit, and records a GPU's steps.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
