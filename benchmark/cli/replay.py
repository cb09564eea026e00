"""An episode, step by step in the terminal."""

import sys

from benchmark.cli.settings import Output, Replay
from benchmark.errors import UsageError, unknown_name
from benchmark.runs.folder import RunFolder
from benchmark.show.notes import listed
from benchmark.show.viewer import EpisodePicker, print_episode, step_through


def run(settings: Replay) -> int:
    """Step through the episode, or print it if there is no terminal."""
    agent, scenario, seed, failed = settings.agent, settings.scenario, settings.seed, settings.failed
    (source,) = Output().folders([settings.source] if settings.source else [])
    folder = RunFolder.open(source)
    picker = EpisodePicker(folder, agent, scenario, seed, failed, settings.worst)
    for kind, name, known in (
        ("agent in this run", agent, [card["name"] for card in folder.manifest["agents"]]),
        ("scenario in this run", scenario, folder.manifest["scenarios"]),
    ):
        if name is not None and name not in known:
            raise unknown_name(kind, name, known)
    names = [scenario] if scenario else list(picker.scenarios)
    if settings.worst and not any(map(picker.losses, names)):
        raise UsageError(
            f"--worst orders episodes by the value lost, and {listed(names)} has no exact values of moves; order by "
            "scenario and seed: leave --worst out, or show failures alone: --failed"
        )
    if not picker.count:
        asked = {"of": agent, "in": scenario, "with seed": seed}
        told = "".join(f" {word} {value}" for word, value in asked.items() if value is not None)
        told += " whose value lost is known" * settings.worst
        others = "; without these options it shows all that there are" if failed or told else ""
        raise UsageError(f"{source} has no {'failed' if failed else 'finished'} episode{told}{others}")
    number = 1 if settings.episode is None else settings.episode
    if not 1 <= number <= picker.count:
        raise UsageError(f"--episode must be from 1 to {picker.count} here, got {number}")
    if settings.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_episode(picker, number)
        return 0
    return step_through(picker, number, worst=settings.worst)
