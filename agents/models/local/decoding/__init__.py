"""From prompts' token ids to responses; begin at :mod:`agents.models.local.decoding.sampler`, the loop over tokens.

Logits come from ``lean_decoder``, which keeps the shared beginnings of prompts (``kept_prompts``) and on a GPU records
its steps (``captured_step``), or, for every other architecture, from ``generic_decoder``. ``drawing`` draws tokens,
``drafts`` answers of which little is a choice, ``batching`` splits a batch so that its caches fit.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
