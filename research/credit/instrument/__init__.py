"""How good credit is: methods of credit assignment measured against the advantage that is true.

``game, policy -> all that may happen -> all that the policy may answer -> true advantages and the exact gradient``, and
beside them ``batches of episodes -> a method's credit``. :func:`measure` compares the two, and an :class:`Instrument`
keeps everything for more questions about the same batches, such as what draw rules do.

Importing this package does not import torch; its names are loaded when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
