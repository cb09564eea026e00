"""``python -m agents.adapters SOURCE --out DIR ...``: a smaller adapter. Exit codes: 0 done, 2 unusable input."""

import sys
from collections.abc import Sequence

from agents.common.settings import REQUIRED, option, place, read_words, settings
from agents.common.terminal import plain_streams
from textgames.extras import missing_packages


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
    asked = read_words(Shrink, arguments, "python -m agents.adapters")
    if (missing := missing_packages("torch", "transformers", "peft", extra="train")) is not None:
        print(f"error: adapters need {missing}", file=sys.stderr)
        return 2
    from agents.adapters.shrinking import shrink

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
