"""One episode as one JSON line: what counts, and apart from it what was only measured.

``Episode -> record -> line``. Everything that counts follows from the scenario, the seed and the responses, so that
two runs of deterministic agents give equal lines and a line can be checked by playing its responses again. What
depends on the machine (seconds, cache hits) stands in ``measured`` and in nothing else.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from agents.common.checksum import opened, sealed
from agents.common.refusals import problem_of
from agents.episode import Episode, Step
from agents.models.served.answers import writable
from agents.protocol import MOST_RETRIES
from agents.turn import MOST_TOKENS, NO_USAGE, Turn, total_usage

SCHEMA_VERSION = 1
MEASURED = "measured"  # the only key whose value isn't determined by the seed and the responses
MAX_SEED = 2**53 - 1  # the largest whole number that JSON readers and tables of float64 hold exactly

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown keys, no ``true`` for 1, no ``"1"`` for 1, no NaN."""

# The upper ends are beyond anything real. Without them a forged line could make a sum infinite, and a table useless.
Tokens = Annotated[list[Annotated[int, Field(ge=0, le=MOST_TOKENS)]], Field(min_length=2, max_length=2)]
PaidTokens = Annotated[list[Annotated[int, Field(ge=0, le=MOST_TOKENS)]], Field(min_length=3, max_length=3)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Metrics = dict[
    Annotated[str, Field(max_length=100)],
    Annotated[
        dict[Annotated[str, Field(max_length=100)], Annotated[float, Field(ge=-1e12, le=1e12)]], Field(max_length=50)
    ],
]


@with_config(STRICT)
class RefusedRecord(TypedDict):
    """An answer that couldn't be read, after which the player was asked again."""

    response: Annotated[str, Field(description="What the player wrote, as it is.")]
    unreadable: Annotated[str, Field(description="Why it was invalid.")]
    finish_reason: NotRequired[Annotated[str, Field(description='Why the model stopped, when it isn\'t "stop".')]]
    tokens: NotRequired[Annotated[Tokens, Field(description="Prompt and completion tokens, when there are any.")]]
    reasoning_tokens: NotRequired[Annotated[int, Field(ge=0, le=10**9, description="As in a step.")]]
    reasoning: NotRequired[Annotated[str, Field(description="As in a step.")]]
    tool_calls: NotRequired[Annotated[str, Field(description="As in a step.")]]
    cut: NotRequired[Annotated[str, Field(description="As in a step.")]]


@with_config(STRICT)
class StepRecord(TypedDict):
    """One player's part of one round. What says nothing is left out: a large run has millions of steps."""

    round: Annotated[int, Field(ge=0, description="From 0.")]
    player: Annotated[str, Field(description="Who acted, a key of the episode's agents.")]
    response: Annotated[str, Field(description="What the player wrote, as it is.")]
    action: Annotated[str, Field(description="The action that the game executed.")]
    valid: Annotated[bool, Field(description="Whether the response named a legal action.")]
    reward: Annotated[float, Field(description="The player's reward of this round.")]
    unreadable: NotRequired[Annotated[str, Field(description="Why the response was invalid.")]]
    finish_reason: NotRequired[Annotated[str, Field(description='Why the model stopped, when it isn\'t "stop".')]]
    tokens: NotRequired[Annotated[Tokens, Field(description="Prompt and completion tokens, when there are any.")]]
    reasoning_tokens: NotRequired[
        Annotated[
            int, Field(ge=0, le=MOST_TOKENS, description="Those of the completion that are reasoning, as counted.")
        ]
    ]
    reasoning: NotRequired[
        Annotated[str, Field(description="The text of the reasoning, where a server gives it apart from the response.")]
    ]
    tool_calls: NotRequired[Annotated[str, Field(description="The calls of tools in the answer, as JSON, if any.")]]
    cut: NotRequired[Annotated[str, Field(description="What a server sent behind the end of the response, if any.")]]
    refused: NotRequired[
        Annotated[
            list[RefusedRecord], Field(max_length=MOST_RETRIES, description="Answers before this one, with retry.")
        ]
    ]


@with_config(STRICT)
class Measured(TypedDict, total=False):
    """What depends on the machine."""

    seconds: Annotated[Seconds, Field(description="Wall-clock time of the episode.")]
    cached_tokens: Annotated[
        Tokens, Field(description="Prompt and completion tokens that the response cache answered.")
    ]
    cached_by_player: Annotated[
        dict[str, Tokens], Field(description="The same of every player, in games of several, where any.")
    ]
    discarded_tokens: Annotated[
        dict[str, PaidTokens],
        Field(
            description="A player's tokens that were paid for and are in no step, where any: of answers that weren't "
            "taken, and of a round that a provider's error ended; those of prompts, of completions, and of the prompts "
            "those that the provider had in its own cache."
        ),
    ]
    served_by: Annotated[
        dict[str, Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=1000)]],
        Field(description="The models, with fingerprints, that a server said had answered a player, where one did."),
    ]
    provider_cached_tokens: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=MOST_TOKENS)]],
        Field(description="Of a player's prompt tokens those that the provider had in its own cache, where any."),
    ]
    left_out: Annotated[
        dict[str, Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=20)]],
        Field(description="The parameters of a player's decoding that its server refused and weren't sent, where any."),
    ]
    checksum: Annotated[
        str,
        Field(
            pattern="^[0-9a-f]{8}$",
            description="CRC-32 of the line without this key, which is its last. Lines of earlier versions have none.",
        ),
    ]


@with_config(STRICT)
class EpisodeRecord(TypedDict):
    """One episode: a line of ``episodes.jsonl``."""

    schema_version: Literal[1]
    scenario: Annotated[str, Field(description="A key of the manifest's scenarios.")]
    seed: Annotated[int, Field(ge=0, le=MAX_SEED, description="The start and all chances follow from it.")]
    agents: Annotated[dict[str, str], Field(min_length=1, description="The agent's name of every player, in order.")]
    steps: Annotated[list[StepRecord], Field(description="What was done, in the order of rounds and players.")]
    returns: Annotated[dict[str, float], Field(description="The sum of rewards of every player.")]
    successes: Annotated[dict[str, bool], Field(description="Whether each player succeeded, by the game's rules.")]
    metrics: NotRequired[
        Annotated[Metrics, Field(description="What the game tells of a player besides the return, where it tells any.")]
    ]
    terminated: Annotated[bool, Field(description="The game ended by its own rules.")]
    truncated: Annotated[bool, Field(description="The game ended by the step limit.")]
    error: Annotated[str | None, Field(description="Why the episode is unscored (a provider's error), or null.")]
    observations_digest: Annotated[str, Field(description="Fingerprint of everything that the players read.")]
    measured: Measured


Record = dict[str, Any]
"""A parsed line, which has the shape of :class:`EpisodeRecord`."""


class Key(NamedTuple):
    """What an episode is known by: two records with the same key are two plays of the same task."""

    scenario: str
    agents: tuple[str, ...]  # names in the order of the game's players
    seed: int

    def __str__(self) -> str:
        """The key as messages name it: ``frozen-lake, random, seed 10003``."""
        return f"{self.scenario}, {' against '.join(self.agents)}, seed {self.seed}"


def key_of(record: Record) -> Key:
    """The key of a parsed record."""
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
    reason of an invalid response), ``finish_reason`` (when not ``"stop"``), ``tokens`` (``[prompt, completion]``),
    ``reasoning_tokens``, ``reasoning``, and ``refused`` (the answers before, where the player could answer again).
    """
    cached: dict[str, list[int]] = {}
    for step in episode.steps:
        for usage in (turn.usage for turn in step.turns if turn.usage.cached):
            before = cached.get(step.player, [0, 0])
            cached[step.player] = [before[i] + usage[i] for i in (0, 1)]
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": episode.scenario,
        "seed": episode.seed,
        "agents": dict(episode.agents),
        "steps": [step_record(step) for step in episode.steps],
        "returns": dict(episode.returns),
        "successes": dict(episode.successes),
        **({"metrics": metrics} if (metrics := defined_metrics(episode.metrics)) else {}),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "error": episode.error,
        "observations_digest": observations_digest(step.observation for step in episode.steps),
        MEASURED: {
            "seconds": round(episode.seconds, 6),
            "cached_tokens": [sum(tokens[i] for tokens in cached.values()) for i in (0, 1)],
            **({"cached_by_player": cached} if cached and len(episode.agents) > 1 else {}),
            **({"discarded_tokens": discarded} if (discarded := _discarded_tokens(episode)) else {}),
            **_reports_of_servers(episode.steps),
        },
    }


def _discarded_tokens(episode: Episode) -> dict[str, list[int]]:
    """``{player: [prompt, completion, cached prompt tokens]}`` that were paid for and are in no step, where any."""
    usages = [(step.player, turn.discarded) for step in episode.steps for turn in step.turns]
    usages += [(player, turn.paid) for player, turn in episode.unplayed]
    totals = {player: total_usage(usage for of, usage in usages if of == player) for player in episode.agents}
    return {
        player: [total.prompt_tokens, total.completion_tokens, total.cached_prompt_tokens]
        for player, total in totals.items()
        if total != NO_USAGE
    }


def _reports_of_servers(steps: Iterable[Step]) -> dict[str, dict[str, Any]]:
    """What servers said besides the responses, by player: ``served_by provider_cached_tokens left_out``, where any."""
    served_by: dict[str, list[str]] = {}
    discounted: dict[str, int] = {}
    left_out: dict[str, list[str]] = {}
    for player, turn in ((step.player, turn) for step in steps for turn in step.turns):
        if turn.served_by is not None and turn.served_by not in served_by.setdefault(player, []):
            served_by[player].append(turn.served_by)
        if turn.usage.cached_prompt_tokens and not turn.usage.cached:
            discounted[player] = discounted.get(player, 0) + turn.usage.cached_prompt_tokens
        for name in turn.left_out:
            if name not in left_out.setdefault(player, []):
                left_out[player].append(name)
    told: dict[str, dict[str, Any]] = {"served_by": served_by}
    told |= {"provider_cached_tokens": discounted, "left_out": left_out}
    return {name: by_player for name, by_player in told.items() if by_player}


def defined_metrics(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """``{player: {name: value}}`` without the figures that aren't defined, which games give as NaN or infinity."""
    known = {
        player: {name: float(value) for name, value in values.items() if isfinite(value)}
        for player, values in metrics.items()
    }
    return {player: values for player, values in known.items() if values}


def step_record(step: Step) -> dict[str, Any]:
    """Return what a record holds of a step."""
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
    if step.refused:
        row["refused"] = [
            {"response": each.turn.response, "unreadable": each.unreadable, **_fields_of(each.turn)}
            for each in step.refused
        ]
    return row | _fields_of(turn)


def _fields_of(turn: Turn) -> dict[str, Any]:
    """What a record says of an answer besides its text, as far as it says something."""
    row: dict[str, Any] = {}
    if turn.finish_reason != "stop":
        row["finish_reason"] = turn.finish_reason
    if turn.usage[:2] != (0, 0):
        row["tokens"] = [turn.usage.prompt_tokens, turn.usage.completion_tokens]
    if turn.usage.reasoning_tokens:
        row["reasoning_tokens"] = turn.usage.reasoning_tokens
    return row | {name: text for name in ("reasoning", "tool_calls", "cut") if (text := getattr(turn, name))}


def to_line(record: Record) -> bytes:
    """The record as one line of UTF-8, newline included, without a checksum.

    Raises:
        ValueError: for a NaN or infinite reward: nothing could be computed from it.
    """
    record = {**{name: value for name, value in record.items() if name != MEASURED}, MEASURED: record[MEASURED]}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: in a response escapes hold it, and nowhere else it means anything
        record = _without_surrogates(record)
        return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _without_surrogates(value: Any, name: str = "") -> Any:
    """The record with U+FFFD for the halves of surrogate pairs in everything but the responses."""
    if isinstance(value, str):
        return value if name == "response" else writable(value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item, key) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


CLOSING = b"}}\n"  # of "measured", of the record, and of the line


def sealed_line(line: bytes) -> bytes:
    """A line of :func:`to_line` with its checksum, at the end of ``measured``: what counts stays as it is."""
    return sealed(line, CLOSING)


def opened_line(line: bytes) -> bytes:
    """The line without its checksum, where it has one.

    Raises:
        ValueError: the line isn't the one that was written.
    """
    return opened(line, CLOSING)


def unscored(record: Record, reason: str) -> Record:
    """What is kept of an episode that no reader would accept: that it was played, what was paid, and its error."""
    paid = {player: [min(count, MOST_TOKENS) for count in counts] for player, counts in paid_tokens(record).items()}
    return {
        **{name: record[name] for name in ("schema_version", "scenario", "seed", "agents")},
        "steps": [],
        "returns": dict.fromkeys(record["agents"], 0.0),
        "successes": dict.fromkeys(record["agents"], False),
        **{"terminated": False, "truncated": False, "error": f"the episode can't be kept: {reason}"},
        "observations_digest": observations_digest(()),
        MEASURED: {"seconds": 0.0, "cached_tokens": [0, 0], "discarded_tokens": paid},
    }


@cache
def _episode_type() -> TypeAdapter[Any]:
    return TypeAdapter(EpisodeRecord)  # made when the first line is read, since it takes some milliseconds


def parse_line(line: bytes) -> Record:
    """The record of a line.

    Raises:
        ValueError: the line isn't an episode record of this version; says what is wrong with it, and where.
    """
    line = opened_line(line)
    try:
        record: Record = _episode_type().validate_json(line)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["type"] != "json_invalid":
            raise ValueError(problem_of(error)) from None
        record = _parse_surrogates(line)
    players = record["agents"].keys()
    record[MEASURED].pop("checksum", None)  # of a line that another program has written anew: nothing to compare with
    for name in ("returns", "successes"):
        if record[name].keys() != players:
            raise ValueError(f"{name} must have a value of every player, got {record[name]!r}")
    for player in record.get("metrics", {}):
        if player not in players:
            raise ValueError(f"metrics must be those of {', '.join(players)}, got {player!r}")
    for index, step in enumerate(record["steps"]):
        if step["player"] not in players:
            raise ValueError(f"steps.{index}.player must be one of {', '.join(players)}, got {step['player']!r}")
    return record


def _parse_surrogates(line: bytes) -> Record:
    """A line that pydantic's parser refuses: not JSON, or a response with half a surrogate pair, as models write it."""
    try:
        record: Record = json.loads(line.decode("utf-8"))  # of bytes json would guess the encoding
        whole = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")
        _episode_type().validate_json(whole)
        rest = {**record, "steps": [_without_responses(step) for step in record["steps"]]}
        json.dumps(rest, ensure_ascii=False).encode()
    except ValidationError as error:
        raise ValueError(problem_of(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    return record


def _without_responses(step: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "response": "", "refused": [{**each, "response": ""} for each in step.get("refused", ())]}


def canonical_line(record: Record) -> bytes:
    """The record without what was only measured, in a form in which equal episodes are equal bytes."""
    counted = {name: value for name, value in record.items() if name != MEASURED}
    return json.dumps(counted, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def canonical_lines(records: Iterable[Record]) -> Iterator[bytes]:
    """The canonical lines of a run's records in the order of (scenario, agents, seed)."""
    keyed = sorted((key_of(record), canonical_line(record)) for record in records)
    return (line for _, line in keyed)


def answers_of(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All answers of a step: those that were refused, and the last one, which is the step itself."""
    return [*step.get("refused", ()), step]


def tokens_of(answers: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Of prompts and completions, the tokens of several answers together."""
    prompts, completions = 0, 0
    for answer in answers:
        prompt, completion = answer.get("tokens", (0, 0))
        prompts, completions = prompts + prompt, completions + completion
    return prompts, completions


def paid_tokens(record: Record) -> dict[str, tuple[int, int, int]]:
    """``{player: (prompt, completion, of the prompt tokens those that the provider's own cache had)}`` of an episode.

    What our response cache answered wasn't paid for, and what was discarded was. Records of earlier versions don't say
    whom the cache answered: it is taken from the first player.
    """
    measured = record[MEASURED]
    counted = {player: [0, 0, measured.get("provider_cached_tokens", {}).get(player, 0)] for player in record["agents"]}
    for step in record["steps"]:
        for answer in answers_of(step):
            for i, tokens in enumerate(answer.get("tokens", (0, 0))):
                counted[step["player"]][i] += tokens
    cached = measured.get("cached_by_player", {next(iter(counted)): measured.get("cached_tokens", (0, 0))})
    discarded = measured.get("discarded_tokens", {})
    for player, tokens in counted.items():
        for i, free in enumerate(cached.get(player, (0, 0))):
            tokens[i] = max(0, tokens[i] - free)
        for i, lost in enumerate(discarded.get(player, ())):
            tokens[i] += lost
    return {player: (tokens[0], tokens[1], tokens[2]) for player, tokens in counted.items()}


def error_reason(error: str) -> str:
    """The reason in an episode's error, without the round and the player that it happened to."""
    prefix, separator, reason = error.partition("): ")
    return reason if separator and prefix.startswith("round ") else error
