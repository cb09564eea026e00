"""A leaderboard entry, made of a run."""

from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from agents.common.files import member, replacing
from agents.common.redaction import Redactor
from benchmark.cli.settings import Submit
from benchmark.cli.validate import say_problems
from benchmark.entries.entry import submit
from benchmark.errors import storing
from benchmark.seasons import check_in, open_season


def run(settings: Submit) -> int:
    """Make the entry and check it; only a good one takes the place of an older one."""
    season, out = open_season(settings.season), Path(settings.out)
    about = (settings.agent, settings.author, settings.note, Redactor.from_environment())
    with TemporaryDirectory() as aside:
        made = submit(Path(settings.run), Path(aside), *about, None if season is None else season.terms)
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
