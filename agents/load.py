"""From a spec (``"planner"``, ``"openai:gpt-4o-mini"``, ``"my_agents:Mine"``) to a player.

A command hands the same options to all of its agents and each takes those that concern it: the parameters of the class
or function that makes it. A name that is an option of no agent at all is refused.
"""

import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, NamedTuple, get_type_hints

from agents.models.base import AsyncLanguageModel, Decoding, LanguageModel
from agents.models.cache import ResponseCache, cached
from agents.models.provider import call_with, find_model, providers
from agents.models.tools import check_takes_tools
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import Policy
from agents.wrappers import Wrapper, check_form, form_of, innermost, own_options, wrapped_in, wrapper, wrappers
from textgames.importing import from_here
from textgames.names import did_you_mean
from textgames.plugins import installed, loaded, research_advice
from textgames.settings import taken_by

ENTRY_POINT_GROUP = "textbench.agents"
"""Packages add agents under this group of entry points: a policy, or a class or function that makes one."""

BASELINES_GROUP = "textbench.baselines"
"""Packages add players with options and an argument of their own under this group, each a :class:`Baseline`.

All of them are imported to read a spec, so the module of a ``Baseline`` imports little.
"""


class Baseline(NamedTuple):
    """A player without a language model."""

    path: str  #: ``"module:Class"``; it is only imported to play
    description: str  #: what it does, in one line
    options: tuple[str, ...] = ()  #: the parameters of the class that are given by name
    takes: str = ""  #: what follows the name and a colon, which is the class's first argument; empty if nothing does
    missing: Callable[[], str | None] = lambda: None  #: says what it lacks to play
    holds: Callable[[], bool] | None = None  #: if it runs a file's program (by a ``key``): does a sandbox hold it?

    def spec(self, name: str) -> str:
        """Return the value of ``--agent``, as lists show it: ``planner``, ``mine:FILE``."""
        return f"{name}:{self.takes}" if self.takes else name


_BASELINES = {
    "random": Baseline("agents.baselines.random:RandomPlayer", "any legal action, uniformly", ("seed",)),
    "blind": Baseline("agents.baselines.random:BlindPlayer", "the best that doesn't read: a score of 0", ("seed",)),
    "greedy": Baseline("agents.baselines.search:GreedyPlayer", "one step ahead"),
    "planner": Baseline("agents.baselines.search:PlannerPlayer", "search: exact in solved games, else look-ahead"),
    "human": Baseline("agents.baselines.human:HumanPlayer", "a person at this terminal: textbench play SCENARIO"),
}


def baselines() -> dict[str, Baseline]:
    """Return ``{name: player}`` of all players without a language model, those of installed packages last."""
    added: dict[str, object] = loaded(BASELINES_GROUP, lambda entry, wrong: None)
    return _BASELINES | {
        name: one for name, one in added.items() if isinstance(one, Baseline) and name not in _BASELINES
    }


def load_agent(spec: str, **options: Any) -> Policy:
    """Make an agent.

    Args:
        spec: one of

            - ``random``, ``blind``, ``greedy``, ``planner``, ``human``;
            - ``tiny``, ``tiny-msgrpo-frozen-lake``, ``tiny-msgrpo-snake``: the models that ship with the package
              (``tiny-msgrpo`` is the first of the two that are post-trained), and ``tiny-lake`` and ``tiny-snake``,
              which read one game only and play it better;
            - ``smollm2``: a pretrained model of 135 million parameters, fetched and converted once;
            - ``PROVIDER:MODEL``, such as ``hf:PATH_OR_REPO``, ``gguf:PATH``, ``openai:MODEL`` or ``vllm:PATH_OR_REPO``:
              a language model of a registered provider (:mod:`agents.models.provider`);
            - ``module:attr`` or ``path/to/file.py:attr``: your own policy, or a class or function that makes one;
            - a name that an installed package has registered under ``textbench.agents``;
            - ``NAME(SPEC, ...)``: others of these inside a wrapper of an installed package (:mod:`agents.wrappers`).
        **options: those that don't concern the agent are ignored, and so are those that are ``None``.

            - of every language model: see :func:`language_agent`;
            - of one provider's models: see its class, such as :class:`~agents.models.openai.OpenAIModel`;
            - of ``random`` and ``blind``: ``seed``; of wrappers: what their classes take by name;
            - of your own class or function: whatever it takes by name.

    Raises:
        ValueError: no such agent, or an option with a wrong value; the message names what exists.
        TypeError: an option that no agent has, or an object that isn't a policy.
        ModuleNotFoundError: the agent needs a package that isn't installed; the message has the command.
    """
    return _agent(spec, options, loads=True)


def check_agent(spec: str, **options: Any) -> Policy:
    """Refuse what :func:`load_agent` would, as far as that is known without loading weights or asking a server.

    It returns the agent; one of a language model can't act. A missing key isn't refused: estimating costs needs none.
    """
    return _agent(spec, options, loads=False)


def _agent(spec: str, options: Mapping[str, Any], *, loads: bool) -> Policy:
    """Make an agent; of a language model load the weights, or reach for the server, only if ``loads``."""
    if not isinstance(spec, str):
        raise TypeError(f"an agent is named by a text such as 'planner' or 'hf:FOLDER', got {spec!r}")
    given = {name: value for name, value in options.items() if value is not None}
    policy: Policy
    if (wrapped := wrapped_in(spec)) is not None:
        check_form(spec)
        inside = [_agent(one, options, loads=loads) for one in wrapped.inside]
        policy = call_with(wrapper(wrapped.name), given, *inside)
        return policy
    found = find_model(spec)
    if found is None:
        player, arguments = _player(spec)
        _refuse_unknown(options, tuple(taken_by(player, arguments=len(arguments)).named) if callable(player) else ())
        return _as_policy(player, arguments, spec, given)
    _refuse_unknown(options)
    provider, name = found
    provider.check_packages(spec)
    if given.get("tools"):  # before weights are loaded
        check_takes_tools(spec, provider.make)
    if not loads:
        given.pop("cache", None)
    if (card := call_with(provider.card, given, name)) is not None:  # the card yields to what a person says
        given = {"mode": card.mode, "texts": card.texts, **given}
    own = {option: value for option, value in given.items() if option in provider.options}
    model = call_with(provider.make, given, name) if loads else call_with(provider.check, own, name)
    policy = call_with(language_agent, {"name": spec if ":" in spec else name, **given}, model)
    return policy


def language_agent(
    model: LanguageModel | AsyncLanguageModel,
    *,
    name: str | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    stop: Sequence[str] | None = None,
    decoding: Decoding | None = None,
    mode: str | None = None,
    history: int | None = None,
    prompts: str | Path | None = None,
    system: str | None = None,
    texts: PromptTexts | None = None,
    prompt_map: PromptMap | None = None,
    cache: str | Path | ResponseCache | None = None,
    legal_only: bool = False,
    tools: bool = False,
) -> LanguageAgentPolicy:
    """Make a player of a language model; the parameters are the options that all language agents have.

    ``temperature``, ``top_p``, ``max_tokens`` and ``stop`` are those of :class:`~agents.models.base.Decoding`, and
    ``decoding`` stands for all of them. ``mode``, ``history`` (how many of the last turns the prompt repeats),
    ``prompts`` (another wording: a file, or the name of one that ships; else ``texts``) and ``system`` (another system
    message) make the prompt map, and ``prompt_map`` stands for all of them. ``cache`` is a file of responses that may
    be used again, or the cache itself. ``legal_only`` holds answers to those that the game accepts; with ``tools`` they
    are calls of a tool, for models behind servers.
    """
    if cache is not None:
        model = cached(model, cache if isinstance(cache, ResponseCache) else ResponseCache(cache))
    if decoding is None:
        settings: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "stop": stop}
        decoding = Decoding(**{name: value for name, value in settings.items() if value is not None})
    if prompt_map is None:
        texts = PromptTexts.default() if texts is None else texts
        texts = texts if prompts is None else PromptTexts.from_file(prompts)
        texts = texts if system is None else replace(texts, system=system)
        prompt_map = PromptMap(mode or PromptMap.mode, history or 0, texts)
    return LanguageAgentPolicy(model, prompt_map, decoding, name, legal_only=legal_only, tools=tools)


def options_taken(spec: str) -> tuple[dict[str, Any], bool]:
    """Return one agent's options with their types, and whether it takes others besides."""
    if (wrapped := wrapped_in(spec)) is not None:
        inside, made = [options_taken(one) for one in wrapped.inside], wrapper(wrapped.name)
        options = {name: kind for taken, _ in inside for name, kind in taken.items()}
        options |= {name: type_of(made, name) for name in own_options(wrapped.name)}
        return options, any(others for _, others in inside)
    found = find_model(spec)
    if found is not None:
        takers: list[tuple[Callable[..., Any], int]] = [(language_agent, 1), (found[0].make, 1)]
    else:
        player, given = _player(spec)
        takers = [(player, len(given))] if callable(player) else []
    options, takes_others = {}, False
    for taker, arguments in takers:
        own = taken_by(taker, arguments=arguments)
        options |= {name: type_of(taker, name) for name in own.named}
        takes_others |= own.others
    return options, takes_others


def runs_program(spec: str) -> bool:
    """Return whether an agent runs a program of a file, so that it takes a ``key``."""
    return any(part.holds is not None for part in _parts(spec))


def holds_programs(spec: str) -> bool:
    """Return whether a sandbox holds every program that an agent runs, so that anybody's may be run."""
    return all(part.holds() for part in _parts(spec) if part.holds is not None)


def _parts(spec: str) -> Iterator[Baseline | Wrapper]:
    if (wrapped := wrapped_in(spec)) is not None:
        yield wrappers()[wrapped.name]
        for one in wrapped.inside:
            yield from _parts(one)
    elif (baseline := baselines().get(spec.partition(":")[0])) is not None:
        yield baseline


def type_of(taker: Callable[..., Any], name: str) -> Any:
    """Return the type of one parameter; ``Any`` if it has none, or one that is imported for type checkers alone."""
    function: Any = taker.__init__ if inspect.isclass(taker) else taker
    written = getattr(function, "__annotations__", {}).get(name, Any)
    parameter = SimpleNamespace(__annotations__={name: written})
    try:
        return get_type_hints(parameter, globalns=getattr(function, "__globals__", {}))[name]
    except NameError:
        return Any


def known_options() -> tuple[str, ...]:
    """List every option that some agent takes."""
    names = list(taken_by(language_agent, arguments=1).named)
    names += [name for provider in providers().values() for name in provider.options]
    names += [name for baseline in baselines().values() for name in baseline.options]
    for one in wrappers():
        with suppress(ValueError):  # one that can't be imported is refused when it is named
            names += own_options(one)
    return tuple(dict.fromkeys(names))


def _refuse_unknown(options: Mapping[str, Any], own: Sequence[str] = ()) -> None:
    known = (*known_options(), *own)
    for name in options:
        if name not in known:
            raise TypeError(f"no agent has an option {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")


def registered_agents() -> dict[str, EntryPoint]:
    """Return the agents that installed packages add, by name; each is only imported when it is named."""
    return installed(ENTRY_POINT_GROUP)


def _player(spec: str) -> tuple[Any, tuple[str, ...]]:
    module, separator, attribute = spec.partition(":")
    baseline = baselines().get(module)
    if baseline is not None and bool(baseline.takes) == bool(separator):
        if separator and not attribute:
            raise ValueError(f"{spec!r} names no file; write {baseline.spec(module)}")
        return resolve_name(baseline.path), (attribute,) if separator else ()
    if (entry := registered_agents().get(spec)) is not None:
        try:
            return entry.load(), ()
        except (ImportError, AttributeError) as error:
            raise ValueError(f"the registered agent {spec!r} ({entry.value}) can't be imported: {error}") from error
    if separator:
        return _import_attribute(module, attribute, spec), ()
    raise ValueError(_unknown(spec))


def check_spec(spec: str) -> None:
    """Raise the ValueError of a spec that no agent can have, without making the agent."""
    check_form(spec)
    alone = [name for name, one in baselines().items() if not one.takes]
    for one in innermost(spec):
        if ":" not in one and find_model(one) is None and one not in (*alone, *registered_agents()):
            raise ValueError(_unknown(one))


def _unknown(spec: str) -> str:
    known = providers()
    names = [one.spec(name) for name, one in baselines().items()]
    names += [*(name for provider in known.values() for name in provider.models), *registered_agents()]
    head, bracket, inside = spec.partition("(")
    if bracket and not wrappers():
        return f"unknown agent {spec!r}: no player around others is installed{research_advice()}"
    several = [part.strip() for part in re.split(r"[,\s]+", spec) if part.strip()]
    if len(several) > 1:
        return f"unknown agent {spec!r}: repeat --agent for each, as in --agent {' --agent '.join(several)}"
    near = did_you_mean(spec, names)
    if bracket:  # a player around others: a misspelt name, or a bracket that isn't closed
        near = did_you_mean(head, wrappers()) if inside.endswith(")") else " (its bracket isn't closed)"
    elif not near and os.path.isdir(spec):  # a Path raises for a name that is too long for a file
        near = f" (a folder without agent.toml, which may be unfinished; did you mean hf:{spec}, the model in it?)"
    elif not near and spec.startswith(("/", "./", "../")):
        near = " (there is no such folder)"
    elif not near and _LIKE_A_MODEL.fullmatch(spec):
        one_here = f"hf:{spec}, a model in this process, or " if "/" in spec else ""
        near = f" (did you mean {one_here}openai:{spec}, {'one' if one_here else 'a model'} behind a server?)"
    if near:
        return f"unknown agent {spec!r}{near}; textbench list has all of them"
    forms = [f"{name}:{provider.example}" for name, provider in known.items() if provider.takes]
    others = ", ".join([*forms, "my_module:MyAgent", *map(form_of, wrappers())])
    return f"unknown agent {spec!r}; there are {', '.join(names)}, and {others}{research_advice()}"


_LIKE_A_MODEL = re.compile(r"[\w./~-]*(\d|/|gpt|claude|gemini|llama|mistral|qwen)[\w./~-]*", re.IGNORECASE)


def _import_attribute(module: str, attribute: str, spec: str) -> Any:
    """Import what ``module:attr`` or ``file.py:attr`` names. The working directory counts, as for ``python -m``."""
    if not attribute:
        raise ValueError(f"{spec!r} names no agent in {module}; write {module}:NAME")
    found: Any
    if module.endswith(".py"):
        path = Path(module)
        if not path.is_file():
            raise ValueError(f"there is no file {module!r}")
        there = importlib.util.spec_from_file_location(path.stem, path)
        assert there is not None
        assert there.loader is not None
        found = importlib.util.module_from_spec(there)
        sys.modules.setdefault(path.stem, found)
        there.loader.exec_module(found)
    else:
        try:
            with from_here():
                found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
                raise  # the agent's own module misses something: its message says what
            told = f"As a user agent: no module {error.name!r} can be imported here"
            raise ValueError(f"{_unknown(spec)}. {told}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, tuple(name for name in vars(found) if not name.startswith("_")))
            if module in baselines():
                near = f"; the player {module} that ships stands alone: write {module}"
            raise ValueError(f"{spec!r}: {module} has no {part!r}{near}")
        found = getattr(found, part)
    return found


def _as_policy(found: Any, arguments: Sequence[str], spec: str, options: Mapping[str, Any]) -> Policy:
    if inspect.isclass(found) or (callable(found) and not isinstance(found, Policy)):
        try:
            found = call_with(found, options, *arguments)
        except TypeError as error:
            raise TypeError(f"{spec!r} {error}") from error
    if not isinstance(found, Policy):
        raise TypeError(
            f"{spec!r} is a {type(found).__name__} and no policy: a policy has a name and "
            "act(requests) -> list of agents.Turn (see agents.turn.Policy)"
        )
    return found
