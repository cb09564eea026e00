"""Playing a run: options, players, the runner, and what a person sees meanwhile."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
