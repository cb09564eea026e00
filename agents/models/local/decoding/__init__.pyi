from .lean_decoder import LeanDecoder, common_prefix
from .sampler import Sampled, sample

__all__ = ["LeanDecoder", "Sampled", "common_prefix", "sample"]
