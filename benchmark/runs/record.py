"""An episode as one JSON line: what counts, and apart from it what was only measured.

``Episode -> recorded -> line -> Episode``. What counts follows from the scenario, the seed and the responses, so two
runs of deterministic agents give equal lines, and a line can be checked by playing its responses again. What depends
on the machine (seconds, cache hits) stands in ``measured`` alone.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12 on

from agents.common.reading import opened, sealed
from agents.common.refusals import problem_of
from agents.episode import Episode, Step
from agents.models.served.answers import writable
from agents.protocol import MOST_RETRIES
from agents.turn import MOST_TOKENS, NO_USAGE, Refused, Turn, Usage, total_usage

TEXTS = ("reasoning", "tool_calls", "cut")
"""The texts of an answer besides the response."""
MAX_SEED = 2**53 - 1  # the largest whole number that JSON readers and tables of float64 hold exactly

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown keys, no ``true`` for 1, no ``"1"`` for 1, no NaN."""

# The upper ends are beyond anything real. Without them a forged line could make a sum infinite, and a table useless.
Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Tokens = Annotated[list[Count], Field(min_length=2, max_length=2)]
PaidTokens = Annotated[list[Count], Field(min_length=3, max_length=3)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Name = Annotated[str, Field(max_length=100)]
Metrics = dict[Name, Annotated[dict[Name, Annotated[float, Field(ge=-1e12, le=1e12)]], Field(max_length=50)]]


class _Answer(TypedDict):
    """An answer besides its text; what has its default is left out."""

    finish_reason: NotRequired[Annotated[str, Field(description='Why the model stopped, when it isn\'t "stop".')]]
    tokens: NotRequired[Annotated[Tokens, Field(description="Prompt and completion tokens, when there are any.")]]
    reasoning_tokens: NotRequired[Annotated[Count, Field(description="Of the completion tokens, as counted.")]]
    reasoning: NotRequired[Annotated[str, Field(description="The reasoning, if a server gives it apart.")]]
    tool_calls: NotRequired[Annotated[str, Field(description="The calls of tools in the answer, as JSON, if any.")]]
    cut: NotRequired[Annotated[str, Field(description="What a server sent behind the end of the response, if any.")]]


@with_config(STRICT)
class RefusedRecord(_Answer):
    """An answer that couldn't be read, after which the player was asked again."""

    response: Annotated[str, Field(description="What the player wrote, as it is.")]
    unreadable: Annotated[str, Field(description="Why it was invalid.")]


Refusals = Annotated[list[RefusedRecord], Field(max_length=MOST_RETRIES, description="Answers before this one.")]


@with_config(STRICT)
class StepRecord(_Answer):
    """One player's part of one round. What has its default is left out: a large run has millions of steps."""

    round: Annotated[int, Field(ge=0, description="From 0.")]
    player: Annotated[str, Field(description="Who acted, a key of the episode's agents.")]
    response: Annotated[str, Field(description="What the player wrote, as it is.")]
    action: Annotated[str, Field(description="The action that the game executed.")]
    valid: Annotated[bool, Field(description="Whether the response named a legal action.")]
    reward: Annotated[float, Field(description="The player's reward of this round.")]
    unreadable: NotRequired[Annotated[str, Field(description="Why the response was invalid.")]]
    refused: NotRequired[Refusals]


Models = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=1000)]
LeftOut = Annotated[list[Name], Field(max_length=20)]


@with_config(STRICT)
class Measured(TypedDict, total=False):
    """What depends on the machine; players of which there is nothing to tell are left out."""

    seconds: Annotated[Seconds, Field(description="Wall-clock time of the episode.")]
    cpu_seconds: Annotated[
        dict[str, Seconds], Field(description="Seconds of a core for a player that runs in this process.")
    ]
    cached_tokens: Annotated[Tokens, Field(description="Prompt and completion tokens from our response cache.")]
    cached_by_player: Annotated[dict[str, Tokens], Field(description="The same by player, in games of several.")]
    discarded_tokens: Annotated[
        dict[str, PaidTokens],
        Field(
            description="A player's tokens that were paid for and are in no step: of answers not taken, and of "
            "a round that a provider's error ended. Prompt, completion, and prompt tokens from the provider's cache."
        ),
    ]
    served_by: Annotated[dict[str, Models], Field(description="Models, with fingerprints, that answered a player.")]
    provider_cached_tokens: Annotated[
        dict[str, Count], Field(description="A player's prompt tokens from the provider's own cache.")
    ]
    left_out: Annotated[
        dict[str, LeftOut], Field(description="Parameters of a player's decoding that its server refused.")
    ]
    checksum: Annotated[
        str, Field(pattern="^[0-9a-f]{8}$", description="CRC-32 of the line without this key, which is its last.")
    ]


@with_config(STRICT)
class EpisodeRecord(TypedDict):
    """One episode: a line of ``episodes.jsonl``."""

    schema_version: Literal[1]
    scenario: Annotated[str, Field(description="A key of the manifest's scenarios.")]
    seed: Annotated[int, Field(ge=0, le=MAX_SEED, description="The start and all chances follow from it.")]
    agents: Annotated[dict[str, str], Field(min_length=1, description="The agent's name of every player, in order.")]
    steps: Annotated[list[StepRecord], Field(description="In the order of rounds and players.")]
    returns: Annotated[dict[str, float], Field(description="The sum of rewards of every player.")]
    successes: Annotated[dict[str, bool], Field(description="Whether each player succeeded, by the game's rules.")]
    metrics: NotRequired[Annotated[Metrics, Field(description="Figures of the game besides the return, by player.")]]
    terminated: Annotated[bool, Field(description="The game ended by its own rules.")]
    truncated: Annotated[bool, Field(description="The game ended by the step limit.")]
    error: Annotated[str | None, Field(description="Why the episode is unscored (a provider's error), or null.")]
    observations_digest: Annotated[str, Field(description="Fingerprint of everything that the players read.")]
    measured: Measured


class Key(NamedTuple):
    """The identity of an episode: two records with the same key are two plays of the same task."""

    scenario: str
    agents: tuple[str, ...]  # names in the order of the game's players
    seed: int

    def __str__(self) -> str:
        """Return the key as messages name it: ``frozen-lake, random, seed 10003``."""
        return f"{self.scenario}, {' against '.join(self.agents)}, seed {self.seed}"


def key_of(episode: Episode) -> Key:
    """Return the key of an episode."""
    return Key(episode.scenario, tuple(episode.agents.values()), episode.seed)


def observations_digest(steps: Iterable[Step]) -> str:
    """Fingerprint everything that the players read, in order: the layouts, the moves and the wording."""
    digest = hashlib.sha256()
    for step in steps:
        digest.update(step.observation.encode("utf-8", "surrogatepass") + b"\x00")
    return digest.hexdigest()[:32]


def recorded(episode: Episode, agents: Mapping[str, str] | None = None) -> Episode:
    """Add what an episode's line has of the observations, servers and time; ``agents`` has the names for results."""
    turns: dict[str, list[Turn]] = {player: [] for player in episode.agents}
    for step in episode.steps:
        for turn in step.turns:  # those of players without a model tell nothing
            if turn.usage is not NO_USAGE or turn.discarded is not NO_USAGE or turn.served_by or turn.left_out:
                turns[step.player].append(turn)
    told: dict[str, dict[str, Any]] = {}
    from_cache = [0, 0]
    for player, own in turns.items():
        cached = total_usage(turn.usage for turn in own if turn.usage.cached)
        from_cache = [one + more for one, more in zip(from_cache, cached[:2], strict=True)]
        unplayed = (turn.paid for who, turn in episode.unplayed if who == player)
        lost = total_usage([*(turn.discarded for turn in own), *unplayed])
        found = {
            "cpu_seconds": round(episode.cpu_seconds.get(player, 0.0), 6),
            "cached_by_player": [*cached[:2]] if len(turns) > 1 and any(cached) else [],
            "discarded_tokens": [] if lost == NO_USAGE else [*lost[:2], lost.cached_prompt_tokens],
            "served_by": [*dict.fromkeys(turn.served_by for turn in own if turn.served_by is not None)],
            "provider_cached_tokens": sum(turn.usage.cached_prompt_tokens for turn in own if not turn.usage.cached),
            "left_out": [*dict.fromkeys(name for turn in own for name in turn.left_out)],
        }
        for name, value in found.items():
            if value:
                told.setdefault(name, {})[player] = value
    metrics = {
        player: {name: float(value) for name, value in values.items() if isfinite(value)}
        for player, values in episode.metrics.items()
    }
    return replace(
        episode,
        agents=dict(episode.agents if agents is None else agents),
        metrics={player: values for player, values in metrics.items() if values},
        observations_digest=observations_digest(episode.steps),
        measured={
            "seconds": round(episode.seconds, 6),
            "cached_tokens": from_cache,
            **told,
        },
    )


def _document(episode: Episode) -> dict[str, Any]:
    """Return an episode as JSON has it, without what was only measured."""
    return {
        "schema_version": 1,
        "scenario": episode.scenario,
        "seed": episode.seed,
        "agents": episode.agents,
        "steps": [_row(step) for step in episode.steps],
        "returns": episode.returns,
        "successes": episode.successes,
        **({"metrics": episode.metrics} if episode.metrics else {}),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "error": episode.error,
        "observations_digest": episode.observations_digest,
    }


def _row(step: Step) -> dict[str, Any]:
    row: dict[str, Any] = {
        "round": step.index,
        "player": step.player,
        "response": step.turn.response,
        "action": step.action,
        "valid": step.valid,
        "reward": step.reward,
    }
    if step.unreadable is not None:
        row["unreadable"] = str(step.unreadable)
    if step.refused:
        row["refused"] = [
            {"response": each.turn.response, "unreadable": each.unreadable, **_answer(each.turn)}
            for each in step.refused
        ]
    return row | _answer(step.turn)


def _answer(turn: Turn) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if turn.finish_reason != "stop":
        row["finish_reason"] = turn.finish_reason
    if turn.usage is not NO_USAGE:
        if any(turn.usage[:2]):
            row["tokens"] = turn.usage[:2]
        if turn.usage.reasoning_tokens:
            row["reasoning_tokens"] = turn.usage.reasoning_tokens
    return row | {name: text for name in TEXTS if (text := getattr(turn, name))}


_TOLD = frozenset(get_type_hints(_Answer))


_plain_turn = lru_cache(maxsize=256)(Turn)
"""Players without a model give few different responses, and to make a turn takes longer than to look one up."""


def _turn_of(answer: Mapping[str, Any]) -> Turn:
    if _TOLD.isdisjoint(answer):
        return _plain_turn(answer["response"])
    prompt, completion = answer.get("tokens", (0, 0))
    usage = Usage(prompt, completion, reasoning_tokens=answer.get("reasoning_tokens", 0))
    texts = {name: answer.get(name, "") for name in TEXTS}
    return Turn(answer["response"], finish_reason=answer.get("finish_reason", "stop"), usage=usage, **texts)


def paid_tokens(episode: Episode) -> dict[str, tuple[int, int, int]]:
    """Return ``{player: (prompt, completion, those of the prompt that the provider's own cache had)}`` of a record.

    What our response cache answered wasn't paid for, and what was discarded was. Records of earlier versions don't say
    which player the cache answered: it is taken from the first one.
    """
    measured = episode.measured
    counted = {player: [0, 0, measured.get("provider_cached_tokens", {}).get(player, 0)] for player in episode.agents}
    for step in episode.steps:
        for turn in step.turns:
            if turn.usage is not NO_USAGE:
                counted[step.player][0] += turn.usage.prompt_tokens
                counted[step.player][1] += turn.usage.completion_tokens
    cached = measured.get("cached_by_player", {next(iter(counted)): measured.get("cached_tokens", (0, 0))})
    discarded = measured.get("discarded_tokens", {})
    for player, tokens in counted.items():
        for i, free in enumerate(cached.get(player, (0, 0))):
            tokens[i] = max(0, tokens[i] - free)
        for i, lost in enumerate(discarded.get(player, ())):
            tokens[i] += lost
    return {player: (tokens[0], tokens[1], tokens[2]) for player, tokens in counted.items()}


CLOSING = b"}}\n"  # of "measured", of the record, and of the line
sealed_line = partial(sealed, closing=CLOSING)  # adds the checksum to "measured", so that what counts stays as it is
opened_line = partial(opened, closing=CLOSING)


def to_line(episode: Episode) -> bytes:
    """Return a recorded episode as a line of UTF-8 without a checksum; raises a ValueError if a reward is NaN."""
    document = {**_document(episode), "measured": episode.measured}
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate: in a response escapes hold it, and nowhere else it means anything
        document = _without_surrogates(document)
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _without_surrogates(value: Any, name: str = "") -> Any:
    """Replace the halves of surrogate pairs in a document by U+FFFD, but in the responses."""
    if isinstance(value, str):
        return value if name == "response" else writable(value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item, key) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


def unscored(episode: Episode, reason: str) -> Episode:
    """Return the rest of an episode that no reader would accept: that it was played, its costs, and its error."""
    paid = {player: [min(count, MOST_TOKENS) for count in counts] for player, counts in paid_tokens(episode).items()}
    return replace(
        episode,
        steps=(),
        returns=dict.fromkeys(episode.agents, 0.0),
        successes=dict.fromkeys(episode.agents, False),
        metrics={},
        terminated=False,
        truncated=False,
        error=f"the episode can't be kept: {reason}",
        observations_digest=observations_digest(()),
        measured={"seconds": 0.0, "cached_tokens": [0, 0], "discarded_tokens": paid},
    )


@cache
def _episode_type() -> TypeAdapter[Any]:
    return TypeAdapter(EpisodeRecord)  # made when the first line is read, since it takes some milliseconds


def parse_line(line: bytes) -> Episode:
    """Return the episode of a line; raises a ValueError with what is wrong in it, and where."""
    line = opened_line(line)
    try:
        found: dict[str, Any] = _episode_type().validate_json(line)
    except ValidationError as error:
        if error.errors(include_input=False)[0]["type"] != "json_invalid":
            raise ValueError(problem_of(error)) from None
        found = _parse_surrogates(line)
    players = found["agents"].keys()
    del found["schema_version"]
    found["measured"].pop("checksum", None)  # of a line that another program has written anew: nothing to compare with
    for name in ("returns", "successes"):
        if found[name].keys() != players:
            raise ValueError(f"{name} must have a value of every player, got {found[name]!r}")
    for player in found.get("metrics", {}):
        if player not in players:
            raise ValueError(f"metrics must be those of {', '.join(players)}, got {player!r}")
    steps = []
    for index, row in enumerate(found["steps"]):
        if row["player"] not in players:
            raise ValueError(f"steps.{index}.player must be one of {', '.join(players)}, got {row['player']!r}")
        refused = tuple(Refused(_turn_of(each), each["unreadable"]) for each in row.get("refused", ()))
        done = row["action"], row["valid"], row.get("unreadable"), row["reward"]
        steps.append(Step(row["round"], row["player"], "", _turn_of(row), *done, refused=refused))
    return Episode(layout_seed=None, **found | {"steps": tuple(steps)})


def _parse_surrogates(line: bytes) -> dict[str, Any]:
    """Read a line that pydantic's parser refuses: no JSON, or a response with half a surrogate pair."""
    try:
        found: dict[str, Any] = json.loads(line.decode("utf-8"))  # of bytes json would guess the encoding
        _episode_type().validate_json(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        others = _without_surrogates(found)
        if others != found:
            raise ValueError("half a surrogate pair stands outside of a response")
    except ValidationError as error:
        raise ValueError(problem_of(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    return found


def canonical_line(episode: Episode) -> bytes:
    """Return an episode without what was only measured, in a form in which equal episodes are equal bytes."""
    return json.dumps(_document(episode), sort_keys=True, separators=(",", ":")).encode() + b"\n"


def canonical_lines(episodes: Iterable[Episode]) -> Iterator[bytes]:
    """Yield the canonical lines of a run's episodes in the order of (scenario, agents, seed)."""
    yield from (line for _, line in sorted((key_of(episode), canonical_line(episode)) for episode in episodes))


def error_reason(error: str) -> str:
    """Return the reason in an episode's error, without the round and the player that it happened to."""
    prefix, separator, reason = error.partition("): ")
    return reason if separator and prefix.startswith("round ") else error
