"""Write results for other programs: CSV, Parquet, plots.

examples:
  textbench export runs/a --csv episodes.csv
  textbench export runs/a --csv - --steps | head
  textbench export leaderboards --parquet results.parquet --plot scores.svg
"""

from argparse import ArgumentParser, Namespace

MEASURES = ("normalized", "mean_return", "success_rate", "invalid_rate", "length")


def add_arguments(parser: ArgumentParser) -> None:
    """What, and where to."""
    parser.add_argument("sources", nargs="*", metavar="DIR", help="runs or entries (default: the newest run)")
    parser.add_argument("--csv", metavar="FILE", help="one row per episode and player; - for stdout")
    parser.add_argument("--parquet", metavar="FILE", help="the same as Parquet (needs the extra plots)")
    parser.add_argument("--steps", action="store_true", help="one row per step instead, responses included")
    parser.add_argument(
        "--plot", metavar="FILE", help="scores with intervals: .svg, .png, .pdf (needs the extra plots)"
    )
    parser.add_argument("--measure", choices=MEASURES, default=MEASURES[0], help="what is plotted (default normalized)")


def run(args: Namespace) -> int:
    """Write."""
    import sys

    from benchmark.cli.output import Output
    from benchmark.cli.sources import given_or_newest
    from benchmark.errors import UsageError
    from benchmark.results import read_results
    from benchmark.show import export

    if not (args.csv or args.parquet or args.plot):
        raise UsageError("say what to write: --csv FILE, --parquet FILE or --plot FILE")
    if args.plot and not args.plot.lower().endswith(export.PLOT_ENDINGS):
        raise UsageError(f"a plot's file ends with .svg, .png or .pdf, got {args.plot!r}")
    sources = given_or_newest(args.sources, Output())
    results = read_results(*sources)
    if not results.columns.played:
        raise UsageError(f"{', '.join(map(str, sources))} has no finished episode")
    rows = export.step_rows if args.steps else export.episode_rows
    fields = export.STEP_FIELDS if args.steps else export.EPISODE_FIELDS
    for file, write in ((args.csv, export.write_csv), (args.parquet, export.write_parquet)):
        if file:
            print(f"{file}: {write(rows(results.columns), fields, file)} rows", file=sys.stderr)
    if args.plot:
        export.write_plot(results.leaderboard().scores, args.plot, args.measure)
        print(args.plot, file=sys.stderr)
    return 0
