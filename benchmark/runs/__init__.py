"""What a run is on disk: its plan, its manifest's provenance, its episode records, and replaying them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
