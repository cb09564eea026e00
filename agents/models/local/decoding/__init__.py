"""From prompts' token ids to responses: next-token logits, and which token is drawn of them.

Begin at :mod:`agents.models.local.decoding.sampler`, the loop over tokens. Logits come from ``lean_decoder``, which
keeps what prompts share (``kept_prompts``) and on a GPU records its steps (``captured_step``), or, for every other
architecture, from ``generic_decoder``. What may be drawn and when a response ends is also up to ``guided`` (legal
answers only) and ``thinking`` (a budget for reasoning).
``batching`` splits a batch so that its caches fit.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
