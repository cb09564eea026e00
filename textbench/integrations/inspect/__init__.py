"""The scenarios as tasks of Inspect: ``inspect eval textbench/frozen-lake -T episodes=5 --model PROVIDER/MODEL``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
