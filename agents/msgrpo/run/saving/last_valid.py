"""The state that a run is saved in when it ends early: that of whole iterations, before anything went wrong.

Between iterations that is the state as it is. Within an update the weights are neither those before nor those after,
and once a run has diverged or collapsed they are worth nothing; then it is a copy from before the update that did it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

CHANGED_IN_PLACE = ("optimizer", "methods", "critic", "reference", "torch_rng")
"""The parts of the training state that are changed in place; the others are made anew whenever they are asked for."""


class RunState(NamedTuple):
    """All that a checkpoint holds of a run.

    Attributes:
        iteration: iterations done.
        training: what training needs to go on: tensors and plain values.
        weights: of the model, by name.
    """

    iteration: int
    training: dict[str, Any]
    weights: Mapping[str, Tensor]


class LastValid:
    """Follows a run through its iterations.

    Args:
        capture: the run's state as it is; what it holds may change with the run.
        methods: what the methods have learnt so far, which an iteration changes from its beginning on.
        model: what is trained. Weights that are frozen, such as those under an adapter, aren't copied.
        copies: whether a copy is made before updates.
    """

    def __init__(
        self,
        capture: Callable[[], RunState],
        methods: Callable[[], dict[str, Any]],
        model: nn.Module,
        *,
        copies: bool,
    ) -> None:
        self._capture, self._methods, self._copies = capture, methods, copies
        self._frozen = {_place(each): each.detach() for each in model.parameters() if not each.requires_grad}
        self._learnt_before: dict[str, Any] | None = None  # by the methods, before the iteration that is under way
        self._copy: RunState | None = None
        self._updating = False

    def begin_iteration(self) -> None:
        """Called before anything of an iteration is played."""
        self._learnt_before = _copied(self._methods(), {})

    def begin_update(self, *, sound: bool) -> None:
        """Called before the weights change; ``sound``: what they have just played shows nothing wrong with them."""
        if self._copies and (sound or self._copy is None):
            now, known = self._as_before(), dict(self._frozen)
            training = now.training | {name: _copied(now.training[name], known) for name in CHANGED_IN_PLACE}
            self._copy = RunState(now.iteration, training, _copied(now.weights, known))
        self._updating = True

    def end_iteration(self) -> None:
        """Called when weights and counters agree again."""
        self._learnt_before, self._updating = None, False

    def state(self, *, spoiled: bool) -> RunState | None:
        """What to save; ``None`` where there is nothing valid in memory.

        Args:
            spoiled: the weights as they are shouldn't be kept, whatever they are.
        """
        return self._copy if spoiled or self._updating else self._as_before()

    def _as_before(self) -> RunState:
        """The state as it is, but for what the methods have learnt in the iteration that is under way."""
        now = self._capture()
        if self._learnt_before is None:
            return now
        return now._replace(training=now.training | {"methods": self._learnt_before})


def _copied(value: Any, known: dict[Any, Tensor]) -> Any:
    """The same value with all tensors copied to the computer's memory, but for those ``known`` by their place.

    Tied weights, which have one place, stay tied.
    """
    if isinstance(value, Tensor):
        place = _place(value)
        if place not in known:
            known[place] = value.detach().to("cpu", copy=True)
        return known[place]
    if isinstance(value, Mapping):
        return {name: _copied(item, known) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_copied(item, known) for item in value)
    return value


def _place(tensor: Tensor) -> tuple[torch.device, int, torch.Size]:
    return tensor.device, tensor.data_ptr(), tensor.shape
