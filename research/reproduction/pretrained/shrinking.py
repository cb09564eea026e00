"""Smaller adapters: of a lower rank, in half precision, or made of a whole model's difference from its base.

``adapter or whole weights -> of a lower rank -> in float16, on a base that has a name``::

    python -m research.reproduction.pretrained.shrinking runs/lake/last --rank 4 --out agents/adapters/weights/NAME
    python -m research.reproduction.pretrained.shrinking runs/whole/last --base smollm2 --rank 16 --out runs/adapter

Exit codes: 0 done, 2 unusable input.

A map of weights has learnt a matrix ``D = scale * B @ A``, or trained minus base. The best matrix of rank r in its
place, by the sum of squares, has D's r largest singular values (Eckart, Young 1936).
"""

import copy
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from agents.common import REQUIRED, option, place, plain_streams, read_words, replacing_folder, settings
from agents.models import base_of, load_model, read_card, write_card
from textgames import install_command

WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What peft puts before the names of a base's maps."""


class Shrunk(NamedTuple):
    """An adapter that was written."""

    folder: Path  #: where
    rank: int  #: its rank
    size: int  #: of its weights' file, in bytes
    error: float  #: the norm of what it doesn't hold of what was learnt, divided by the norm of all of it


class _Learnt(NamedTuple):
    """What one map has learnt: ``D (out, in)``, and an adapter's factors ``A (r, in)`` and ``B (out, r)`` of it."""

    name: str
    matrix: Tensor
    factors: tuple[Tensor, Tensor] | None = None


def shrink(
    source: str | Path,
    out: str | Path,
    *,
    rank: int = 0,
    dtype: str = "float16",
    base: str = "",
    scenarios: Sequence[str] = (),
) -> Shrunk:
    """Write what was trained as an adapter without anything that its base has too: no tokenizer, no template.

    Args:
        source: a folder with an adapter, or with whole weights.
        out: the folder to write; one that is there is replaced.
        rank: of the adapter; 0 keeps that of the one in ``source``.
        dtype: of its weights on disk.
        base: the adapter's base, such as ``smollm2``; empty: that of ``source``. Whole weights need the one before.
        scenarios: what it was trained on, for its card; empty: what the card in ``source`` says.

    Raises:
        ValueError: no adapter and no base, another kind than LoRA, or a rank or dtype that can't be.
    """
    if dtype not in ("float16", "bfloat16", "float32"):
        raise ValueError(f"dtype is float16, bfloat16 or float32, got {dtype!r}")
    source, out = Path(source).expanduser(), Path(out)
    if not source.is_dir():
        raise ValueError(f"there is no folder {str(source)!r}: SOURCE is one with an adapter, or with whole weights")
    below = base_of(source)
    if rank < 0:
        raise ValueError(f"rank is 1 or more, or 0 for that of the adapter there, got {rank}")
    if below is None and not (base and rank):
        raise ValueError(
            f"{source} holds whole weights: an adapter is made of their difference from a base, say which and of what "
            f"rank (--base smollm2 --rank 16); got base {base!r} and rank {rank}"
        )
    try:
        import peft
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"adapters need peft, which is not installed: {install_command('train')}") from error
    lora: Any = peft.LoraConfig(task_type="CAUSAL_LM")
    if below is not None:
        lora = peft.PeftConfig.from_pretrained(str(source))
        if not isinstance(lora, peft.LoraConfig):
            raise ValueError(f"{source} holds an adapter of kind {lora.peft_type}; accepted are those of LoRA")
    keep = below is not None and (not rank or rank == lora.r)
    learnt = _between(base, source) if below is None else _of_adapter(source, copy.copy(lora))
    lora.base_model_name_or_path = base or below
    if not keep:
        lora.r = lora.lora_alpha = rank
        lora.use_rslora, lora.rank_pattern, lora.alpha_pattern = False, {}, {}
    tensors, left_out = _held(learnt, lora, rank=0 if keep else rank, dtype=getattr(torch, dtype))
    if below is None:
        maps = (name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight"))
        lora.target_modules = sorted({name.rpartition(".")[2] for name in maps})
    lora.inference_mode, lora.lora_dropout = True, 0.0
    card = read_card(str(source))
    with replacing_folder(out) as draft:
        lora.save_pretrained(str(draft))
        save_file(tensors, draft / WEIGHTS, metadata={"format": "pt"})
        (draft / WEIGHTS).chmod(0o644)  # written for the owner alone, but a package's files are for everyone
        if card is not None:
            write_card(draft, modes=card.modes, texts=card.texts, scenarios=scenarios or card.scenarios)
    return Shrunk(out, lora.r, (out / WEIGHTS).stat().st_size, left_out)


def _of_adapter(source: Path, lora: Any) -> Iterator[_Learnt]:
    """Yield the map of each pair of an adapter's factors."""
    tensors = load_file(source / WEIGHTS)
    names = [name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight")]
    odd = [name for name in tensors if not name.endswith((".lora_A.weight", ".lora_B.weight"))]
    if odd or lora.use_dora or lora.rank_pattern or lora.alpha_pattern:
        told = f": {odd[0]}" if odd else ""
        raise ValueError(f"{source} isn't a plain LoRA adapter of one rank and scale{told}")
    for name in sorted(names):
        down, up = (tensors[f"{name}.lora_{part}.weight"].float() for part in "AB")
        yield _Learnt(name.removeprefix(PREFIX), _scale(lora) * (up @ down), (down, up))


def _between(base: str, source: Path) -> Iterator[_Learnt]:
    """Yield the differences of whole weights from their base: maps as matrices, all else flat."""
    before, after = (load_model(place, dtype="float32", device="cpu")[0] for place in (base, str(source)))
    head = before.get_output_embeddings()
    maps = {name for name, module in before.named_modules() if isinstance(module, nn.Linear) and module is not head}
    weights = dict(after.named_parameters())
    for name, weight in before.named_parameters():
        other = weights.get(name)
        if other is None or other.shape != weight.shape:
            raise ValueError(f"{source} was not trained from {base!r}: their {name} differ in shape, or one has none")
        module, _, kind = name.rpartition(".")
        difference = (other - weight).detach()
        yield _Learnt(module, difference if kind == "weight" and module in maps else difference.flatten())


def _held(
    learnt: Iterator[_Learnt], settings: Any, *, rank: int, dtype: torch.dtype
) -> tuple[dict[str, Tensor], float]:
    """Return an adapter's tensors (rank 0: the factors as they are), and the share of what was learnt that they
    lack."""
    tensors: dict[str, Tensor] = {}
    missing, whole = 0.0, 0.0
    for name, matrix, factors in learnt:
        whole += float(matrix.square().sum())
        if matrix.dim() != 2:  # a norm, or a table of tokens: no map that an adapter adds to
            missing += float(matrix.square().sum())
            continue
        if factors is None or rank:
            if rank > min(matrix.shape):
                raise ValueError(f"rank is at most {min(matrix.shape)}, the least width of a map, got {rank}")
            u, sizes, v = torch.linalg.svd(matrix, full_matrices=False)
            roots = sizes[:rank].sqrt()  # both factors carry the roots of the singular values
            factors = (roots[:, None] * v[:rank]).contiguous(), (u[:, :rank] * roots).contiguous()
        down, up = (part.to(dtype) for part in factors)
        held = _scale(settings) * (up.float() @ down.float())
        if not torch.isfinite(held).all():
            raise ValueError(f"{name} has weights that {dtype} can't hold: take bfloat16 or float32")
        missing += float((matrix - held).square().sum())
        tensors[f"{PREFIX}{name}.lora_A.weight"], tensors[f"{PREFIX}{name}.lora_B.weight"] = down, up
    return tensors, math.sqrt(missing / whole) if whole else 0.0


def _scale(settings: Any) -> float:
    return float(settings.lora_alpha / (math.sqrt(settings.r) if settings.use_rslora else settings.r))


@settings
class Shrink:
    """Make an adapter that can ship."""

    source: str = place("SOURCE", "a folder with an adapter, or with whole weights")
    out: str = option(REQUIRED, "DIR", "the adapter's folder; replaced if it is there")
    rank: int = option(0, "R", "lower the rank to this; 0: as it is", ge=0)
    dtype: str = option("float16", "TYPE", "of the weights: float16 (default), bfloat16, float32")
    base: str = option("", "MODEL", "the base to name; of whole weights the one before")
    scenarios: tuple[str, ...] = option((), "NAME", "what it was trained on")


@plain_streams()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    asked = read_words(Shrink, arguments, "python -m research.reproduction.pretrained.shrinking")
    try:
        made = shrink(
            asked.source, asked.out, rank=asked.rank, dtype=asked.dtype, base=asked.base, scenarios=asked.scenarios
        )
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{made.folder}: rank {made.rank}, {asked.dtype}, {made.size / 1e6:.1f} MB; "
        f"{made.error:.2%} of what was learnt isn't in it, by the norm of the weights' change"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
