"""Leaderboard entries, made of a run."""

from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from agents.common.files import member, replacing
from agents.common.redaction import Redactor
from benchmark.cli.settings import Submit
from benchmark.cli.validate import say_problems
from benchmark.entries.entry import BOARDS, Terms, open_terms, submit
from benchmark.errors import storing
from benchmark.runs.manifest import read_manifest
from benchmark.seasons import Season, check_in, open_season


def run(settings: Submit) -> int:
    """Make the season's entry, or one for each leaderboard of whose suite the run has all scenarios."""
    if (season := open_season(settings.season)) is not None:
        return _enter(settings, season, season.terms)
    played = read_manifest(Path(settings.run))["scenarios"].keys()
    boards = [terms for terms in map(open_terms, BOARDS) if played >= {*terms.scenarios}]
    return max(_enter(settings, None, terms) for terms in boards or [open_terms()])


def _enter(settings: Submit, season: Season | None, terms: Terms) -> int:
    """Make the entry and check it; only a good one takes the place of an older one."""
    about = (settings.agent, settings.author, settings.note, Redactor.from_environment())
    with TemporaryDirectory() as folder:
        out, aside = Path(settings.out), Path(folder)
        if terms.suite != "paper":
            with storing(out / terms.suite):
                out, aside = member(out, terms.suite), aside / terms.suite
        made = submit(Path(settings.run), aside, *about, terms)
        with storing(out / made.name):
            entry = member(out, made.name)
        problems = check_in(season, made, out).problems
        kept = bool(problems) and entry.exists()
        if not kept:
            with storing(entry):  # a refused one, too: its author may want to look into it
                entry.mkdir(parents=True, exist_ok=True)
                for file in made.iterdir():
                    with file.open("rb") as source, replacing(entry / file.name, "wb") as target:
                        copyfileobj(source, target)
            print(entry)
    if problems:
        say_problems(entry, "refused", [*problems, *([f"{entry} stays as it was"] if kept else [])])
    return 1 if problems else 0
