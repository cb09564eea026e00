"""Programs that play in a season: published with the registration, and asked again when an entry is checked."""

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents import holds_programs, innermost, runs_program
from agents.common import read_bytes
from benchmark import UsageError
from benchmark.entries import MAX_PROBLEMS, Verdict, differing_claims, response_problems
from benchmark.play import (
    OWN_PLAYERS,
    AgentSpec,
    AgentTable,
    RunOptions,
    card_of,
    load_policy,
    placed,
    with_agent_options,
    without_spec,
)
from benchmark.runs import RERUN, Plan, RunFolder, taken_on_trust


def can_be_asked(spec: str) -> bool:
    """Return whether an agent is made of programs and of the project's own scripted players, and so answers alike."""
    return runs_program(spec) and all(one in OWN_PLAYERS or runs_program(one) for one in innermost(spec))


def programs_of(spec: str, own: Mapping[str, Any]) -> dict[str, str]:
    """Return ``{file: text}`` of every program that an agent runs; empty if it can't be asked again."""
    found: dict[str, str] = {}

    def read(name: str) -> str:
        try:
            found[name] = read_bytes(name).decode()
        except (ValueError, OSError) as error:
            raise UsageError(f"the program {name!r} can't be read: {error}") from None
        return name

    if can_be_asked(spec):
        _renamed(spec, own, read)
    return found


def check_programs(registered: Mapping[str, Any], key: str, entry: Path, verdict: Verdict) -> None:
    """Ask the programs of a sound entry again, in the sandbox and with the season's key; adds to the verdict."""
    folder = RunFolder.open(entry)
    card = folder.manifest["agents"][0]
    name, spec = card["name"], card["spec"]
    if not can_be_asked(spec):
        return
    if "programs" not in registered or "options" not in registered:
        verdict.unchecked.append(f"the agent {name!r} was registered without its program, so it can't be asked again")
    elif not holds_programs(spec):
        verdict.unchecked.append(
            f"the program of {name!r} isn't asked again: a program of others runs in a sandbox that holds it alone, "
            "which needs Linux on x86-64 or 64-bit ARM"
        )
    else:
        try:
            verdict.problems += islice(_problems(folder, registered, key), MAX_PROBLEMS)
        except UsageError as error:
            verdict.problems.append(f"the program of {name!r} can't be asked again: {error}")
        if not verdict.problems:
            verdict.authorship, verdict.on_trust = RERUN, taken_on_trust(RERUN, asked_once=False)


def _problems(folder: RunFolder, registered: Mapping[str, Any], key: str) -> list[str]:
    name, spec = (registered["card"][part] for part in ("name", "spec"))
    with TemporaryDirectory() as place:
        files = {file: Path(place, f"{number}.py") for number, file in enumerate(registered["programs"])}

        def written(file: str) -> str:
            if file not in files:
                raise UsageError(f"it names the file {file!r}, which wasn't registered")
            files[file].write_text(registered["programs"][file], encoding="utf-8")
            return str(files[file])

        table = _renamed(spec, {**registered["options"], "key": key}, written)
        options = with_agent_options(RunOptions(agent_options={name: without_spec(table)}), {name: table["spec"]})
        policy = load_policy(table["spec"], options, name)
        ours = card_of(AgentSpec(name, table["spec"]), policy)["settings"]
        for setting, mine, theirs in differing_claims(ours, registered["card"]["settings"]):
            return [
                f"the program that {name!r} was registered with has the {setting} {mine!r}, its card says {theirs!r}"
            ]
        return [*islice(response_problems(folder, Plan.from_manifest(folder.manifest), policy), MAX_PROBLEMS)]


def _renamed(spec: str, own: Mapping[str, Any], rename: Callable[[str], str]) -> AgentTable:
    """Return the table of an agent with other names of the files that it names."""

    def inside(player: str, file: str) -> str:
        return rename(file)

    return placed(Path(), {"spec": spec, **own}, inside, rename)
