"""The agents of a run: from what ``--agent`` gives to a policy, and to the card that describes it in results.

``"NAME=SPEC" -> AgentSpec -> load_agent -> policy -> card``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from agents.load import check_agent, known_options, load_agent, options_taken
from agents.models.base import LanguageModel
from agents.models.embedded import EMBEDDED, PROVIDER, embedded_agents
from agents.models.provider import providers
from agents.protocol import OF_MODELS, TOOLS
from agents.turn import Policy, check_game, is_served
from agents.wrappers import Around, models_inside, wrapped_in
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec, code_of, is_object, with_agent_options
from benchmark.play.claims import with_agent_folders
from benchmark.play.options import RunOptions, flag_of
from benchmark.play.progress import teller
from benchmark.runs.plan import Plan
from benchmark.runs.provenance import data_digest
from textgames.extras import CPU_TORCH
from textgames.scenarios import Scenario

OWN_PLAYERS = ("random", "blind", "greedy", "planner")
"""The project's scripted players, whose every response follows from the seed."""

INSTEAD = (
    "play those with a language model that reads any text (hf:Qwen/Qwen2.5-0.5B-Instruct, openai:MODEL), or train one "
    'from nothing (python -m agents.msgrpo, model = "tiny-legal")'
)
"""What to take where a very small model can't read the game."""


def is_shipped(spec: str) -> bool:
    """Report whether every response of a player follows from the seed: it is scripted, or a model that ships."""
    known = providers()
    named = (known[name].models for name in ("embedded", "adapters", "gguf"))  # whose models have names of their own
    return spec in OWN_PLAYERS or spec in EMBEDDED or any(spec in models for models in named)


def is_larger(spec: str) -> bool:
    """Report whether a model ships, or has a name here, and takes too long to be asked for everything again."""
    return is_shipped(spec) and spec not in (*OWN_PLAYERS, *EMBEDDED, *providers()["embedded"].models)


class Players:
    """The agents of one run, of which a Python program may have made some: ``policies``, by name.

    Attributes:
        served: the names of those whose model is behind a server, as far as :meth:`check` has made them.
        scripted: the names of those without a model, likewise.
    """

    def __init__(
        self, specs: Sequence[AgentSpec], options: RunOptions, policies: Mapping[str, Policy] | None = None
    ) -> None:
        self.specs: dict[str, AgentSpec] = {}
        for spec in specs:
            if spec.name in self.specs:
                how = "in a mapping, {name: agent}" if is_object(spec.spec) else f"--agent OTHER={spec.spec}"
                raise UsageError(f"two agents are named {spec.name!r}; name one of them differently: {how}")
            self.specs[spec.name] = spec
        self.policies = dict(policies or {})
        self.options = options
        self.served: set[str] = set()
        self.scripted: set[str] = set()
        self._kept: dict[str, Policy] = {}

    def check(self, plan: Plan) -> list[dict[str, Any]]:
        """Make every agent once, so that what is missing is reported before the first episode; returns their cards."""
        cards = []
        for name, spec in self.specs.items():
            policy = self.load(name)
            # a program's own language model plays by its own protocol
            for attribute, protocol in OF_MODELS.items():
                own, run = getattr(policy, attribute, None), self.options.protocol == protocol
                if isinstance(own, bool) and own != run:
                    raise UsageError(
                        f"agent {name!r} {'plays' if own else 'does not play'} {protocol} and the run "
                        f"{'does' if run else 'does not'}, which is another protocol: set {attribute} alike for both"
                    )
            check_plays(name, policy, plan.scenarios_of(name))
            cards.append(card_of(spec, policy))
            self.served |= {name} if is_served(policy) else set()
            self.scripted |= {name} if cards[-1]["kind"] == "scripted" else set()
            in_memory = isinstance(getattr(policy, "model", None), LanguageModel)
            if name not in self.policies and (not in_memory or not self._kept or spec.spec in embedded_models()):
                self._kept[name] = policy  # not every large model at once
        return cards

    def check_unmade(self) -> None:
        """Refuse what :meth:`check` would, but a missing key, without loading weights or asking a server."""
        for name, spec in self.specs.items():
            if name not in self.policies:
                unloaded(spec.spec, self.options, name)

    def check_names(self) -> None:
        """Ask each server once, before the first episode, whether it has the model; else raises a UsageError."""
        for name in self.specs:
            policy = self.policies.get(name) or self._kept.get(name)
            unknown = getattr(policy, "unknown_model", None) if name in self.served else None
            if unknown is not None and (reason := unknown()) is not None:
                raise UsageError(f"agent {name!r}: {reason}")

    def load(self, name: str) -> Policy:
        if name in self.policies:
            return self.policies[name]
        kept = self._kept.pop(name, None)
        return kept if kept is not None else load_policy(self.specs[name].spec, self.options, name)


def load_policy(spec: str, options: RunOptions, name: str | None = None, *, weights: bool = True) -> Policy:
    """Make the policy of a spec with a run's options, and before them those that are the agent's own by its name.

    Without ``weights`` a language model isn't loaded and can't act, and a key may be missing. A UsageError says in one
    sentence what is wrong: no such agent, a missing key or package, a bad setting.
    """
    if is_object(spec):
        raise UsageError(
            f"the agent {spec.partition(':')[2]} is an object of a Python program, which has to go on itself: "
            "benchmark.evaluate(agents, ..., out=FOLDER)"
        )
    values = {option: getattr(options, option, None) for option in known_options()}
    values["tools"] = True if options.protocol == TOOLS else None
    values |= options.by_agent.get(spec if name is None else name, {})
    try:
        make = load_agent if weights else check_agent
        return make(spec, **{option: value for option, value in values.items() if value is not None})
    except (ValueError, TypeError, ImportError, OSError, AttributeError) as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
        who = repr(spec) if name in (None, spec) else f"{name!r} ({spec})"
        raise UsageError(sentence if repr(spec) in sentence else f"agent {who}: {sentence}") from None


def unloaded(spec: str, options: RunOptions, name: str | None = None) -> Policy:
    """Return the policy of a spec as :func:`load_policy` makes it, without weights."""
    return load_policy(spec, options, name, weights=False)


def load_one(text: str, options: RunOptions, *scenarios: Scenario) -> tuple[Policy, RunOptions]:
    """Return the policy of a command that has a single agent, and the options with the agent's own read.

    ``text`` is ``SPEC`` or ``NAME=SPEC``. Raises as :func:`load_policy`, and if it can't play a scenario.
    """
    options = with_agent_folders(replace(options, agents=(text,)))
    agent = AgentSpec.parse(options.agents[0])
    options = with_agent_options(options, {agent.name: agent.spec})
    policy = load_policy(agent.spec, options, agent.name)
    check_plays(text, policy, scenarios)
    # as they are asked for long before anything is printed
    for told in (*not_taken([agent], options), *not_read(agent, scenarios)):
        teller(quiet=False)(told)
    return policy, options


def check_plays(name: str, policy: Policy, scenarios: Iterable[Scenario]) -> None:
    """Refuse, by a UsageError, an agent that can't play one of these games, before it is asked to."""
    for scenario in scenarios:
        if (reason := why_not_played(policy, scenario)) is not None:
            raise UsageError(f"agent {name!r} on {scenario.name}: {reason}")


def why_not_played(policy: Policy, scenario: Scenario) -> str | None:
    """Return why an agent can't play a scenario's game; ``None`` if it can, as language models can play any."""
    try:
        check_game(policy, scenario.game())
    except ValueError as error:
        return str(error)
    return None


def not_taken(specs: Iterable[AgentSpec], options: RunOptions) -> list[str]:
    """Return a sentence about what was given for agents and none of them has, such as the mode of a scripted player."""
    agents, names = [*specs], [name for name in known_options() if name in options.given]
    taken = [({}, True) if is_object(spec.spec) else options_taken(spec.spec) for spec in agents]
    unused = [flag_of(name) for name in names if not any(others or name in own for own, others in taken)]
    none_takes = f"{agents[0].name} takes no" if len(agents) == 1 else "no agent of this run takes"
    return [f"{none_takes} {', '.join(unused)}, so nothing changes by it"] if unused else []


def not_cached(cards: Iterable[Mapping[str, Any]], options: RunOptions) -> list[str]:
    """Return a sentence where the response cache that was given keeps nothing, as all models sample; by their cards."""
    models = {card["name"]: card["settings"]["temperature"] for card in cards if "temperature" in card["settings"]}
    if options.cache is None or not models or 0 in models.values():
        return []
    return [f"--cache keeps responses of temperature 0 alone; those of {', '.join(models)} are drawn anew each time"]


def not_read(spec: AgentSpec, scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Yield a sentence if an agent can't read some of its games, with what to play them with instead."""
    inside = [] if is_object(spec.spec) else models_inside(spec.spec)
    names = [scenario.name for scenario in scenarios]
    for reads in filter(None, (provider.reads(model) for provider, model in inside)):
        if strange := [name for name in names if name not in reads]:
            yield (
                f"{spec.name} can't read {', '.join(strange)}: it has learnt {', '.join(reads)} alone, and nearly all "
                f"of its answers elsewhere are invalid; {INSTEAD}"
            )


def card_of(spec: AgentSpec, policy: Policy) -> dict[str, Any]:
    """Return an agent's card, ``name spec kind settings``; a wrapper has its settings beside those of its agent."""
    if (wrapped := wrapped_in(spec.spec)) is not None and isinstance(policy, Around):
        pairs = zip(wrapped.inside, policy.players, strict=True)
        card, *others = [card_of(spec._replace(spec=inner), player) for inner, player in pairs]
        own = _plain(policy.settings) | ({"others": [other["settings"] for other in others]} if others else {})
        return card | {"spec": spec.spec, "settings": card["settings"] | {wrapped.name: own}}
    model = getattr(policy, "model", None)
    if model is None:
        settings = _plain(getattr(policy, "settings", {}))
        if not isinstance(settings, dict):
            raise UsageError(f"agent {spec.name!r}: settings are plain data by name, a dictionary, got {settings!r}")
    else:
        settings = {"model": getattr(model, "name", type(model).__name__)}
        settings |= {f"model_{key}": value for key, value in _plain(getattr(model, "settings", {})).items()}
        settings |= _plain(getattr(policy, "decoding", {}))
        settings |= {name: True for name in OF_MODELS if getattr(policy, name, False) is True}
    if (prompt_map := getattr(policy, "prompt_map", None)) is not None:
        plain = _plain(prompt_map.settings)
        settings |= {"mode": plain.get("mode"), "history_turns": plain.get("history_turns")}
        settings |= {"prompt_map": plain, "prompt_map_digest": data_digest(plain)}
    if is_object(spec.spec) and (code := code_of(policy)):
        settings |= {"code": code}
    kind = "scripted" if model is None else spec.spec.partition(":")[0]
    return {"name": spec.name, "spec": spec.spec, "kind": kind, "settings": settings}


def _plain(value: Any) -> Any:
    """Return settings as JSON holds them, so that a card equals itself after a round trip through a file."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):  # whose order is another one in every process
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, float) and not math.isfinite(value):  # which JSON doesn't have
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def missing_models() -> str | None:
    """Return why the models that ship with the package don't play here, and what adds them; ``None`` if they can."""
    missing = PROVIDER.missing()
    return missing and f"without the embedded models, which need {missing}; without a GPU, add {CPU_TORCH}"


def embedded_models() -> list[str]:
    """Return the specs of the models that ship with the package and can run here."""
    return [] if PROVIDER.missing() else list(embedded_agents())
