"""A lean forward pass for models of the Llama type: the sampler and the learner compute with it.

Begin at :mod:`agents.models.local.forward.llama_forward`, whose layers are made of ``linear_maps`` (plain, fused, or
with LoRA beside them) and ``activations``. ``path_attention`` is attention in token trees, in which equal prefixes are
computed once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
