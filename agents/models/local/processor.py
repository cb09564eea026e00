"""What the processor can do, where that decides how a model is run."""

from functools import cache
from typing import Any

import torch

_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "avx10_2", "bf16", "sve_bf16")  # the last two: ARM's


@cache
def multiplies_bfloat16() -> bool:
    """Whether the processor multiplies matrices of bfloat16 by instructions of its own, faster than float32.

    Others compute them, too, but turn every number into float32 and back, which takes longer than float32 alone.
    """
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # of PyTorch 2.10 and later
    if capabilities:
        return any(capabilities.get(name) for name in _INSTRUCTIONS)
    asked = (getattr(torch.cpu, f"_is_{name}_supported", bool) for name in ("avx512_bf16", "amx_tile"))
    return any(ask() for ask in asked)
