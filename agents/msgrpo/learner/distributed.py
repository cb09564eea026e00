"""The processes that train together: one, or many through accelerate (data-parallel or FSDP).

Every process knows all rows of a step and takes its share of them; the denominator of the loss is the whole batch's.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from agents.msgrpo.errors import ConfigError, check_installed, refused

T = TypeVar("T")


class Processes:
    """One process by itself; ``rank`` is its number, of ``count``. ``sharded``: each has a part of the weights only."""

    rank = 0
    count = 1
    sharded = False

    def __init__(self) -> None:
        self._module: Any = None

    def prepare(self, scorer: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Take over the module and the optimiser; from here on use :meth:`forward` and the returned optimiser."""
        self._module = scorer
        return optimizer

    def another(self) -> "Processes":
        return Processes()

    def forward(self, *inputs: Any) -> Any:
        return self._module(*inputs)

    def gather(self, value: T) -> list[T]:
        """Return every process's value, in rank order; a collective call."""
        return [value]

    def synchronise(self, *, last: bool) -> AbstractContextManager[Any]:
        """Return a context for a backward pass; gradients are exchanged in the last one of a step."""
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def clip_grad_norm(self, limit: float) -> float:
        """Scale the summed gradient down to ``limit`` and return its norm before."""
        return float(torch.nn.utils.clip_grad_norm_(self._module.parameters(), limit))

    def state_dict(self, model: nn.Module) -> dict[str, Tensor]:
        """Return the whole, unsharded weights; a collective call."""
        return model.state_dict()

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Return the whole optimiser state, in the first process alone if it is sharded; a collective call."""
        return optimizer.state_dict()

    def load_optimizer_state(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Take up what was learnt; settings, such as the learning rate, stay those that the optimiser was made with."""
        groups = optimizer.param_groups
        made_with = [{name: value for name, value in group.items() if name != "params"} for group in groups]
        with refused("the checkpoint's optimiser is that of other weights", KeyError, RuntimeError, ValueError):
            optimizer.load_state_dict(state)
        # torch restores the settings as well, which would undo those that were changed for a resume
        for group, settings in zip(optimizer.param_groups, made_with, strict=True):
            group.update(settings)

    def whole_weights(self, *, write: bool = False) -> AbstractContextManager[Any]:
        """Return a context in which parameters are whole, not shards; with ``write`` they may be changed in it."""
        return nullcontext()

    def wait(self) -> None:
        pass


class AccelerateProcesses(Processes):
    """Processes started by ``accelerate launch`` or ``torchrun``; data-parallel or FSDP as accelerate is configured.

    ``cpu``: the model is on the CPU, which accelerate has to be told to join the processes of ``torchrun``.
    """

    def __init__(self, *, cpu: bool) -> None:
        check_installed("training in several processes needs", "accelerate")
        from accelerate import Accelerator, DistributedType
        from accelerate.state import AcceleratorState

        super().__init__()
        self._cpu, before = cpu, set(os.environ)
        try:
            self.accelerator = Accelerator(cpu=cpu)
            if self.accelerator.num_processes != launched_processes():
                raise ValueError(f"only {self.accelerator.num_processes} joined")
        except ValueError as error:
            # its half-made state, here and in the environment, would fail the next call
            AcceleratorState._reset_state(reset_partial_state=True)
            for name in os.environ.keys() - before:
                del os.environ[name]
            raise ConfigError(
                f"WORLD_SIZE says that {launched_processes()} processes train together, but accelerate can't join them "
                f"({error}): launch with torchrun or accelerate launch, or unset WORLD_SIZE"
            ) from error
        self.rank, self.count = self.accelerator.process_index, self.accelerator.num_processes
        self.sharded = self.accelerator.distributed_type == DistributedType.FSDP
        if self.sharded:
            from torch.distributed import fsdp

            self._fsdp: Any = fsdp

    def another(self) -> "Processes":
        return AccelerateProcesses(cpu=self._cpu)

    def prepare(self, scorer: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        if self.sharded:
            scorer.lean = False  # type: ignore[assignment]  # shards are made whole by the modules that hold them
        self._module, optimizer = self.accelerator.prepare(scorer, optimizer)
        return getattr(optimizer, "optimizer", optimizer)  # the wrapper skips steps by its own count of micro-batches

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(values, value)
        return values

    def synchronise(self, *, last: bool) -> AbstractContextManager[Any]:
        return nullcontext() if last else self.accelerator.no_sync(self._module)

    def backward(self, loss: Tensor) -> None:
        """Run the backward pass: the wrappers average over processes, and the loss is a part of one sum."""
        torch.autograd.backward(loss * self.count)

    def clip_grad_norm(self, limit: float) -> float:
        return float(self.accelerator.clip_grad_norm_(self._module.parameters(), limit))

    def state_dict(self, model: nn.Module) -> dict[str, Tensor]:
        whole = self.accelerator.get_state_dict(self._module)
        return {name.removeprefix("model."): tensor for name, tensor in whole.items()}

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        if not self.sharded:
            return optimizer.state_dict()
        with self._whole_state():
            return self._fsdp.FullyShardedDataParallel.optim_state_dict(self._module, optimizer)  # type: ignore[no-any-return]

    def load_optimizer_state(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        if self.sharded:
            with self._whole_state():
                state = self._fsdp.FullyShardedDataParallel.optim_state_dict_to_load(self._module, optimizer, state)
        super().load_optimizer_state(optimizer, state)

    def whole_weights(self, *, write: bool = False) -> AbstractContextManager[Any]:
        if not self.sharded:
            return nullcontext()
        summon = self._fsdp.FullyShardedDataParallel.summon_full_params
        return summon(self._module, writeback=write)  # type: ignore[no-any-return]

    def _whole_state(self) -> AbstractContextManager[Any]:
        fsdp = self._fsdp
        return fsdp.FullyShardedDataParallel.state_dict_type(  # type: ignore[no-any-return]
            self._module,
            fsdp.StateDictType.FULL_STATE_DICT,
            fsdp.FullStateDictConfig(offload_to_cpu=True, rank0_only=True),
            fsdp.FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=False),
        )

    def wait(self) -> None:
        self.accelerator.wait_for_everyone()


def launched_processes() -> int:
    """Return how many processes the launcher says there are; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def current_processes(*, cpu: bool) -> Processes:
    """Return one process, unless a launcher says that this is one of several; ``cpu``: the model is on the CPU."""
    return AccelerateProcesses(cpu=cpu) if launched_processes() > 1 else Processes()
