"""Keeps a run on disk: its checkpoints, and the last valid state of one that ends early."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from agents.common.files import refusal
from agents.models.local.loading.adapters import save_pretrained
from agents.models.local.loading.card import write_card, write_chat_template
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import CheckpointError, ConfigError, DeadRunError, TrainingDivergedError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.run.health.advice import going_on
from agents.msgrpo.run.saving import checkpoint as checkpoints
from agents.msgrpo.run.saving.last_valid import LastValid, RunState
from agents.prompt import PromptMap


class Keeper:
    """Writes the checkpoints of one run.

    Args:
        out: the run's folder; without one nothing is written.
        config: its settings.
        save_model: ``folder, weights -> None``: writes what an agent plays.
        processes: that train together; the first one writes.
        last_valid: what is saved when the run ends early.
        by_command: whether the command line can go on with the run.

    Attributes:
        best_so_far: whether the next checkpoint is that of the best evaluation.
    """

    def __init__(
        self,
        out: Path | None,
        config: MSGRPOConfig,
        save_model: Callable[[Path, Mapping[str, Tensor]], None],
        processes: Processes,
        last_valid: LastValid,
        *,
        by_command: bool,
    ) -> None:
        self.out, self.config, self.processes, self.last_valid = out, config, processes, last_valid
        self.best_so_far = False
        self._save_model, self._by_command = save_model, by_command
        self._written: set[int] = set()  # iterations whose checkpoints are those of this run as it is

    def resumed(self, folder: Path, best_first: Sequence[int] = ()) -> None:
        """The run goes on from this checkpoint. Later ones are of another course that it took and may be replaced.

        ``best`` is no later one either, but the first that is left of ``best_first``: of the iterations that were
        evaluated up to there, by their scores.
        """
        if self.out is None or checkpoints.run_folder(folder) != self.out.resolve():
            return
        done = checkpoints.iterations_in(folder)
        self._written = {done}
        best = checkpoints.iteration_of(self.out, "best")
        if best is not None and best > done and self.processes.rank == 0:
            places = [checkpoints.checkpoint_folder(self.out, iteration) for iteration in (*best_first, done)]
            checkpoints.point(self.out, "best", next(place for place in places if place.is_dir()))

    def write(self, state: RunState, *, spoiled: bool = False) -> Path | None:
        """Write a checkpoint in the first process, unless it is there; ``None`` without a folder, and in the others.

        Args:
            state: what it holds.
            spoiled: what came after this state isn't worth anything, and isn't to be called the best.

        Raises:
            CheckpointError: the disk is full, or can't be written.
        """
        if self.out is None or self.processes.rank > 0:
            return None
        folder = checkpoints.checkpoint_folder(self.out, state.iteration)
        try:
            self._write(self.out, folder, state, spoiled)
        except OSError as error:
            raise CheckpointError(f"the checkpoint {folder} can't be written: {refusal(error)}") from error
        return folder

    def _write(self, out: Path, folder: Path, state: RunState, spoiled: bool) -> None:
        if state.iteration not in self._written:
            checkpoints.save_checkpoint(
                folder, self.config, state.training, lambda place: self._save_model(place, state.weights)
            )
            self._written.add(state.iteration)
        checkpoints.point(out, "last", folder)
        best = checkpoints.iteration_of(out, "best")
        unknown = not self.config.eval_every and not spoiled  # without evaluations the last one is played
        if best is None or self.best_so_far or unknown or (spoiled and best > state.iteration):
            checkpoints.point(out, "best", folder)
        self.best_so_far = False
        checkpoints.remove_old(out, self.config.keep_checkpoints)

    def rescue(self, error: BaseException) -> str:
        """Save the last valid state before a run ends early; returns where it is and how to go on.

        Where weights are sharded, all processes have to do this together. They do after Ctrl-C; an error may have come
        to one of them alone, and such a run goes back to its last checkpoint.
        """
        if self.out is None:
            return "Nothing was saved, as out is empty"
        problem = ""
        spoiled = isinstance(error, TrainingDivergedError) or (isinstance(error, DeadRunError) and error.spoiled)
        if not isinstance(error, CheckpointError) and (
            isinstance(error, KeyboardInterrupt) or not self.processes.sharded
        ):
            state = self.last_valid.state(spoiled=spoiled)
            try:
                if state is not None:
                    self.write(state, spoiled=spoiled)
            except CheckpointError as full:
                problem = f"And {full}. "
        last = checkpoints.iteration_of(self.out, "last")
        if last is None:
            return f"{problem}Nothing was saved, and there is no earlier checkpoint"
        if isinstance(error, ConfigError):
            return f"{problem}The state after iteration {last} is saved"
        # a run that is resumed as it was does the same again, to the last bit
        rate = error.rate if isinstance(error, TrainingDivergedError) else "learning_rate"
        changes = f"--set {rate}={getattr(self.config, rate) / 10:g}" if spoiled else ""
        how = going_on(self.out, self.config, by_command=self._by_command, changes=changes)
        return f"{problem}The state after iteration {last} is saved; to go on: {how}"


def save_model(
    model: nn.Module, tokenizer: Any, prompt_map: PromptMap, folder: Path, weights: Mapping[str, Tensor]
) -> None:
    """Write a model with these weights as an agent plays it, with the prompts that it was trained with."""
    save_pretrained(model, folder, state_dict=dict(weights))
    tokenizer.save_pretrained(folder)
    write_card(folder, modes=[prompt_map.mode], texts=prompt_map.texts)
    write_chat_template(folder, tokenizer)
