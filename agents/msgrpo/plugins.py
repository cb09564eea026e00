"""The plug-in points of the fine-tuner: a method is a class in one file, and a name in one registry.

One iteration is ``task sampling -> rollouts -> reward -> group filter -> credit -> draw -> surrogate loss ->
normaliser``, each a registry of methods. A method's settings are the fields of its class::

    from agents.msgrpo.credit import Credit, register

    @register("mine")
    class Mine:
        needs = frozenset()

        def assign(self, batch, rng):
            return Credit.of([trajectory.rewards for trajectory in batch.trajectories])

and ``MSGRPOConfig(credit="mine")``, or ``credit = "mine"`` in a file, uses it, with the settings in ``[credit.mine]``.
``"my_module:Mine"`` names a class without registering it. The other points have ``register_draw``, ``register_filter``,
``register_surrogate``, ``register_normalizer``, ``register_tasks``, ``register_reward`` and ``register_engine``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar, cast, dataclass_transform

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from agents.common.refusals import refusals
from agents.msgrpo.errors import ConfigError, refused
from textgames.importing import from_here
from textgames.names import did_you_mean
from textgames.plugins import installed, research_advice
from textgames.settings import taken_by

T = TypeVar("T")
C = TypeVar("C", bound=type)


@dataclass_transform(kw_only_default=True)
def configured(cls: type[T]) -> type[T]:
    """Make a method's fields its settings: checked when it is made, documented by the text below each field."""
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True)
    return dataclass(kw_only=True, config=config)(cls)  # type: ignore[return-value]  # it is the same class


class Method(Protocol):
    """The parts of a method that its class may leave out: a registry gives it those that it lacks.

    Attributes:
        shared: ``{own setting: the run's setting}`` that it takes; see :meth:`Registry.make`.
        renamed: ``{the name that a setting had: its name}``.
        asks_alone: whether the method asks the model for answers outside episodes.
        heads: which values a method that needs ``values`` reads.
        parts: names of the parts of a response without which a method that needs ``segments`` can't work.
        reward_mode: whether the payments of a reward rule are added to the game's rewards, or replace them.
        evaluates: whether a reward rule can pay single episodes, as evaluations have; if so, it is reported there.
        learnt_by: the name of the class that learns the method's state, if that isn't its own.
        metrics: numbers for the log, after each iteration, by names that nothing else has.
    """

    shared: ClassVar["Shared"] = {}
    renamed: ClassVar["Shared"] = {}
    asks_alone: ClassVar[bool] = False
    heads: Mapping[str, Literal["step", "token"]] = {"state": "step"}
    parts: Sequence[str] = ()
    reward_mode: ClassVar[Literal["add", "replace"]] = "add"
    evaluates: ClassVar[bool] = True
    learnt_by: str = ""
    metrics: Mapping[str, float] = {}

    def compose(self, make: Callable[[str], Any]) -> None:
        """Take the methods that this one is made of: ``make(name)`` makes one of the same plug-in point."""
        return None  # noqa: RET501 - a part with an empty body would count as abstract

    def games(self, games: Sequence[Any]) -> Sequence[Any]:
        """Return the games that are played in a run on these games."""
        return games

    def check(self, task: Any) -> None:
        """Refuse the game of an :class:`~agents.episode.EpisodeTask`, by a ``ConfigError``, before the run begins."""
        return None  # noqa: RET501 - a part with an empty body would count as abstract

    def beside(self, scorer: Any, config: Any, processes: Any, packing: str) -> Any:
        """Make the :class:`~agents.msgrpo.critic.Beside` of a method that needs ``reward_model``, from the policy's."""
        return None

    def value_targets(self, batch: Any) -> Mapping[str, Any]:
        """Return the targets of the critic's heads; for task samplers that need ``values``."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return the method's memory from iteration to iteration, as plain data for checkpoints."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up :meth:`state_dict` of an earlier run."""
        return None  # noqa: RET501 - a part with an empty body would count as abstract


def completed_class(cls: type[T], optional: type) -> type[T]:
    """Give a class the parts of ``optional`` that it lacks, and return it."""
    for name in dir(optional):
        if not name.startswith("_") and not hasattr(cls, name):
            setattr(cls, name, getattr(optional, name))
    return cls


def learner_of(method: Any) -> str:
    """Return the name of the class that learns a method's state."""
    return str(method.learnt_by or type(method).__name__)


class Variant(NamedTuple):
    """A name for another method with some of its settings, which count more than the run's and less than its table."""

    method: str
    settings: Mapping[str, Any]


class Registry(Generic[T]):
    """The methods of one plug-in point.

    ``built_in`` has ``{name: "module:Class"}`` of the methods that ship, imported when first used, or a
    :class:`Variant`. ``setting`` names the method in use, if it isn't called like the point. Installed packages add
    methods under the group ``textbench.POINT`` of entry points: ``mine = "my_package:Mine"``.
    """

    def __init__(self, point: str, built_in: Mapping[str, str | Variant], setting: str = "") -> None:
        self.point, self.setting, self.group = point, setting or point, f"textbench.{point}"
        self._built_in, self._registered = built_in, dict[str, type[T] | str | Variant](built_in)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._registered, *installed(self.group))))

    def _registration(self, name: str) -> type[T] | str | Variant | None:
        """Return the entry of a name; an installed package's name counts after a registered one."""
        if name in self._registered or (entry := installed(self.group).get(name)) is None:
            return self._registered.get(name)
        added = load_entry(entry, self.setting)
        if not isinstance(added, type | Variant):
            raise ConfigError(f"{self.setting} = {name!r} ({entry.value}) is to be a class or a Variant, got {added!r}")
        return cast("type[T] | Variant", added)

    def register(self, name: str) -> Callable[[C], C]:
        """Register a class under a name that no method that ships has; a decorator. The latest registration counts."""
        if not isinstance(name, str) or not name:
            raise ConfigError(f"a method is registered under a name, such as register('mine'), got {name!r}")
        if name in self._built_in:
            raise ConfigError(f"{self.setting} = {name!r} is a method that ships; register yours under another name")

        def decorate(cls: C) -> C:
            if not isinstance(cls, type):
                raise ConfigError(f"{self.setting} = {name!r} is to be a class, got {cls!r}")
            self._registered[name] = cls
            return cls

        return decorate

    def check(self, name: str) -> None:
        if name not in self.names and ":" not in name:
            known = ", ".join(self.names)
            raise ConfigError(
                f"{self.setting} = {name!r} can't be used{did_you_mean(name, self.names)}; accepted: {known}, "
                f"or my_module:MyClass{research_advice()}"
            )

    def find(self, name: str) -> type[T]:
        """Return the class of a method, by its name or as ``"module:Class"``."""
        self.check(name)
        found = self._registration(name)
        if isinstance(found, Variant):
            return self.find(found.method)
        if found is None or isinstance(found, str):
            # only what the user has named may lie in the working directory
            place = from_here() if found is None else nullcontext()
            with refused(f"{self.setting} = {name!r} can't be imported", ImportError, AttributeError), place:
                cls: type[T] = resolve_name(found or name)
            found = cls
        return completed_class(found, Method)

    def variant(self, name: str) -> Variant:
        """Return the method that a name stands for: another one with some settings, or itself with none chosen."""
        found = self._registration(name)
        return found if isinstance(found, Variant) else Variant(name, {})

    def shared(self, name: str) -> dict[str, str]:
        """Return ``{own setting: the run's setting}`` for those that a method takes of the run."""
        cls: Any = self.find(name)
        chosen = self.variant(name).settings
        return {own: run for own, run in cls.shared.items() if own not in chosen}

    def make(self, name: str, settings: Mapping[str, Any] | None = None, shared: Mapping[str, Any] | None = None) -> T:
        """Return a method with its ``settings``, as they stand in ``[point.name]``.

        ``shared`` are values of the run's settings, of which it takes those that its class variable ``shared`` names,
        unless a variant or its own settings say otherwise; :data:`OWN` leaves the method's default.
        """
        cls: Any = self.find(name)
        told = {} if shared is None else {own: shared[theirs] for own, theirs in self.shared(name).items()}
        given = {own: value for own, value in told.items() if value != OWN}
        given |= {**self.variant(name).settings, **(settings or {})}
        try:
            made: T = cls(**given)
            return made
        except ValidationError as error:
            about = self.settings_of(name)

            def unknown(setting: str) -> str:
                if setting in cls.renamed:
                    return f"{setting} is not a setting; it is called {cls.renamed[setting]}"
                known = ", ".join(about) or "none"
                return f"{setting} is not a setting{did_you_mean(setting, about)}; its settings: {known}"

            wrong = refusals(error, given, about, unknown)
            raise ConfigError("\n".join(f"[{self.point}.{name}] {sentence}" for sentence in wrong)) from None
        except TypeError as error:
            known = ", ".join(self.settings_of(name)) or "none"
            raise ConfigError(f"[{self.point}.{name}] can't be used: {error}; its settings: {known}") from None

    def settings_of(self, name: str) -> dict[str, dict[str, Any]]:
        """Return ``{setting: its JSON Schema}`` of a method, with a default and a description if it has them."""
        cls = self.find(name)
        if is_dataclass(cls):
            properties: dict[str, dict[str, Any]] = TypeAdapter(cls).json_schema().get("properties", {})
            for base in filter(is_dataclass, cls.__mro__[1:]):  # inherited fields have their text there
                for setting, about in TypeAdapter(base).json_schema().get("properties", {}).items():
                    properties[setting] = about | properties[setting]
            for setting, value in self.variant(name).settings.items():
                properties[setting] = properties[setting] | {"default": value}
            return properties
        own = taken_by(cls)
        return {} if own.others else {setting: {} for setting in own.named}


def load_entry(entry: EntryPoint, setting: str) -> Any:
    """Load the object that an installed package adds under a name of a setting."""
    with refused(f"{setting} = {entry.name!r} ({entry.value}) can't be imported", ImportError, AttributeError):
        return entry.load()


OWN: Literal["auto"] = "auto"
"""The value of a run's setting that leaves every method its own."""

Shared = Mapping[str, str]
