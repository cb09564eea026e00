"""``python -m textbench.integrations.inspect LOG --out DIR``: a log of Inspect becomes a run folder."""

import sys

from agents.common.settings import REQUIRED, option, place, read_words, settings
from agents.common.terminal import plain_streams
from benchmark.errors import BenchmarkError
from textgames.extras import missing_packages


@settings
class Import:
    """Make a run folder of a log of Inspect, and print its leaderboard."""

    log: str = place("LOG", "a log of inspect eval textbench/SCENARIO, .eval or .json")
    out: str = option(REQUIRED, "DIR", "the run folder")


@plain_streams()
def main() -> int:
    """Import the log that the command names, and print the leaderboard of its run."""
    asked = read_words(Import, None, "python -m textbench.integrations.inspect")
    if missing := missing_packages("inspect_ai", extra="inspect"):
        print(f"textbench: reading a log of Inspect needs what isn't installed, {missing}", file=sys.stderr)
        return 2
    from textbench.integrations.inspect.logs import import_log

    try:
        import_log(asked.log, asked.out).leaderboard().print()
    except (BenchmarkError, OSError) as error:
        print(f"textbench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
