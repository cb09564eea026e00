"""The methods that a run's settings name, one of each plug-in point, made and checked together."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.episode import EpisodeTask
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.settings import POINTS
from agents.msgrpo.credit import NEEDS, CreditMethod
from agents.msgrpo.draws import DrawRule
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.filters import GroupFilter
from agents.msgrpo.normalizers import Normalizer
from agents.msgrpo.plugins import Registry, learner_of
from agents.msgrpo.rewards import Reward
from agents.msgrpo.surrogates.tokens import Surrogate
from agents.msgrpo.tasks import TaskSampler


@dataclass(frozen=True)
class Methods:
    """What an iteration is made of, in the order in which it is used."""

    sampler: TaskSampler
    reward: Reward
    filter: GroupFilter
    credit: CreditMethod
    draw: DrawRule
    surrogate: Surrogate
    normalizer: Normalizer

    @classmethod
    def of(cls, config: MSGRPOConfig) -> "Methods":
        """Make the methods that a config names, with their settings, or raise a :class:`ConfigError`."""

        def make(registry: Registry[Any], name: str = "") -> Any:
            name = name or getattr(config, registry.setting)
            own = config.method_settings.get(registry.point, {}).get(name, {})
            method = registry.make(name, own, vars(config))
            method.compose(lambda inner: make(registry, inner))
            return method

        for point, tables in config.method_settings.items():  # those of methods that aren't in use are checked as well
            for name in tables:
                make(POINTS[point], name)
        in_order = ("tasks", "reward", "filter", "credit", "draw", "surrogate", "normalizer")
        methods = cls(*[make(POINTS[point]) for point in in_order])
        for part in ("needs", "assign"):
            if not hasattr(methods.credit, part):
                raise ConfigError(
                    f"credit = {config.credit!r}: {type(methods.credit).__name__} has no {part}; a method of credit "
                    "has needs, frozenset() where states and rewards are enough, and assign(batch, rng)"
                )
        if unknown := set(methods.credit.needs) - set(NEEDS):
            words = ", ".join(map(repr, sorted(unknown)))
            raise ConfigError(f"credit = {config.credit!r} needs {words}; accepted are {', '.join(NEEDS)}")
        return methods

    @property
    def needs(self) -> frozenset[str]:
        """What the methods that look at trajectories need together."""
        return frozenset(self.credit.needs) | frozenset(self.sampler.needs)

    def check(self, tasks: Sequence[EpisodeTask]) -> None:
        for method in vars(self).values():
            for task in tasks:
                method.check(task)

    def state_dict(self) -> dict[str, Any]:
        return {point: told for point, method in vars(self).items() if (told := method.state_dict())}

    def learners(self) -> dict[str, str]:
        """Return the names of the classes whose :meth:`state_dict` it is, point by point."""
        return {point: learner_of(method) for point, method in vars(self).items()}

    def load_state_dict(self, state: Mapping[str, Any], learners: Mapping[str, str] | None = None) -> None:
        """Take up the result of :meth:`state_dict`; what a method of another class had learnt is left, with a warning.

        ``learners`` is the result of :meth:`learners` then; older checkpoints have none.
        """
        for point, own in state.items():
            setting, method = POINTS["tasks" if point == "sampler" else point].setting, getattr(self, point)
            now = learner_of(method)
            was = (learners or {}).get(point, now)
            if not own:
                continue
            if was != now:
                note = f"{setting}: {now} begins anew and leaves what {was} has learnt in the checkpoint"
                warnings.warn(note, stacklevel=3)
                continue
            try:
                method.load_state_dict(own)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise ConfigError(
                    f"{setting}: {now} can't use what the checkpoint's method had learnt ({', '.join(map(str, own))}): "
                    f"accepted is the {setting} that the run was begun with, or a new run from the checkpoint's model"
                ) from error
