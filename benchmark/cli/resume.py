"""What an interrupted run lacks, played."""

from pathlib import Path

from benchmark.cli import output
from benchmark.cli.settings import Resume
from benchmark.play.session import reopen_session


def run(settings: Resume) -> int:
    """Play the episodes that the folder lacks."""
    told, ask = settings.output, output.ask_at_terminal
    session = reopen_session(Path(settings.folder), settings.options, told.say, repair=settings.repair, ask=ask)
    return output.report(session.play(quiet=told.quiet), told)
