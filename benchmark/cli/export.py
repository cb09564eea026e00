"""Write results for other programs: CSV, Parquet, plots, and data to train on.

examples:
  textbench export runs/a --csv episodes.csv
  textbench export runs/a --csv - --steps | head
  textbench export leaderboards --parquet results.parquet --plot scores.svg
  textbench export runs/a --sft demonstrations.jsonl --keep best
  textbench export runs/a --preferences pairs.jsonl --mode direct
  textbench export runs/a --eval-results repos --benchmark OWNER/NAME
"""

from argparse import Namespace
from typing import TYPE_CHECKING

from agents.common.arguments import Parser
from benchmark.cli.arguments import add_import_option

if TYPE_CHECKING:
    from benchmark.results import Results
    from benchmark.score.results import ResultColumns

MEASURES = ("normalized", "mean_return", "success_rate", "invalid_rate", "length")
KEEPS = ("all", "best", "value")
FILES = ("csv", "parquet", "plot", "sft", "preferences")
WRITTEN = (*FILES, "eval_results", "every_eval_ever")


def add_arguments(parser: Parser) -> None:
    """Declare the runs that are exported, and the files that are written."""
    parser.add_argument("sources", nargs="*", metavar="DIR", help="runs or entries (default: the newest run)")
    parser.add_argument("--csv", metavar="FILE", help="one row per episode and player; - for stdout")
    parser.add_argument("--parquet", metavar="FILE", help="the same as Parquet (needs the extra plots)")
    parser.add_argument("--steps", action="store_true", help="one row per step instead, responses included")
    parser.add_argument(
        "--plot", metavar="FILE", help="scores with intervals: .svg, .png, .pdf (needs the extra plots)"
    )
    parser.add_argument("--measure", choices=MEASURES, default=MEASURES[0], help="what is plotted (default normalized)")
    parser.add_argument("--agent", action="append", default=[], metavar="NAME", help="only this agent; may be repeated")
    data = parser.add_argument_group("data to train on (JSONL as TRL reads it; - for stdout)")
    data.add_argument("--sft", metavar="FILE", help="prompts and completions: one line per valid decision")
    data.add_argument(
        "--preferences", metavar="FILE", help="prompts with a better and a worse response, by action value"
    )
    data.add_argument(
        "--keep",
        choices=KEEPS,
        default=KEEPS[0],
        help="with --sft: all decisions, those of the best episodes (a return above the mean), or those whose action "
        "has the largest value (default all)",
    )
    data.add_argument("--text", action="store_true", help="as plain text, for models without a chat template")
    data.add_argument(
        "--mode", metavar="MODE", help="think or direct (default: each agent's own, think for the others)"
    )
    public = parser.add_argument_group("normalised scores of models, as catalogues hold them")
    public.add_argument(
        "--eval-results", metavar="DIR", help="Hugging Face's .eval_results files, in a folder for every model"
    )
    public.add_argument(
        "--benchmark", metavar="OWNER/NAME", help="with --eval-results: the Hub's dataset that is the benchmark"
    )
    public.add_argument("--every-eval-ever", metavar="DIR", help="a JSON file for every model, by that schema")
    public.add_argument("--organization", metavar="NAME", help="with --every-eval-ever: who provides the results")
    add_import_option(parser)
    parser.only_with(["--csv", "--parquet"], "--steps")
    parser.only_with(["--plot"], "--measure")
    parser.only_with(["--sft"], "--keep")
    parser.only_with(["--sft", "--preferences"], "--text", "--mode")
    parser.only_with(["--eval-results"], "--benchmark")
    parser.only_with(["--every-eval-ever"], "--organization")


def run(args: Namespace) -> int:
    """Write the files that were asked for."""
    import sys

    from benchmark.cli.arguments import given_or_newest
    from benchmark.cli.output import Output
    from benchmark.errors import UsageError
    from benchmark.results import read_results
    from benchmark.runs.folder import check_file_place
    from benchmark.show import export

    if not any(getattr(args, name) for name in WRITTEN):
        raise UsageError(
            "say what to write: --csv, --parquet, --plot, --sft or --preferences FILE, --eval-results or "
            "--every-eval-ever DIR"
        )
    for what, told, form in (
        ("eval_results", "benchmark", "OWNER/NAME"),
        ("every_eval_ever", "organization", "NAME"),
    ):
        if getattr(args, what) and not getattr(args, told):
            raise UsageError(f"--{what.replace('_', '-')} needs --{told} {form}")
    if args.plot and not args.plot.lower().endswith(export.PLOT_ENDINGS):
        raise UsageError(f"a plot's file ends with .svg, .png or .pdf, got {args.plot!r}")
    if args.parquet == "-":
        raise UsageError("--parquet takes a file, such as episodes.parquet, got '-'")
    written: dict[str, str] = {}
    for name in FILES:
        if file := getattr(args, name):
            if file in written:
                raise UsageError(f"--{written[file]} and --{name} both write to {file}: choose another file for one")
            written[file] = name
            if file != "-":
                check_file_place(file)
    sources = given_or_newest(args.sources, Output())
    results = read_results(*sources, agents=args.agent)
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
    if args.sft or args.preferences:
        _training_data(args, results.columns)
    if args.eval_results or args.every_eval_ever:
        _publish(args, results)
    return 0


def _publish(args: Namespace, results: "Results") -> None:
    import sys
    from pathlib import Path

    from agents.common.files import check_folder, refusal
    from benchmark.errors import StorageError
    from benchmark.show import published

    document = results.leaderboard().document
    try:
        for place in filter(None, (args.eval_results, args.every_eval_ever)):
            check_folder(Path(place))
    except OSError as error:
        raise StorageError(refusal(error)) from None
    files = []
    if args.eval_results:
        files += published.write_eval_results(document, Path(args.eval_results), args.benchmark)
    if args.every_eval_ever:
        files += published.write_every_eval_ever(document, Path(args.every_eval_ever), args.organization)
    print("\n".join(map(str, files)), file=sys.stderr)


def _training_data(args: Namespace, columns: "ResultColumns") -> None:
    import sys
    from itertools import chain

    from benchmark.errors import UsageError
    from benchmark.show import training_data

    source = training_data.Source(columns, args.mode)
    made = {"sft": training_data.demonstrations(source, args.keep), "preferences": training_data.preferences(source)}
    for what, lines in made.items():
        file = getattr(args, what)
        if not file:
            continue
        first = next(lines, None)
        count = training_data.write_lines(chain([first], lines), file, text=args.text) if first is not None else 0
        for why, episodes in source.left_out.items():
            print(f"{episodes} episodes were left out: {why}", file=sys.stderr)
        if not count:
            raise UsageError(f"there is nothing to write to {file}: no decision of these runs is of that kind")
        print(f"{file}: {count} lines", file=sys.stderr)
    if source.evaluation_seeds:
        print(
            "these episodes have seeds that scores are measured on, so what is trained on them must be evaluated on "
            "others; textbench run --seed-offset 100000 plays episodes to train on",
            file=sys.stderr,
        )
