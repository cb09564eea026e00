"""The folder of a season: what is published when, and how the seeds follow from it.

* ``season.json``: what will be played, and the lock: the SHA-256 of a secret of 32 random bytes. Published first.
* ``agents/NAME.json``: a registered agent: the card that describes it in results, with all its settings, and the
  programs that it runs. Published before the reveal.
* ``secret.json``: the secret and the SHA-256 of every registration. Published last.

The seeds begin at an offset that follows from the secret *and* from the registrations. So an agent that knows seeds
can't have been registered for them: before the reveal the players lack the secret, and the organiser lacks the
registrations of others. Neither can be exchanged afterwards, since the lock and the offset would no longer fit. No file
can tell when it was published; the history of the repository does.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from agents import Policy
from agents.common import check_folder, problem_of, read_bytes, refusal, shown
from benchmark import StorageError, UsageError
from benchmark.entries import Terms, Verdict, check_entry, differing_claims
from benchmark.play import PlannedRun, RunOptions, flag_of, is_shipped, plan_run
from benchmark.runs import (
    MOST_AGENTS,
    MOST_SCENARIOS,
    MOST_SEEDS,
    STRICT,
    CardShape,
    RunFolder,
    code_version,
    find_scenarios,
    folder_name,
    now,
    num_players,
    strict_json,
    write_atomically,
)
from research.robustness.seasons.programs import check_programs
from textgames import did_you_mean

SEASON_NAME, SECRET_NAME = "season.json", "secret.json"
_LEAST_OFFSET, _OFFSETS = 2**32, 2**51
"""Episodes beyond what anybody has played by accident, and few enough that seeds stay whole numbers of 53 bits."""

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@with_config(STRICT)
class SeasonShape(TypedDict):
    """``season.json``."""

    kind: Literal["textbench-season"]
    name: Annotated[str, Field(max_length=200)]
    scenarios: Annotated[list[str], Field(min_length=1, max_length=MOST_SCENARIOS)]
    episodes: Annotated[int, Field(ge=1, le=MOST_SEEDS, description="Of every scenario and agent.")]
    protocol: str
    moves: str
    lock: Annotated[Hash, Field(description="SHA-256 of the secret's hexadecimal digits.")]
    opened: Annotated[str, Field(description="ISO 8601, UTC.")]
    textbench: Annotated[str, Field(description="Its version.")]


@with_config(STRICT)
class RegistrationShape(TypedDict):
    """``agents/NAME.json``."""

    season: Annotated[Hash, Field(description="SHA-256 of season.json.")]
    card: CardShape
    programs: NotRequired[
        Annotated[
            dict[str, Annotated[str, Field(max_length=10**6)]],
            Field(description="The text of every program that the agent runs, by the name of its file."),
        ]
    ]
    options: NotRequired[Annotated[dict[str, Any], Field(description="Of an agent that runs programs.")]]
    author: Annotated[str, Field(max_length=1000)]


@with_config(STRICT)
class SecretShape(TypedDict):
    """``secret.json``."""

    secret: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    agents: Annotated[dict[str, Hash], Field(max_length=MOST_AGENTS, description="SHA-256 of every registration.")]
    seed_offset: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Season:
    """What a season's folder holds."""

    path: Path  # the folder
    about: dict[str, Any]  # the content of ``season.json``
    agents: Mapping[str, dict[str, Any]]  # ``{name: registration}``
    revealed: dict[str, Any] | None  # the content of ``secret.json``; ``None`` before

    @classmethod
    def open(cls, path: Path) -> "Season":
        """Read and check a folder; a UsageError if what was published hasn't its form or doesn't fit together."""
        if not (path / SEASON_NAME).exists():
            seasons = [file.parent.name for file in path.parent.glob(f"*/{SEASON_NAME}")]
            raise UsageError(
                f"there is no {path / SEASON_NAME}, which a season has; textbench season new --help says how to make "
                f"one{did_you_mean(path.name, seasons)}"
            )
        try:
            check_folder(path)
        except OSError as error:
            raise UsageError(refusal(error)) from None
        about = _read(path / SEASON_NAME, SeasonShape)
        agents = {file.stem: _read(file, RegistrationShape) for file in sorted((path / "agents").glob("*.json"))}
        season_scenarios(about["scenarios"])
        digest = _digest(path / SEASON_NAME)
        for name, one in agents.items():
            if one["season"] != digest:
                raise UsageError(f"{path}: the agent {name!r} was registered for another {SEASON_NAME}")
            if folder_name(one["card"]["name"]) != name:
                raise UsageError(f"{path}: agents/{name}.json registers {one['card']['name']!r}")
        revealed = _read(path / SECRET_NAME, SecretShape) if (path / SECRET_NAME).exists() else None
        season = cls(path, about, agents, revealed)
        if revealed is not None:
            season._check_reveal(revealed)
        return season

    def _check_reveal(self, revealed: Mapping[str, Any]) -> None:
        if sha256(revealed["secret"].encode()).hexdigest() != self.about["lock"]:
            raise UsageError(f"{self.path}: the secret isn't the one that the season was locked with")
        found = self._registered()
        for name in sorted(found.keys() | revealed["agents"].keys()):
            if name not in revealed["agents"]:
                raise UsageError(f"{self.path}: the agent {name!r} was registered after the secret was revealed")
            if name not in found:
                raise UsageError(f"{self.path}: the registration of {name!r} is gone")
            if found[name] != revealed["agents"][name]:
                raise UsageError(f"{self.path}: the registration of {name!r} was changed after the secret was revealed")
        if revealed["seed_offset"] != self._offset(revealed["secret"]):
            raise UsageError(f"{self.path}: the seeds aren't those that follow from the secret and the agents")

    def _registered(self) -> dict[str, str]:
        return {name: _digest(self.path / "agents" / f"{name}.json") for name in self.agents}

    def _follows(self, secret: str, *what: str) -> str:
        """Return what follows from the secret, the season's own file and all registrations: 64 hexadecimal digits."""
        text = json.dumps([_digest(self.path / SEASON_NAME), sorted(self._registered().items()), *what])
        return hmac.new(secret.encode(), text.encode(), sha256).hexdigest()

    def _offset(self, secret: str) -> int:
        return _LEAST_OFFSET + int(self._follows(secret), 16) % _OFFSETS

    def key_of(self, name: str) -> str:
        """Return the key of an agent's programs, unknown when they were registered; a UsageError before the reveal."""
        assert self.seed_offset  # which is refused before the reveal
        return self._follows(str(self.revealed and self.revealed["secret"]), "key", name)

    @property
    def seed_offset(self) -> int:
        """The episode of every scenario that is the season's first; a UsageError before the reveal."""
        if self.revealed is None:
            raise UsageError(
                f"the seeds of the season {str(self.path)!r} follow from a secret that isn't revealed yet; its "
                f"organiser reveals it: textbench season reveal {self.path}"
            )
        return int(self.revealed["seed_offset"])

    @property
    def mark(self) -> dict[str, str]:
        """What runs and entries that were played in it have in their manifests."""
        return {"name": self.about["name"], "sha256": _digest(self.path / SEASON_NAME)}

    @property
    def terms(self) -> Terms:
        about = self.about
        rules = {name: about[name] for name in ("protocol", "moves")}
        return Terms(
            tuple(about["scenarios"]),
            about["episodes"],
            self.seed_offset,
            rules,
            exact=True,
            season=str(self.path),
            mark=self.mark,
        )

    def plan_run(
        self, options: RunOptions, say: Callable[[str], None], policies: Mapping[str, Policy] | None = None
    ) -> PlannedRun:
        """Decide who plays what by the terms of the season, and check the agents."""
        planned = plan_run(self._decided(options), say, policies, self.key_of)
        for card in planned.players.check(planned.plan):
            self.check_card(card, planned.options.by_agent.get(card["name"], {}))
        return planned._replace(season=self.mark)

    def _decided(self, options: RunOptions) -> RunOptions:
        """Replace what ``--season`` stands for: scenarios, episodes, seeds and rules, and the agents that ship."""
        terms = self.terms
        decided: dict[str, Any] = {
            "scenarios": terms.scenarios,
            "episodes": terms.episodes,
            "seed_offset": terms.seed_offset,
        }
        decided |= terms.settings
        playing = ("suites", "settings", "level", "levels", "twin", "twins")
        for name in (*decided, *playing, "resample", "samples", "until", "legal_only", "protocols"):
            if name in options.given and getattr(options, name) != decided.get(name):
                raise UsageError(f"{flag_of(name)} can't be given with --season: the season {self.path} decides it")
        # a folder from elsewhere names no agent whose code or server would be used; the user alone does that
        specs = {one["card"]["name"]: one["card"]["spec"] for one in self.agents.values()}
        shipped = [name if name == spec else f"{name}={spec}" for name, spec in specs.items() if is_shipped(spec)]
        if not options.agents and not shipped:
            raise UsageError(f"none of {', '.join(specs)} ships with textbench; say who plays: --agent NAME=SPEC")
        given = options.given | {"scenarios", "episodes", "agents"}
        return replace(options, **decided, agents=options.agents or tuple(shipped), given=given)

    def check(self, entry: Path, beside: Path | None = None) -> Verdict:
        """Check an entry by the season's terms, its agent's card and programs; ``beside`` is where other entries
        lie."""
        verdict = check_entry(entry, self.terms, beside)
        try:
            manifest = RunFolder.open(entry).manifest
            own = manifest["settings"].get("agent_options") or {}
            for card in manifest["agents"]:
                self.check_card(card, own.get(card["name"], {}))
        except UsageError as error:
            verdict.problems.append(str(error))
        if not verdict.problems:
            name = manifest["agents"][0]["name"]
            check_programs(self.agents[folder_name(name)], self.key_of(name), entry, verdict)
        return verdict

    def withdrawn(self, entries: Iterable[Path]) -> list[dict[str, str]]:
        """List the registered agents without an entry, as ``agent`` and ``author``; none before the reveal."""
        entered = set[str]()
        for entry in entries:
            with suppress(UsageError):  # which is told when the entry is checked
                entered |= {card["name"] for card in RunFolder.open(entry).manifest["agents"]}
        registered = self.agents.values() if self.revealed is not None else ()
        every = ({"agent": one["card"]["name"], "author": one["author"]} for one in registered)
        return [one for one in every if one["agent"] not in entered]

    def check_card(self, card: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Raise a UsageError for an agent, as a manifest has it with its ``own`` options, that isn't registered so."""
        registered = self.agents.get(folder_name(card["name"]))
        if registered is None:
            raise UsageError(
                f"the agent {card['name']!r} isn't registered in {self.path}; registered are {', '.join(self.agents)}"
            )
        known = registered["card"]
        both = (
            *((place, known[place], card[place]) for place in ("name", "spec", "kind") if known[place] != card[place]),
            *differing_claims(known["settings"], card["settings"]),
            *(differing_claims(registered["options"], without_key(own)) if "options" in registered else ()),
        )
        for place, ours, theirs in both:
            if place.startswith("prompt_map.texts."):  # long, and not written by hand
                raise UsageError(
                    f"the agent {card['name']!r} isn't the registered one: its prompts are others; play it with the "
                    "--prompts that it was registered with, or without where it had none"
                )
            raise UsageError(
                f"the agent {card['name']!r} isn't the registered one: its {place} is {shown(theirs)}, registered is "
                f"{shown(ours)}"
            )


def new_season(path: Path, secret_file: Path, settings: Mapping[str, Any]) -> Season:
    """Open a season: draw its secret, keep it in a file of the organiser's, and write what is published."""
    if (path / SEASON_NAME).exists():
        raise UsageError(f"{path} holds a season already; choose another folder")
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{path} isn't empty; choose another folder")
    if secret_file.resolve().is_relative_to(path.resolve()):
        raise UsageError(f"the secret can't be kept in {path}, which is published: --secret FILE elsewhere")
    names = season_scenarios(settings["scenarios"])
    secret = secrets.token_hex(32)
    lock = sha256(secret.encode()).hexdigest()
    facts = {"opened": now(), "textbench": code_version()["version"]}
    about = {"kind": "textbench-season", **settings, "scenarios": names, "lock": lock, **facts}
    try:
        (path / "agents").mkdir(parents=True)
        secret_file.parent.mkdir(parents=True, exist_ok=True)
        with secret_file.open("x") as stream:  # never over the secret of another season
            secret_file.chmod(0o600)
            stream.write(secret + "\n")
    except FileExistsError as error:
        raise UsageError(f"there is {error.filename} already; choose another file or folder") from None
    except OSError as error:
        raise StorageError(f"can't write {error.filename}: {error.strerror}") from None
    _write(path / SEASON_NAME, about)
    return Season.open(path)


def season_scenarios(names: Sequence[str]) -> tuple[str, ...]:
    """Find the scenarios of a season by name; the name of a suite stands for all of its scenarios.

    A season's folder may be a stranger's, so a game that a module registers can't be in one: to find it, the module
    would be imported.
    """
    for name in names:
        if ":" in name:
            raise UsageError(
                f"the game {shown(name)} can't be in a season, for which no module is imported; accepted are the "
                "scenarios of textbench list scenarios, their levels and their twins"
            )
    found = find_scenarios(names)
    for name, scenario in found.items():
        if num_players(scenario) > 1:
            raise UsageError(
                f"{name} is for several players, and a season is of scenarios for one, as an entry holds one agent's "
                "episodes; play it with textbench run"
            )
    return tuple(found)


def without_key(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's options without the key of its programs, which the season decides."""
    return {option: value for option, value in own.items() if option != "key"}


def register(
    season: Season, card: Mapping[str, Any], author: str, own: Mapping[str, Any], programs: Mapping[str, str]
) -> Path:
    """Register an agent with the text of its programs; return the file that is to be published."""
    if season.revealed is not None:
        raise UsageError(f"the secret of {season.path} is revealed, so no more agents can be registered")
    name = folder_name(card["name"])
    file = season.path / "agents" / f"{name}.json"
    if name in season.agents:
        raise UsageError(f"{file} registers an agent of this name; play under another one: --agent NAME=SPEC")
    file.parent.mkdir(exist_ok=True)
    about = {"season": _digest(season.path / SEASON_NAME), "card": card, "author": author}
    about |= {"programs": dict(programs), "options": without_key(own)} if programs else {}
    _write(file, about)
    return file


def reveal(season: Season, secret: str) -> Season:
    """Publish the secret, after which the agents are fixed and the seeds known."""
    if season.revealed is not None:
        raise UsageError(f"the secret of {season.path} is revealed already")
    if sha256(secret.encode()).hexdigest() != season.about["lock"]:
        raise UsageError(f"this isn't the secret that {season.path} was locked with")
    if not season.agents:
        raise UsageError(f"nobody is registered: textbench season commit {season.path} --agent SPEC")
    about = {"secret": secret, "agents": season._registered(), "seed_offset": season._offset(secret)}
    _write(season.path / SECRET_NAME, about)
    return Season.open(season.path)


def _digest(file: Path) -> str:
    return sha256(read_bytes(file)).hexdigest()


def _write(file: Path, data: Mapping[str, Any]) -> None:
    write_atomically(file, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _read(file: Path, shape: Any) -> dict[str, Any]:
    try:
        data: dict[str, Any] = TypeAdapter(shape).validate_python(strict_json(read_bytes(file)))
        return data
    except OSError as error:
        raise UsageError(f"can't read {file}: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"{file} hasn't the form of this version of textbench: {problem_of(error)}") from None
    except ValueError as error:
        raise UsageError(f"{file} can't be read: {error}") from None
