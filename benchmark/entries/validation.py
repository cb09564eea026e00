"""Checking a leaderboard entry: every episode is played again from its seed and responses, and must come out equal.

Nothing that an entry claims is believed: not its scenarios' settings, not which episodes there are, not one reward.
What can't be checked by playing is who wrote the responses; for the project's own scripted players that is checked as
well, by asking them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmark.entries.entry import MIN_EPISODES
from benchmark.errors import UsageError
from benchmark.runs.folder import ENTRY_KIND, EPISODES_NAME, MANIFEST_NAME, Manifest, RunFolder
from benchmark.runs.plan import PAPER_SCENARIOS, Plan, expand_ranges, scenario_to_json
from benchmark.runs.provenance import data_digest
from benchmark.runs.record import MEASURED, REQUIRED, STEP_KEYS, Key, Record, key_of, observations_digest
from benchmark.runs.replay import Replay, ReplayError, replay
from textgames.scenarios import SCENARIOS, Scenario

MAX_PROBLEMS = 20
"""Reading stops after so many."""

OPTIONAL_STEP_KEYS = {"unreadable", "finish_reason", "tokens"}
OWN_PLAYERS = ("random", "greedy", "planner")
"""Scripted players whose every response follows from the seed."""


def validate(path: Path) -> list[str]:
    """Check an entry.

    Returns:
        What is wrong with it, one sentence each with its place, at most :data:`MAX_PROBLEMS`; nothing for a good entry.

    Raises:
        UsageError: it isn't an entry at all.
    """
    folder = RunFolder.open(path)
    if folder.manifest["kind"] != ENTRY_KIND:
        raise UsageError(f"{path} is a run, not an entry; make one: textbench submit {path}")
    Plan.from_manifest(folder.manifest)  # or it can't be read at all
    problems = []
    for problem in _problems(folder):
        problems.append(problem)
        if len(problems) >= MAX_PROBLEMS:
            break
    return problems


def _problems(folder: RunFolder) -> Iterator[str]:
    found = list(manifest_problems(folder.manifest))
    yield from found
    if found:
        return  # without trusted definitions there is nothing to replay against
    try:
        yield from _episode_problems(folder)
    except UsageError as error:  # a line that isn't an episode
        yield str(error)


# ---------------------------------------------------------------- the manifest


def manifest_problems(manifest: Manifest) -> Iterator[str]:
    """What is wrong with an entry's claims about itself."""
    agents = manifest["agents"]
    if len(agents) != 1:
        yield f"{MANIFEST_NAME}: an entry has the card of one agent"
        return
    card = agents[0]
    if card["name"] != manifest.get("agent"):
        yield f"{MANIFEST_NAME}: agent is {manifest.get('agent')!r}, its card says {card['name']!r}"
        return
    prompt_map = card["settings"].get("prompt_map")
    if prompt_map is not None and card["settings"].get("prompt_map_digest") != data_digest(prompt_map):
        yield f"{MANIFEST_NAME}: prompt_map_digest isn't the digest of the prompt map"
    yield from _scenario_problems(manifest)
    yield from _seed_problems(manifest)


def _scenario_problems(manifest: Manifest) -> Iterator[str]:
    for name in PAPER_SCENARIOS:
        if name not in manifest["scenarios"]:
            yield f"{MANIFEST_NAME}: scenario {name!r} is missing"
    for name, claimed in manifest["scenarios"].items():
        if name not in SCENARIOS:
            yield f"{MANIFEST_NAME}: there is no scenario {name!r}"
            continue
        for path, ours, theirs in _differences(scenario_to_json(SCENARIOS[name]), claimed, name):
            yield f"{MANIFEST_NAME}: scenarios.{path} is {theirs!r}, the scenario's is {ours!r}"


def _seed_problems(manifest: Manifest) -> Iterator[str]:
    agent = manifest["agent"]
    settings = manifest["settings"]
    for name, wanted in (("seed_offset", 0),):
        if settings.get(name) != wanted:
            yield f"{MANIFEST_NAME}: settings.{name} is {settings.get(name)!r}, an entry has {wanted!r}"
    alone = set()
    for row in manifest["matchups"]:
        where = f"{MANIFEST_NAME}: {row['scenario']}"
        if row["scenario"] not in SCENARIOS:
            yield f"{where} isn't a scenario"
            continue
        if agent not in row["agents"]:
            yield f"{where}: {agent!r} doesn't play in it"
        alone |= {row["scenario"]} if row["agents"] == [agent] else set()
        seeds = list(expand_ranges(row["seeds"]))
        first = SCENARIOS[row["scenario"]].first_seed
        if seeds != list(range(first, first + len(seeds))):
            yield f"{where}: the seeds aren't {first}, {first + 1}, ... without a gap"
        if len(seeds) < MIN_EPISODES:
            yield f"{where}: {len(seeds)} episodes, an entry has at least {MIN_EPISODES}"
        if len(seeds) != settings.get("episodes"):
            yield f"{where}: {len(seeds)} episodes, settings.episodes is {settings.get('episodes')!r}"
    for name in PAPER_SCENARIOS:
        if name not in alone:
            yield f"{MANIFEST_NAME}: no episodes of {name!r}"


def _differences(ours: Any, theirs: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(place, our value, their value) of everything that differs between two JSON values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            yield from _differences(ours.get(name), theirs.get(name), f"{path}.{name}")
    elif ours != theirs or type(ours) is not type(theirs):
        yield path, ours, theirs


# ---------------------------------------------------------------- the episodes


def _episode_problems(folder: RunFolder) -> Iterator[str]:
    content_end = folder.episodes_path.read_bytes()[-1:] if folder.episodes_path.exists() else b""
    if content_end != b"\n":
        yield (
            f"{EPISODES_NAME}: the last line isn't finished" if content_end else f"{EPISODES_NAME} is missing or empty"
        )
        return
    plan = Plan.from_manifest(folder.manifest)
    expected = set(plan.episodes())
    seen: set[Key] = set()
    for number, record in folder.numbered_records():
        place = f"{EPISODES_NAME} line {number}"
        problems = list(_shape_problems(record))
        if not problems:
            key = key_of(record)
            place += f" ({key})"
            if key in seen:
                problems.append("the same episode again")
            elif key not in expected:
                problems.append("isn't an episode of this entry")
            seen.add(key)
        if not problems:
            problems = list(replay_problems(record, SCENARIOS[record["scenario"]]))
        yield from (f"{place}: {problem}" for problem in problems)
    for key in plan.episodes():
        if key not in seen:
            yield f"{EPISODES_NAME}: {key} is missing"
    card = folder.manifest["agents"][0]
    if card["spec"] in OWN_PLAYERS:
        yield from _player_problems(folder, card["name"], card["spec"])


def _shape_problems(record: Record) -> Iterator[str]:
    """What makes a record unfit to be looked at any further; types have been checked when it was read."""
    extra = sorted(set(record) - set(REQUIRED))
    if extra:
        yield f"has an unknown field {extra[0]!r}"
    if record["scenario"] not in SCENARIOS:
        yield f"there is no scenario {record['scenario']!r}"
    for index, step in enumerate(record["steps"]):
        unknown = sorted(set(step) - STEP_KEYS - OPTIONAL_STEP_KEYS)
        if unknown:
            yield f"step {index} has an unknown field {unknown[0]!r}"
        if any(count < 0 for count in step.get("tokens", ())):
            yield f"step {index}: tokens is {step['tokens']!r}"
    seconds = record[MEASURED].get("seconds", 0.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        yield f"measured.seconds is {seconds!r}"


def replay_problems(record: Record, scenario: Scenario) -> Iterator[str]:
    """Where a record differs from what its own seed and responses give."""
    if record["error"] is not None:
        yield f"is unscored ({record['error']})"
        return
    try:
        played = replay(record, scenario, boards=False)
    except ReplayError as error:
        yield str(error)
        return
    if not played.end.over:
        yield f"ends after {len(played.steps)} responses, but the game goes on"
    for index, (claimed, step) in enumerate(zip(record["steps"], played.steps, strict=True)):
        for name, value in (
            ("action", step.action),
            ("valid", step.valid),
            ("unreadable", step.unreadable),
            ("reward", step.reward),
        ):
            if not _equal(claimed.get(name), value):
                yield f"step {index}: {name} is {claimed.get(name)!r}, the replay gives {value!r}"
    yield from _end_problems(record, played)


def _end_problems(record: Record, played: Replay) -> Iterator[str]:
    end = played.end
    for name, value in (
        ("returns", end.returns),
        ("successes", end.successes),
        ("terminated", end.terminated),
        ("truncated", end.truncated),
        ("observations_digest", observations_digest(step.observation for step in played.steps)),
    ):
        if not _equal(record[name], value):
            yield f"{name} is {record[name]!r}, the replay gives {value!r}"


def _equal(claimed: Any, value: Any) -> bool:
    """Equal values of equal kinds: ``true`` isn't ``1``, but ``1`` is ``1.0``, as JSON has it."""
    if isinstance(value, dict):
        return (
            isinstance(claimed, dict)
            and set(claimed) == set(value)
            and all(_equal(claimed[name], item) for name, item in value.items())
        )
    if isinstance(claimed, bool) is not isinstance(value, bool):
        return False
    return bool(claimed == value)


def _player_problems(folder: RunFolder, name: str, spec: str) -> Iterator[str]:
    """Whether one of the project's own players really wrote the responses that are under its name."""
    from agents.episode import EpisodeTask
    from agents.load import load_agent
    from agents.loop.rollout import rollout

    for matchup, seeds in Plan.from_manifest(folder.manifest).seeds.items():
        if matchup.agents != (name,):
            continue
        scenario = SCENARIOS[matchup.scenario]
        ours = {
            episode.seed: [step.turn.response for step in episode.steps]
            for episode in rollout(load_agent(spec), (EpisodeTask.of(scenario, seed) for seed in seeds))
        }
        for number, record in folder.numbered_records():
            if record["scenario"] != matchup.scenario or tuple(record["agents"].values()) != matchup.agents:
                continue
            theirs = [step["response"] for step in record["steps"]]
            for index, (a, b) in enumerate(zip(theirs, ours.get(record["seed"], ()), strict=False)):
                if a != b:
                    place = f"{EPISODES_NAME} line {number} ({key_of(record)}), step {index}"
                    yield f"{place}: the response is {a!r}, the agent {spec!r} answers {b!r}"
                    break
