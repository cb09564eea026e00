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
        self._buffers = _Buffers()
        self._updating = False

    def begin_iteration(self) -> None:
        """Called before anything of an iteration is played."""
        self._learnt_before = _Buffers().copy(self._methods(), {})

    def begin_update(self, *, sound: bool) -> None:
        """Called before the weights change; ``sound``: what they have just played shows nothing wrong with them."""
        if self._copies and (sound or self._copy is None):
            self._copy = None  # its buffers are written over
            now, known = self._as_before(), dict(self._frozen)
            changed = {name: now.training[name] for name in CHANGED_IN_PLACE} | {"weights": now.weights}
            copied = self._buffers.copy(changed, known)
            weights = copied.pop("weights")
            self._copy = RunState(now.iteration, now.training | copied, weights)
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


class _Buffers:
    """The memory of a copy, which the next copy is written into: two copies at a time would be twice the state.

    For what lies on a GPU it is pinned, so that it is filled at the full speed of the bus.
    """

    def __init__(self) -> None:
        self._by_path: dict[tuple[Any, ...], Tensor] = {}

    def copy(self, value: Any, known: dict[Any, Tensor]) -> Any:
        """Return the same value with all tensors in the computer's memory, but for those ``known`` by their place.

        Tied weights, which have one place, stay tied.
        """
        earlier, self._by_path = self._by_path, {}
        return self._copied(value, known, earlier, ())

    def _copied(self, value: Any, known: dict[Any, Tensor], earlier: dict[Any, Tensor], path: tuple[Any, ...]) -> Any:
        if isinstance(value, Tensor):
            place = _place(value)
            if place not in known:
                known[place] = self._by_path[path] = _into(earlier.pop(path, None), value.detach())
            return known[place]
        if isinstance(value, Mapping):
            return {name: self._copied(item, known, earlier, (*path, name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._copied(item, known, earlier, (*path, i)) for i, item in enumerate(value))
        return value


def _into(buffer: Tensor | None, value: Tensor) -> Tensor:
    """Return the buffer with a tensor's values, or a new one if it has another shape or type."""
    if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
        buffer = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
    return buffer.copy_(value)


def _place(tensor: Tensor) -> tuple[torch.device, int, torch.Size]:
    return tensor.device, tensor.data_ptr(), tensor.shape
