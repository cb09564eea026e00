"""The games as a resources server of NeMo Gym: ``python -m textbench.integrations.nemo_gym SCENARIO --out FOLDER``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
