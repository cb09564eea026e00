"""A lean forward pass for models of the Llama type: the sampler and the learner compute with it.

Begin at :mod:`agents.models.local.forward.llama_forward`; ``path_attention`` is attention in token trees.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
