"""``python -m agents.adapters SOURCE --out DIR ...``: a smaller adapter. Exit codes: 0 done, 2 unusable input."""

import sys
from collections.abc import Sequence

from agents.common.arguments import Parser, whole_number
from agents.common.terminal import plain_streams
from textgames.extras import missing_packages


@plain_streams()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = Parser(prog="python -m agents.adapters", description="Make an adapter that can ship.")
    parser.add_argument("source", metavar="SOURCE", help="a folder with an adapter, or with whole weights")
    parser.add_argument("--out", metavar="DIR", required=True, help="the adapter's folder; replaced if it is there")
    parser.add_argument(
        "--rank", type=whole_number(0), default=0, metavar="R", help="lower the rank to this (default: as it is)"
    )
    parser.add_argument("--dtype", default="float16", help="of the weights: float16 (default), bfloat16, float32")
    parser.add_argument("--base", default="", metavar="MODEL", help="the base to name; of whole weights the one before")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME", help="what it was trained on")
    options = parser.parse_args(arguments)
    if (missing := missing_packages("torch", "transformers", "peft", extra="train")) is not None:
        print(f"error: adapters need {missing}", file=sys.stderr)
        return 2
    from agents.adapters.shrinking import shrink

    try:
        made = shrink(
            options.source,
            options.out,
            rank=options.rank,
            dtype=options.dtype,
            base=options.base,
            scenarios=options.scenario,
        )
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{made.folder}: rank {made.rank}, {options.dtype}, {made.size / 1e6:.1f} MB; "
        f"{made.error:.2%} of what was learnt isn't in it, by the norm of the weights' change"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
