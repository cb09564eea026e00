"""The author of an entry's responses, known by asking again if the player ships with the project.

The author of all others can't be told; there only the parts of the card must agree. A larger model (``smollm2``, and
the adapters on it) would be asked for hours: one episode of each scenario is asked again, which the entry's own text
decides, every answer after the stored ones before it, and most must be the same, since it computes in half precision.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agents.common.refusals import shown
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.models.provider import find_model
from agents.policy import as_requests
from agents.turn import Turn, TurnRequest
from agents.wrappers import innermost
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec, is_object
from benchmark.play.agents.players import OWN_PLAYERS, card_of, is_larger, is_shipped, load_policy
from benchmark.play.options import RunOptions
from benchmark.runs.folder import EPISODES_NAME, RunFolder
from benchmark.runs.manifest import MANIFEST_NAME
from benchmark.runs.plan import Plan
from benchmark.runs.record import Key, canonical_lines, key_of

OF_THE_MACHINE = ("model_forward", "model_parameters", "model_tokenizer", "prompt_map_digest")
"""Settings of a card that may change without a change of the agent."""
SAME_SHARE = 0.8
"""The least share of answers of a larger model that must be the stored ones."""
OF_A_SHIPPED_MODEL = ("temperature", "top_p", "max_tokens", "mode", "history", "legal_only")
"""The settings of a run with which a model that ships is made again."""


def kind_problems(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield what contradicts itself in an agent's spec, its kind and its model."""
    spec, kind, settings = innermost(card["spec"])[0], card["kind"], card["settings"]
    prefix, _, model = spec.partition(":")
    try:
        found = find_model(spec)
        named, its_model = found is not None, spec if found is None else found[1]
    except ValueError:  # a provider without a model
        named, its_model = True, spec
    if kind not in ([prefix] if named else ["scripted"] if spec in OWN_PLAYERS else ["scripted", prefix]):
        yield f"the card's kind is {shown(kind)}, its spec {shown(spec)}"
    if named and not is_object(spec):
        claims = {"model": model or its_model, "model_name": model or its_model}
        if model:
            claims["model_kind"] = prefix
        for name, ours in claims.items():
            if settings.get(name, ours) != ours:
                yield f"the card's {name} is {shown(settings[name])}, its spec {shown(spec)}"


def option_problem(spec: str, own: Mapping[str, Any], prompts: str | None) -> str | None:
    """Return which option a player that ships may not have in an entry, not even a seed; ``None`` if there is none."""
    if not is_shipped(spec):
        return None
    accepted: tuple[str, ...] = OF_A_SHIPPED_MODEL if spec not in OWN_PLAYERS else ()
    if is_larger(spec):  # what it computes in is the machine's choice, unless it is given
        accepted = (*accepted, "dtype")
    odd = [*sorted(own.keys() - set(accepted)), *(["prompts"] if prompts else [])]
    if not odd:
        return None
    allowed = ", ".join(accepted) or "none"
    return f"the agent {spec!r} has the option {shown(odd[0])}, and in an entry it may have {allowed}"


def author_problems(folder: RunFolder, plan: Plan) -> Iterator[str]:
    """Yield the responses under the name of one of the project's own players that it did not write."""
    card = folder.manifest["agents"][0]
    name, spec = card["name"], card["spec"]
    if not is_shipped(spec):
        return
    settings = folder.manifest["settings"]
    own = (settings.get("agent_options") or {}).get(name, {})
    if (problem := option_problem(spec, own, settings.get("prompts"))) is not None:
        yield f"{MANIFEST_NAME}: {problem}"
        return
    if is_larger(spec):
        own = {**own, "dtype": str(card["settings"].get("model_dtype"))}
    options = {option: settings.get(option) for option in OF_A_SHIPPED_MODEL}
    try:
        policy = load_policy(spec, RunOptions.of({**options, "agent_options": {name: own}}), name)
    except UsageError as error:
        yield f"the responses can't be compared with those of {spec!r} here: {error}"
        return
    ours = card_of(AgentSpec(name, spec), policy)["settings"]
    for place, mine, theirs in differing_claims(ours, card["settings"]):
        if theirs is not None or not place.startswith("prompt_map.texts."):  # which later versions add to
            yield f"{MANIFEST_NAME}: the card's {place} is {shown(theirs)}, that of {spec!r} is {shown(mine)}"
    yield from (_sampled_problems if is_larger(spec) else response_problems)(folder, plan, policy)


def differing_claims(ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (place, our value, their value) where two cards' settings differ, but for those of the machine."""
    return (one for one in differences(ours, theirs) if one[0].partition(".")[0] not in OF_THE_MACHINE)


def differences(ours: Any, theirs: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (place, our value, their value), ``None`` if there is none, where two JSON values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            yield from differences(ours.get(name), theirs.get(name), f"{place}.{name}".removeprefix("."))
    elif ours != theirs or type(ours) is not type(theirs):
        yield place, ours, theirs


def response_problems(folder: RunFolder, plan: Plan, policy: Any) -> Iterator[str]:
    """Yield where the responses or the tokens of an entry aren't those that this policy gives."""
    name, spec = (folder.manifest["agents"][0][key] for key in ("name", "spec"))
    tasks = [
        EpisodeTask.of(plan.scenarios[matchup.scenario], seed)  # with the entry's protocol
        for matchup, seeds in plan.seeds.items()
        for seed in seeds
        if matchup.agents == (name,)
    ]
    ours = {
        Key(episode.scenario, (name,), episode.seed): [turn for step in episode.steps for turn in step.turns]
        for episode in rollout(policy, tasks)
    }
    for _, number, record in folder.lines():
        place = f"{EPISODES_NAME} line {number} ({key_of(record)})"
        answers = [(i, each) for i, step in enumerate(record.steps) for each in step.turns]
        if spec in OWN_PLAYERS and any(any(each.usage[:2]) for _, each in answers) and len(record.agents) == 1:
            yield f"{place}: has tokens, but the agent {spec!r} has no model"
        for (index, each), turn in zip(answers, ours.get(key_of(record), ()), strict=False):
            theirs, counted = each.response, list(turn.usage[:2])
            if theirs != turn.response:
                answer = f"the agent {spec!r} answers {shown(turn.response)}"
                yield f"{place}, step {index}: the response is {shown(theirs)}, {answer}"
                break
            if spec not in OWN_PLAYERS and (told := list(each.usage[:2])) != counted:
                yield f"{place}, step {index}: tokens is {told}, the agent {spec!r} has {counted}"
                break


class _Stored:
    """Answers as an entry does, and keeps the requests."""

    def __init__(self, policy: Any, responses: Sequence[str]) -> None:
        self.name, self.history_turns = policy.name, policy.history_turns
        self._responses, self.requests = iter(responses), list[TurnRequest]()

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = as_requests(requests)
        self.requests += asked
        return [Turn(next(self._responses, "")) for _ in asked]


def _sampled_problems(folder: RunFolder, plan: Plan, policy: Any) -> Iterator[str]:
    """Yield where too few answers of one episode a scenario are those that a larger model gives."""
    name, spec = (folder.manifest["agents"][0][key] for key in ("name", "spec"))
    records = {key_of(record): record for *_, record in folder.lines()}
    text = b"".join(canonical_lines(records.values()))  # and not what was measured, which could be anything
    for matchup, seeds in plan.seeds.items():
        if matchup.agents != (name,):
            continue
        chosen = int(sha256(matchup.scenario.encode() + text).hexdigest(), 16)  # of no two scenarios by the same number
        record = records[Key(matchup.scenario, (name,), seeds[chosen % len(seeds)])]
        stored = [turn.response for step in record.steps for turn in step.turns]
        player = _Stored(policy, stored)
        list(rollout(player, [EpisodeTask.of(plan.scenarios[matchup.scenario], record.seed)]))
        ours = [turn.response for turn in policy.act(player.requests)]
        same = sum(mine == theirs for mine, theirs in zip(ours, stored, strict=False))
        if same < SAME_SHARE * len(stored):
            yield (
                f"{EPISODES_NAME} ({key_of(record)}): {same} of {len(stored)} responses are those of the agent "
                f"{spec!r}, at least {SAME_SHARE:.0%} should be"
            )
