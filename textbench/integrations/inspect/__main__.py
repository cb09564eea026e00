"""``python -m textbench.integrations.inspect LOG --out DIR``: a log of Inspect becomes a run folder."""

import sys

from agents.common.arguments import Parser
from agents.common.terminal import plain_streams
from benchmark.errors import BenchmarkError
from textgames.extras import missing_packages


@plain_streams()
def main() -> int:
    """Import the log that the command names, and print the leaderboard of its run."""
    parser = Parser(prog="python -m textbench.integrations.inspect", description=__doc__)
    parser.add_argument("log", metavar="LOG", help="a log of inspect eval textbench/SCENARIO, .eval or .json")
    parser.add_argument("--out", metavar="DIR", required=True, help="the run folder")
    options = parser.parse_args()
    if missing := missing_packages("inspect_ai", extra="inspect"):
        print(f"textbench: reading a log of Inspect needs what isn't installed, {missing}", file=sys.stderr)
        return 2
    from textbench.integrations.inspect.logs import import_log

    try:
        import_log(options.log, options.out).leaderboard().print()
    except (BenchmarkError, OSError) as error:
        print(f"textbench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
