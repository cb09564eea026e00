from .kept_prompts import common_prefix
from .lean_decoder import LeanDecoder
from .sampler import Sampled, sample

__all__ = ["LeanDecoder", "Sampled", "common_prefix", "sample"]
