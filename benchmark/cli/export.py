"""Results as files of other programs."""

import sys
from itertools import chain
from pathlib import Path

from agents.common.files import check_folder, refusal
from benchmark.cli.settings import Export, Output
from benchmark.errors import StorageError, UsageError
from benchmark.results import Results, read_results
from benchmark.runs.folder import check_file_place
from benchmark.show import export, published, training_data


def run_export(settings: Export) -> int:
    """Write the files that were asked for."""
    files = _files(settings)
    sources = Output().folders(settings.sources)
    results = read_results(*sources, agents=settings.agents)
    if not results.columns.played:
        raise UsageError(f"{', '.join(map(str, sources))} has no finished episode")
    rows = export.step_rows if settings.steps else export.episode_rows
    fields = export.STEP_FIELDS if settings.steps else export.EPISODE_FIELDS
    for name, write in (("csv", export.write_csv), ("parquet", export.write_parquet)):
        if file := files.get(name):
            print(f"{file}: {write(rows(results.columns), fields, file)} rows", file=sys.stderr)
    if settings.plot:
        export.write_plot(results.leaderboard().scores, settings.plot, settings.measure)
        print(settings.plot, file=sys.stderr)
    if settings.sft or settings.preferences:
        _training_data(settings, results)
    if settings.eval_results or settings.every_eval_ever:
        _publish(settings, results)
    return 0


def _files(settings: Export) -> dict[str, str]:
    names = ("csv", "parquet", "plot", "sft", "preferences")
    files: dict[str, str] = {name: file for name in names if (file := getattr(settings, name))}
    if not (files or settings.eval_results or settings.every_eval_ever):
        raise UsageError(
            "say what to write: --csv, --parquet, --plot, --sft or --preferences FILE, --eval-results or "
            "--every-eval-ever DIR"
        )
    if settings.eval_results and not settings.benchmark:
        raise UsageError("--eval-results needs --benchmark OWNER/NAME")
    if settings.every_eval_ever and not settings.organization:
        raise UsageError("--every-eval-ever needs --organization NAME")
    if settings.plot and not settings.plot.lower().endswith(export.PLOT_ENDINGS):
        raise UsageError(f"a plot's file ends with .svg, .png or .pdf, got {settings.plot!r}")
    if settings.parquet == "-":
        raise UsageError("--parquet takes a file, such as episodes.parquet, got '-'")
    written: dict[str, str] = {}
    for name, file in files.items():
        if (other := written.setdefault(file, name)) != name:
            raise UsageError(f"--{other} and --{name} both write to {file}: choose another file for one")
        if file != "-":
            check_file_place(file)
    return files


def _training_data(settings: Export, results: Results) -> None:
    source = training_data.Source(results.columns, settings.mode)
    made = (
        (settings.sft, training_data.demonstrations(source, settings.keep)),
        (settings.preferences, training_data.preferences(source)),
    )
    for file, lines in made:
        if not file:
            continue
        first = next(lines, None)
        count = 0 if first is None else training_data.write_lines(chain([first], lines), file, text=settings.text)
        _tell_left_out(source)
        if not count:
            raise UsageError(f"there is nothing to write to {file}: no decision of these runs is of that kind")
        print(f"{file}: {count} lines", file=sys.stderr)
    if source.evaluation_seeds:
        print(
            "these episodes have seeds that scores are measured on, so what is trained on them must be evaluated on "
            "others; textbench run --seed-offset 100000 plays episodes to train on",
            file=sys.stderr,
        )


def _tell_left_out(source: training_data.Source) -> None:
    for why, episodes in source.left_out.items():
        print(f"{episodes} episodes were left out: {why}", file=sys.stderr)


def _publish(settings: Export, results: Results) -> None:
    document, files = results.leaderboard().document, []
    folders = settings.eval_results, settings.every_eval_ever
    try:
        for place in filter(None, folders):
            check_folder(Path(place))
    except OSError as error:
        raise StorageError(refusal(error)) from None
    if settings.eval_results and settings.benchmark:
        files += published.write_eval_results(document, Path(settings.eval_results), settings.benchmark)
    if settings.every_eval_ever and settings.organization:
        source = training_data.Source(results.columns) if settings.instances else None
        out = Path(settings.every_eval_ever)
        files += published.write_every_eval_ever(document, out, settings.organization, source)
        if source is not None:
            _tell_left_out(source)
    print("\n".join(map(str, files)), file=sys.stderr)
