"""Make a leaderboard entry of a run: the agent's card, versions, settings, seeds and every response, in one folder.

example:
  textbench submit runs/20260131-235959-1a2b3c --agent planner --out leaderboards
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option, add_season_option


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, its agent, the folder of entries, and what is said about the entry."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("--agent", metavar="NAME", help="whose entry (needed when the run has several agents)")
    parser.add_argument("--out", default="leaderboards", metavar="DIR", help="where entries are (default leaderboards)")
    parser.add_argument("--author", default="", metavar="NAME", help="who submits it")
    parser.add_argument("--note", default="", metavar="TEXT", help="a line for the reader")
    add_season_option(parser)
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Make the entry and check it; only a good one takes the place of an older one."""
    import sys
    from pathlib import Path
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    from agents.common.files import member, replacing
    from agents.common.redaction import Redactor
    from benchmark.cli.validate import say_problems
    from benchmark.entries.entry import submit
    from benchmark.errors import storing
    from benchmark.seasons import check_in, open_season

    season = open_season(args.season)
    about = (args.agent, args.author, args.note, Redactor.from_environment())
    with TemporaryDirectory() as aside:
        made = submit(Path(args.run), Path(aside), *about, None if season is None else season.terms)
        with storing(Path(args.out) / made.name):
            entry = member(Path(args.out), made.name)
        problems = check_in(season, made, Path(args.out)).problems
        if problems and entry.exists():
            say_problems(entry, "refused", problems)
            print(f"{entry} stays as it was", file=sys.stderr)
            return 1
        with storing(entry):  # a refused one, too: its author may want to look into it
            entry.mkdir(parents=True, exist_ok=True)
            for file in made.iterdir():
                with file.open("rb") as source, replacing(entry / file.name, "wb") as target:
                    copyfileobj(source, target)
    print(entry)
    if problems:
        say_problems(entry, "refused", problems)
        return 1
    return 0
