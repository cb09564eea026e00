"""From what a person writes (``"planner"``, ``"openai:gpt-4o-mini"``, ``"my_agents:Mine"``) to a player.

``spec, options -> Policy``. Options are one flat set, so that a command can hand all of its own to every agent: each
agent takes those that concern it. A name that concerns no agent at all is a mistake and is refused.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from agents.turn import Policy
from textgames.names import did_you_mean

ENTRY_POINT_GROUP = "textbench.agents"
"""Packages add agents under this group: ``[project.entry-points."textbench.agents"]``, ``mine = "my_package:Mine"``."""

BASELINES = {
    "random": "agents.baselines.random:RandomPlayer",
    "greedy": "agents.baselines.search:GreedyPlayer",
    "planner": "agents.baselines.search:PlannerPlayer",
    "human": "agents.baselines.human:HumanPlayer",
}
EMBEDDED = ("tiny", "tiny-msgrpo-frozen-lake", "tiny-msgrpo-snake")
"""The models that ship with the package, where the installed version has them."""

EMBEDDED_ALIASES = {"tiny-msgrpo": "tiny-msgrpo-frozen-lake"}
"""Other specs for them: the post-trained model, without saying on what, is the one of the paper's headline game."""

_EMBEDDED_FOLDER = Path(__file__).parent / "tiny" / "weights"
_DECODING = ("temperature", "top_p", "max_tokens", "stop")
_PROMPT = ("mode", "history", "prompts", "system")
_POLICY = (*_DECODING, *_PROMPT, "prompt_map", "decoding", "name", "cache")
_OPENAI = (
    *("base_url", "api_key", "timeout", "max_retries", "omit"),
    *("max_tokens_field", "send_seed", "extra_body", "headers"),
)
_TRANSFORMERS = ("dtype", "device", "revision", "adapter", "trust_remote_code", "max_batch_tokens")
_VLLM = ("chat", "engine")
OPTIONS = (*_POLICY, *_OPENAI, *_TRANSFORMERS, *_VLLM, "seed")
"""Every option that some agent takes."""


def load_agent(spec: str, **options: Any) -> Policy:
    """Make an agent.

    Args:
        spec: one of

            - ``random``, ``greedy``, ``planner``, ``human``;
            - ``tiny``, ``tiny-msgrpo-frozen-lake``, ``tiny-msgrpo-snake``: the models that ship with the package
              (``tiny-msgrpo`` is the first of the two that are post-trained);
            - ``hf:PATH_OR_REPO``: a causal model in Hugging Face format, run here;
            - ``openai:MODEL``: a model behind an OpenAI-compatible server;
            - ``vllm:PATH_OR_REPO``: a model run here by vLLM;
            - ``module:attr`` or ``path/to/file.py:attr``: your own policy, or a class or function that makes one;
            - a name that an installed package has registered under ``textbench.agents``.
        **options: those that don't concern the agent are ignored.

            - of every language model: ``temperature top_p max_tokens stop`` (or ``decoding``, a
              :class:`~agents.models.base.Decoding`), ``mode history prompts system`` (or ``prompt_map``, a
              :class:`~agents.prompt.PromptMap`; ``prompts`` is a file), ``name``, ``cache`` (a file, or a
              :class:`~agents.models.cache.ResponseCache`);
            - of ``openai:``: those of :class:`~agents.models.openai.OpenAIModel`;
            - of ``hf:``: those of ``TransformersModel.from_pretrained``;
            - of ``vllm:``: ``chat``, and ``engine``, a dictionary of engine arguments;
            - of ``random``: ``seed``.

    Raises:
        ValueError: no such agent, or an option with a wrong value; the message names what exists.
        TypeError: an option that no agent has, or an object that isn't a policy.
        ModuleNotFoundError: the agent needs a package that isn't installed; the message has the command.
    """
    for name in options:
        if name not in OPTIONS:
            raise TypeError(
                f"no agent has an option {name!r}{did_you_mean(name, OPTIONS)}; there are {', '.join(OPTIONS)}"
            )
    kind, separator, rest = spec.partition(":")
    if spec in BASELINES:
        return _baseline(spec, options)
    if spec in EMBEDDED or spec in EMBEDDED_ALIASES:
        return _embedded(EMBEDDED_ALIASES.get(spec, spec), options)
    if separator and kind in _MODELS:
        if not rest:
            raise ValueError(f"{spec!r} names no model; write {kind}:{_EXAMPLES[kind]}")
        return _language_agent(_MODELS[kind](rest, options), spec, options)
    if (registered := _registered().get(spec)) is not None:
        return _as_policy(_import_entry_point(registered), spec, options)
    if separator:
        return _as_policy(_import_attribute(kind, rest, spec), spec, options)
    raise ValueError(_unknown(spec))


def embedded_agents() -> tuple[str, ...]:
    """The specs of the models that this installed version ships."""
    return tuple(name for name in EMBEDDED if (_EMBEDDED_FOLDER / name / "config.json").is_file())


def _unknown(spec: str) -> str:
    names = (*BASELINES, *EMBEDDED, *_registered())
    forms = ", ".join([*(f"{kind}:{example}" for kind, example in _EXAMPLES.items()), "my_module:MyAgent"])
    return f"unknown agent {spec!r}{did_you_mean(spec, names)}; there are {', '.join(names)}, and {forms}"


# ---------------------------------------------------------------- language models


def _language_agent(model: Any, spec: str, options: Mapping[str, Any]) -> Policy:
    from agents.models.base import Decoding
    from agents.models.cache import ResponseCache, cached
    from agents.policy import LanguageAgentPolicy

    cache = options.get("cache")
    if cache is not None:
        model = cached(model, cache if isinstance(cache, ResponseCache) else ResponseCache(cache))
    decoding = options.get("decoding")
    if decoding is None:
        decoding = Decoding(**{name: options[name] for name in _DECODING if options.get(name) is not None})
    policy: Policy = LanguageAgentPolicy(model, _prompt_map(options), decoding, options.get("name") or spec)
    return policy


def _prompt_map(options: Mapping[str, Any]) -> Any:
    from dataclasses import replace

    from agents.prompt import PromptMap, PromptTexts

    if options.get("prompt_map") is not None:
        return options["prompt_map"]
    prompts = options.get("prompts")
    texts = PromptTexts.default() if prompts is None else PromptTexts.from_file(prompts)
    if options.get("system") is not None:
        texts = replace(texts, system=options["system"])
    settings = {"mode": options.get("mode"), "history_turns": options.get("history")}
    return PromptMap(texts=texts, **{name: value for name, value in settings.items() if value is not None})


def _some(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}


def _openai(model: str, options: Mapping[str, Any]) -> Any:
    from agents.models.openai import OpenAIModel

    return OpenAIModel(model, **_some(options, _OPENAI))


def _transformers(path_or_repo: str, options: Mapping[str, Any]) -> Any:
    from agents.models.local.transformers import TransformersModel

    return TransformersModel.from_pretrained(path_or_repo, **_some(options, _TRANSFORMERS))


def _vllm(path_or_repo: str, options: Mapping[str, Any]) -> Any:
    from agents.models.vllm import VLLMModel

    return VLLMModel(path_or_repo, chat=options.get("chat"), **(options.get("engine") or {}))


_MODELS: dict[str, Callable[[str, Mapping[str, Any]], Any]] = {"hf": _transformers, "openai": _openai, "vllm": _vllm}
_EXAMPLES = {"hf": "Qwen/Qwen2.5-0.5B-Instruct", "openai": "gpt-4o-mini", "vllm": "Qwen/Qwen2.5-3B-Instruct"}


def _embedded(name: str, options: Mapping[str, Any]) -> Policy:
    if name not in embedded_agents():
        there = ", ".join(embedded_agents()) or "none"
        raise ValueError(
            f"the embedded model {name!r} isn't in this version of textbench (it ships: {there}); "
            "play a model of your own with hf:PATH_OR_REPO, or one of " + ", ".join(BASELINES)
        )
    model = _transformers(str(_EMBEDDED_FOLDER / name), options)
    model.name = name  # not the folder that this machine has it in
    return _language_agent(model, name, options)


# ---------------------------------------------------------------- other agents


def _baseline(name: str, options: Mapping[str, Any]) -> Policy:
    module, _, attribute = BASELINES[name].partition(":")
    return _as_policy(getattr(importlib.import_module(module), attribute), name, options)


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def _import_entry_point(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the registered agent {entry.name!r} ({entry.value}) can't be imported: {error}") from error


def _import_attribute(module: str, attribute: str, spec: str) -> Any:
    """What ``module:attr`` or ``file.py:attr`` names. The working directory counts, as for ``python -m``."""
    if not attribute:
        raise ValueError(f"{spec!r} names no agent in {module}; write {module}:NAME")
    found = _import_file(Path(module)) if module.endswith(".py") else _import_module(module, spec)
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, tuple(name for name in vars(found) if not name.startswith("_")))
            raise ValueError(f"{spec!r}: {module} has no {part!r}{near}")
        found = getattr(found, part)
    return found


def _import_module(module: str, spec: str) -> Any:
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # the agent's own module misses something: its message says what
        raise ValueError(f"{_unknown(spec)}. As a user agent: no module {error.name!r} can be imported here") from None
    finally:
        if added:
            sys.path.remove(here)


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{str(path)!r} isn't a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _as_policy(found: Any, spec: str, options: Mapping[str, Any]) -> Policy:
    """A policy, from itself or from a class or function that makes one (with the options that it takes by name)."""
    if inspect.isclass(found) or (callable(found) and not isinstance(found, Policy)):
        found = _make(found, spec, {name: value for name, value in options.items() if value is not None})
    if not isinstance(found, Policy):
        raise TypeError(
            f"{spec!r} is a {type(found).__name__} and no policy: a policy has a name and "
            "act(requests) -> list of agents.Turn (see agents.turn.Policy)"
        )
    return found


def _make(factory: Callable[..., Any], spec: str, options: Mapping[str, Any]) -> Any:
    """Call a user's class or function with those of the options that it takes by name."""
    try:
        signature = inspect.signature(factory)
    except ValueError:  # some built-in types have none
        return factory()
    parameters = signature.parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        options = {name: value for name, value in options.items() if name in signature.parameters}
    try:
        signature.bind(**options)
    except TypeError as error:
        raise TypeError(f"{spec!r} can't be made from options alone: {error}; give those arguments defaults") from None
    return factory(**options)
