"""What methods have in common that change another method's advantages. ``base`` names it; they pass on its needs."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from agents.msgrpo import Method, configured, learner_of
from agents.msgrpo.credit import METHODS, CreditMethod


@configured
class Composed:
    """A method that takes another one's credit and changes it."""

    base: str = "msgrpo"
    """The method whose advantages are taken; its own settings stand in its own table, [credit.NAME]."""

    adds: ClassVar[frozenset[str]] = frozenset()
    """What this method needs besides what its base method does."""

    def __post_init__(self) -> None:
        if issubclass(METHODS.find(self.base), type(self)):
            raise ValueError(f"base = {self.base!r} can't be used: accepted is another method of credit")
        self._method: CreditMethod = METHODS.make(self.base)

    def compose(self, make: Callable[[str], CreditMethod]) -> None:
        """Take the base method with the run's settings: ``make(name)`` makes methods of credit."""
        self._method = make(self.base)

    @property
    def needs(self) -> frozenset[str]:
        """What the base method needs, and what this one adds."""
        return frozenset(self._method.needs) | self.adds

    @property
    def heads(self) -> Mapping[str, Any]:
        """The critic's values that the base method asks for."""
        return self._method.heads

    def beside(self, *parts: Any) -> Any:
        """Make what the base method has learn beside the policy."""
        return self._method.beside(*parts)

    @property
    def learnt_by(self) -> str:
        """The name of the class that learns what goes into checkpoints, which is the base method's."""
        return learner_of(self._method)

    def state_dict(self) -> dict[str, Any]:
        """Return what the base method has learnt."""
        return self._method.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state and type(self._method).load_state_dict is Method.load_state_dict:
            raise ValueError(f"the base method {self.base!r} learns nothing")
        if state:
            self._method.load_state_dict(state)
