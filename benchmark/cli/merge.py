"""Runs of several machines, merged into one."""

import sys
from pathlib import Path

from agents.common.redaction import Redactor
from benchmark.cli.settings import Merge
from benchmark.runs.folder import resume_command
from benchmark.runs.merge import merge


def run(settings: Merge) -> int:
    """Merge the runs, and say what was found."""
    out = Path(settings.out)
    report = merge([Path(run) for run in settings.runs], out, Redactor.from_environment())
    print(out)
    differently = f", {report.conflicts} of them played differently (the first run's were kept)"
    conflicts = differently if report.conflicts else ""
    print(f"{report.episodes} episodes; {report.duplicates} were in several runs{conflicts}", file=sys.stderr)
    if report.missing:
        print(f"{report.missing} planned episodes are missing; play them: {resume_command(out)}", file=sys.stderr)
    return 0
