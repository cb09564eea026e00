"""The methods that a run's settings name, one of each plug-in point, made and checked together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.fields import POINTS
from agents.msgrpo.credit import NEEDS, CreditMethod
from agents.msgrpo.draws import DrawRule
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.filters import GroupFilter
from agents.msgrpo.normalizers import Normalizer
from agents.msgrpo.plugins import Registry
from agents.msgrpo.surrogates.tokens import Surrogate
from agents.msgrpo.tasks import TaskSampler


@dataclass(frozen=True)
class Methods:
    """What an iteration is made of, in the order in which it is used."""

    sampler: TaskSampler
    filter: GroupFilter
    credit: CreditMethod
    draw: DrawRule
    surrogate: Surrogate
    normalizer: Normalizer

    @classmethod
    def of(cls, config: MSGRPOConfig) -> "Methods":
        """Make the methods that a config names, with their settings.

        Raises:
            ConfigError: a method or a setting that there isn't.
        """

        def make(registry: Registry[Any], name: str = "") -> Any:
            name = name or getattr(config, registry.setting)
            own = config.method_settings.get(registry.point, {}).get(name, {})
            method = registry.make(name, own, vars(config))
            if hasattr(method, "compose"):  # it is made of other methods of its point, with their own settings
                method.compose(lambda inner: make(registry, inner))
            return method

        for point, tables in config.method_settings.items():  # those of methods that aren't in use are checked as well
            for name in tables:
                make(POINTS[point], name)
        in_order = ("tasks", "filter", "credit", "draw", "surrogate", "normalizer")
        methods = cls(*[make(POINTS[point]) for point in in_order])
        if unknown := set(methods.credit.needs) - set(NEEDS):
            words = ", ".join(map(repr, sorted(unknown)))
            raise ConfigError(f"credit = {config.credit!r} needs {words}; accepted are {', '.join(NEEDS)}")
        return methods

    @property
    def needs(self) -> frozenset[str]:
        """What the methods that look at trajectories need together."""
        return frozenset(self.credit.needs) | frozenset(self.sampler.needs)

    def games(self, games: Sequence[Any]) -> Sequence[Any]:
        """What is played in a run on these games, which is other ones where a sampler says so."""
        found: Sequence[Any] = getattr(self.sampler, "games", list)(games)
        return found

    def state_dict(self) -> dict[str, Any]:
        """What methods have learnt from iteration to iteration, as plain data for checkpoints."""
        found = {}
        for point, method in vars(self).items():
            tell = getattr(method, "state_dict", None)
            if tell is not None:
                found[point] = tell()
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state_dict` told."""
        for point, own in state.items():
            getattr(self, point).load_state_dict(own)
