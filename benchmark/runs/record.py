"""One episode as one JSON line: what counts, and apart from it what was only measured.

``Episode -> record -> line``. Everything that counts follows from the scenario, the seed and the responses, so that
two runs of deterministic agents give equal lines and a line can be checked by playing its responses again. What
depends on the machine (seconds, cache hits) stands in ``measured`` and in nothing else.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from agents.episode import Episode, Step

SCHEMA_VERSION = 1

Record = dict[str, Any]
"""A parsed line: ``schema_version scenario seed agents steps returns successes terminated truncated error
observations_digest measured``."""

MEASURED = "measured"
"""The only key whose value isn't determined by the seed and the responses."""

REQUIRED: dict[str, type | tuple[type, ...]] = {
    "schema_version": int,
    "scenario": str,
    "seed": int,
    "agents": dict,
    "steps": list,
    "returns": dict,
    "successes": dict,
    "terminated": bool,
    "truncated": bool,
    "error": (str, type(None)),
    "observations_digest": str,
    MEASURED: dict,
}


class Key(NamedTuple):
    """What an episode is known by: two records with the same key are two plays of the same task."""

    scenario: str
    agents: tuple[str, ...]
    """The agents' names in the order of the game's players."""
    seed: int

    def __str__(self) -> str:
        """For messages: ``frozen-lake, random, seed 10003``."""
        return f"{self.scenario}, {' against '.join(self.agents)}, seed {self.seed}"


def key_of(record: Record) -> Key:
    """The record's key."""
    return Key(record["scenario"], tuple(record["agents"].values()), record["seed"])


def observations_digest(observations: Iterable[str]) -> str:
    """A fingerprint of everything that the players read, in order: the layouts, the moves and the wording."""
    digest = hashlib.sha256()
    for observation in observations:
        digest.update(observation.encode("utf-8", "surrogatepass"))
        digest.update(b"\x00")
    return digest.hexdigest()[:32]


def to_record(episode: Episode) -> Record:
    """The record of an episode.

    A step holds ``round player response action valid reward``, and where they say something: ``unreadable`` (the
    reason of an invalid response), ``finish_reason`` (when not ``"stop"``) and ``tokens`` (``[prompt, completion]``).
    """
    cached = [step.turn.usage for step in episode.steps if step.turn.usage.cached]
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": episode.scenario,
        "seed": episode.seed,
        "agents": dict(episode.agents),
        "steps": [_step_record(step) for step in episode.steps],
        "returns": dict(episode.returns),
        "successes": dict(episode.successes),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "error": episode.error,
        "observations_digest": observations_digest(step.observation for step in episode.steps),
        MEASURED: {
            "seconds": round(episode.seconds, 6),
            "cached_tokens": [sum(usage[i] for usage in cached) for i in (0, 1)],
        },
    }


def _step_record(step: Step) -> dict[str, Any]:
    """One step; defaults are left out, since a large run has millions of steps."""
    turn = step.turn
    row: dict[str, Any] = {
        "round": step.index,
        "player": step.player,
        "response": turn.response,
        "action": step.action,
        "valid": step.valid,
        "reward": step.reward,
    }
    if step.unreadable is not None:
        row["unreadable"] = str(step.unreadable)
    if turn.finish_reason != "stop":
        row["finish_reason"] = turn.finish_reason
    if turn.usage[:2] != (0, 0):
        row["tokens"] = [turn.usage.prompt_tokens, turn.usage.completion_tokens]
    return row


def to_line(record: Record) -> bytes:
    """The record as one line of UTF-8, newline included.

    Raises:
        ValueError: for a NaN or infinite reward: nothing could be computed from it.
    """
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate in a response: escapes hold it, UTF-8 doesn't
        return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def parse_line(line: bytes) -> Record:
    """The record of a line.

    Raises:
        ValueError: the line isn't an episode record of this version; says why.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise ValueError(f"not an episode record but a JSON {type(record).__name__}")
    if record.get("schema_version") != SCHEMA_VERSION:
        version = record.get("schema_version")
        raise ValueError(f"schema_version is {version!r}, this version of textbench reads {SCHEMA_VERSION}")
    for name, kind in REQUIRED.items():
        if name not in record:
            raise ValueError(f"{name!r} is missing")
        if not isinstance(record[name], kind):
            raise ValueError(f"{name!r} is {type(record[name]).__name__}")
    _check_players(record)
    _check_steps(record)
    return record


STEP_KEYS = {"round", "player", "response", "action", "valid", "reward"}


def _check_players(record: Record) -> None:
    players = record["agents"].keys()
    if not players or not all(isinstance(name, str) for name in record["agents"].values()):
        raise ValueError(f"'agents' must be {{player: name}}, got {record['agents']!r}")
    for name, kind in (("returns", (int, float)), ("successes", (bool, int))):
        values = record[name]
        if values.keys() != players or not all(isinstance(value, kind) for value in values.values()):
            raise ValueError(f"{name!r} must have a value of every player, got {values!r}")


def _check_steps(record: Record) -> None:
    players = record["agents"].keys()
    for index, step in enumerate(record["steps"]):
        if not isinstance(step, dict) or not step.keys() >= STEP_KEYS:
            raise ValueError(f"step {index} must have {', '.join(sorted(STEP_KEYS))}")
        if step["player"].__hash__ is None or step["player"] not in players or not isinstance(step["response"], str):
            raise ValueError(f"step {index} has a player who isn't in the game, or a response that isn't text")
        if not isinstance(step["reward"], int | float) or not isinstance(step["round"], int):
            raise ValueError(f"step {index} has a reward or a round that isn't a number")
        tokens = step.get("tokens", _NO_TOKENS)
        if not isinstance(tokens, list) or len(tokens) != 2 or not all(isinstance(count, int) for count in tokens):
            raise ValueError(f"step {index}: tokens must be [prompt, completion], got {tokens!r}")


_NO_TOKENS = [0, 0]


def canonical_line(record: Record) -> bytes:
    """The record without what was only measured, in a form in which equal episodes are equal bytes."""
    counted = {name: value for name, value in record.items() if name != MEASURED}
    return json.dumps(counted, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def canonical_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """The canonical lines of a run's records in the order of (scenario, agents, seed)."""
    keyed = sorted((key_of(record), canonical_line(record)) for record in records)
    return (line for _, line in keyed)


def error_reason(error: str) -> str:
    """The reason in an episode's error, without the round and the player that it happened to."""
    prefix, separator, reason = error.partition("): ")
    return reason if separator and prefix.startswith("round ") else error
