"""Adapters that ship, in ``weights``, and how a trained one becomes small enough to.

``adapter or whole weights -> of a lower rank -> in float16, on a base that has a name``::

    python -m agents.adapters runs/lake/last --rank 4 --out agents/adapters/weights/smollm2-lake python -m
    agents.adapters runs/whole/last --base smollm2 --rank 16 --out runs/adapter
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
