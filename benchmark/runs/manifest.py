"""``manifest.json``: what a run or an entry was asked for, of whom, with which versions. Its shape, and reading it."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from agents.common.files import check_folder
from agents.common.reading import read_bytes
from agents.common.redaction import Redactor
from agents.common.refusals import problem_of, shown
from benchmark.errors import UsageError
from benchmark.runs.record import MAX_SEED, STRICT
from textgames.names import did_you_mean

MANIFEST_NAME = "manifest.json"
RUN_KIND, ENTRY_KIND = "textbench-run", "textbench-entry"
MANIFEST_VERSION = 1
OLD_PROTOCOL = {"protocol": "default", "moves": "listed"}
"""What runs were played by before there was a choice; their manifests don't say it."""

# What one run may be of: far more than anybody plays, and few enough that every command still answers in seconds. The
# paper's games with all levels and twins are some hundreds; 100 agents that meet in 17 games for two have 168,300
# matchups; games that ship have at most 80 rounds; 100 agents on 57 scenarios with 500 episodes each are 2,850,000.
MOST_AGENTS, MOST_SCENARIOS, MOST_MATCHUPS, MOST_SEATS = 1_000, 2_000, 200_000, 100
MOST_ROUNDS = 100_000  # in an episode, as its horizon
MOST_SOLVED = 1_000  # rounds of an episode for whose scenario scale and luck are computed, in some twenty seconds
MOST_SEEDS, MOST_EPISODES = 10_000_000, 20_000_000  # in one matchup, and in all together

Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Dollars = Annotated[float, Field(ge=0, le=1e6)]


@with_config(STRICT)
class PriceShape(TypedDict):
    """US dollars per million tokens."""

    input: Annotated[Dollars, Field(description="Of the prompt.")]
    output: Annotated[Dollars, Field(description="Of the completion, its reasoning included.")]
    cached_input: NotRequired[Annotated[Dollars, Field(description="Of the prompt in its cache; else as input.")]]
    source: NotRequired[Annotated[str, Field(max_length=200, description="Where the price is from.")]]


Price = dict[str, Any]
"""A parsed price, which has the shape of :class:`PriceShape`."""


@with_config(STRICT)
class CodeShape(TypedDict):
    """Which code played."""

    version: Annotated[str, Field(description="Of textbench.")]
    commit: NotRequired[Annotated[str | None, Field(description="Null where it ran from an installed package.")]]
    dirty: NotRequired[Annotated[bool | None, Field(description="Whether the code had uncommitted changes.")]]


@with_config(STRICT)
class SessionShape(CodeShape):
    """One process that played."""

    started: Annotated[str, Field(description="ISO 8601, UTC.")]
    finished: Annotated[str | None, Field(description="ISO 8601, UTC; null while it plays, and if it was killed.")]
    outcome: NotRequired[Annotated[str, Field(description="finished, interrupted, or why it stopped.")]]
    notices: NotRequired[Annotated[list[str], Field(description="Parameters left out, budgets raised, and the like.")]]


@with_config(STRICT)
class CardShape(TypedDict):
    """One of a run's agents."""

    name: Annotated[str, Field(description="What results call it.")]
    spec: Annotated[str, Field(description="What --agent took.")]
    kind: Annotated[str, Field(description="scripted, or what makes the model: hf, openai, ...")]
    settings: Annotated[dict[str, Any], Field(description="Model, decoding and prompt texts, as far as it has them.")]


@with_config(STRICT)
class ScenarioShape(TypedDict):
    """The whole definition of a scenario, so that a folder can be read if the project's own has changed."""

    env_id: Annotated[str, Field(description="The Gymnasium id of the game.")]
    kwargs: Annotated[dict[str, Any], Field(description="The game's settings.")]
    horizon: Annotated[int, Field(ge=1, le=MOST_ROUNDS, description="Rounds until an episode is truncated.")]
    first_seed: Annotated[Seed, Field(description="Episode k has this seed plus k.")]
    training: Annotated[bool, Field(description="Whether the paper trains on it.")]
    level: NotRequired[Annotated[int, Field(ge=1, le=10**4, description="Which level of its game's ladder it is.")]]
    vocabulary: NotRequired[Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Digest of a twin's words.")]]


@with_config(STRICT)
class MatchupShape(TypedDict):
    """The agents at one table of a scenario, and the seeds."""

    scenario: Annotated[str, Field(description="A key of scenarios.")]
    agents: Annotated[list[str], Field(min_length=1, max_length=MOST_SEATS, description="In the order of the seats.")]
    seeds: list[Annotated[list[Seed], Field(min_length=2, max_length=2, description="First and last, both included.")]]


@with_config(STRICT)
class PlayedSeasonShape(TypedDict):
    """The season that a run or an entry was played in."""

    name: Annotated[str, Field(max_length=200, description="As its season.json has it.")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of its season.json.")]


@with_config(ConfigDict(strict=True, extra="allow"))
class SettingsShape(TypedDict, total=False):
    """The options that decide what is played. Resuming and validating check all of them, by the options' own table."""

    agents: list[str]
    scenarios: list[str]
    episodes: int
    protocol: str
    moves: str


Limits = Annotated[
    list[Annotated[int, Field(ge=1)]],
    Field(max_length=1000, description="What settings.episodes was before a run with until was extended."),
]


@with_config(STRICT)
class ManifestShape(TypedDict):
    """The manifest of a run folder or of a leaderboard entry."""

    schema_version: Literal[1]
    kind: Annotated[Literal["textbench-run", "textbench-entry"], Field(description="A run, or an agent's entry.")]
    textbench: CodeShape
    python: NotRequired[Annotated[str, Field(description="Its version.")]]
    platform: NotRequired[Annotated[str, Field(description="Operating system and processor.")]]
    packages: NotRequired[Annotated[dict[str, str], Field(description="Versions of the packages that matter.")]]
    settings: SettingsShape
    operation: NotRequired[Annotated[dict[str, Any], Field(description="How fast, how long and for how much.")]]
    agents: Annotated[list[CardShape], Field(max_length=MOST_AGENTS, description="All that play.")]
    prices: NotRequired[Annotated[dict[str, PriceShape], Field(description="Of the agents whose tokens cost any.")]]
    scenarios: Annotated[dict[str, ScenarioShape], Field(max_length=MOST_SCENARIOS, description="What is played.")]
    matchups: Annotated[list[MatchupShape], Field(max_length=MOST_MATCHUPS, description="All episodes, by table.")]
    extended: NotRequired[Limits]
    season: NotRequired[Annotated[PlayedSeasonShape, Field(description="If it was played in one.")]]
    sessions: NotRequired[Annotated[list[SessionShape], Field(description="The processes that played, in order.")]]
    merged_from: NotRequired[Annotated[list[str], Field(description="The runs that textbench merge put together.")]]
    agent: NotRequired[Annotated[str, Field(description="An entry's agent.")]]
    author: NotRequired[Annotated[str, Field(description="Who submits an entry, as they say.")]]
    note: NotRequired[Annotated[str, Field(description="What they say of it.")]]


Manifest = dict[str, Any]
"""A parsed manifest, which has the shape of :class:`ManifestShape`."""


@cache
def _shape() -> TypeAdapter[Any]:
    return TypeAdapter(ManifestShape)  # made when the first manifest is read, since it takes some milliseconds


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a run folder or an entry; raises a UsageError if there is none, or it isn't ours."""
    file = path / MANIFEST_NAME
    if not path.exists():
        beside = [folder.parent.name for folder in path.parent.glob(f"*/{MANIFEST_NAME}")]
        raise UsageError(f"there is no {path}{did_you_mean(path.name, beside)}")
    if not path.is_dir():
        raise UsageError(f"{path} is a file; a run or an entry is a folder with a {MANIFEST_NAME}")
    try:
        if os.path.lexists(file):
            check_folder(path)  # a link in it may lead to anything, and a pipe would keep us waiting for ever
        content = Redactor.from_environment().scrub_bytes(read_bytes(file))
        manifest: Manifest = _shape().validate_python(strict_json(content))
        manifest["settings"] = {**OLD_PROTOCOL, **manifest["settings"]}
        json.dumps(manifest, ensure_ascii=False).encode()  # fails for half a surrogate pair, which can't be written
        return manifest
    except FileNotFoundError:
        # A lock without a manifest is what a run leaves that was killed before it had written its manifest.
        advice = "; if a run was killed here before its first episode, start it again: textbench run ... --out "
        advice = f"{advice}{path}" if (path / ".lock").exists() else ""
        if inside := sorted(str(file.parent) for file in path.glob(f"*/{MANIFEST_NAME}")):  # as --protocols makes it
            advice = f"; there are runs in it, name one: {', '.join(inside[:8])}"
        raise UsageError(f"{path} isn't a textbench run: it has no {MANIFEST_NAME}{advice}") from None
    except OSError as error:
        raise UsageError(f"can't read {error.filename or file}: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"{file} isn't a manifest that this version of textbench reads: {problem_of(error)}") from None
    except ValueError as error:
        raise UsageError(
            f"{file} isn't a manifest: {error}; put it back from a copy, or play again into another folder: textbench "
            "run ... --out DIR"
        ) from None


def is_final(manifest: Manifest) -> bool:
    """Report whether no more episodes are coming, by the manifest: a run that was killed seems to be played."""
    sessions = manifest.get("sessions", [])
    return manifest["kind"] == ENTRY_KIND or bool(sessions and sessions[-1]["finished"])


def strict_json(data: bytes) -> Any:
    """Parse JSON on which all readers agree: UTF-8, no key twice in an object, no NaN; else raises a ValueError."""

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise ValueError(f"the key {shown(next(name for name in names if names.count(name) > 1))} stands twice")
        return found

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} isn't a JSON number")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error})") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
