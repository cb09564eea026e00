"""The critic at work: it tells values before credit is assigned, and learns from the credit after the policy has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Floats, Heads, StepCredit, Trajectory
from agents.msgrpo.critic.beside import Beside, Lesson
from agents.msgrpo.critic.model import ValueModel
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.packing import MicroBatch
from agents.msgrpo.learner.update import minibatches
from agents.msgrpo.rows import TokenRow

_ANY = (0,)  # values of prompts alone are read where the first response token would be predicted, whichever it is


class Critic(Beside):
    """A model of values, its optimiser, and the processes that share its work.

    "step" heads are read at the last token of a prompt, so they know what the policy knew when it began to answer.
    "token" heads are read there for the first response token, and at each response token for the one after it: the
    value of token k knows the tokens before k, so it may be subtracted from what token k is credited with.

    Args:
        policy: the model that is trained, as prepared for training.
        heads: of all methods that need values.
        config: its ``[critic]`` settings, and how rows are packed.
        processes: the trainer's.
        packing: that the policy takes, as the critic's backbone is the same.
        autocast: the policy's.

    Raises:
        ConfigError: the weights are sharded over processes.
        UnusableModelError: a model that no critic can be made of.
    """

    model: ValueModel

    def __init__(
        self,
        policy: nn.Module,
        heads: Heads,
        config: MSGRPOConfig,
        processes: Processes,
        *,
        packing: str,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.check_not_sharded(config, processes)
        model = ValueModel(policy, tuple(heads), autocast)
        super().__init__(
            model,
            heads,
            config,
            processes,
            packing=packing,
            width=model.heads.in_features,
            rate=config.critic_learning_rate,
        )
        self._reads_responses = "token" in heads.values()

    def complete(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories with ``values`` and ``head_values``."""
        steps = [(i, t) for i, trajectory in enumerate(trajectories) for t in range(len(trajectory))]
        said = self._values([self._row(trajectories[i], t) for i, t in steps])
        result, first = [], 0
        for trajectory in trajectories:
            here = said[first : first + len(trajectory)]
            first += len(trajectory)
            values: dict[str, StepCredit] = {
                name: [each[:, h] for each in here] if kind == "token" else np.array([each[0, h] for each in here])
                for h, (name, kind) in enumerate(self.heads.items())
            }
            starts = np.array([each[0, 0] for each in here])
            result.append(replace(trajectory, values=starts, head_values=values))
        return result

    def prompt_values(self, prompts: Sequence[tuple[int, ...]], head: str) -> Floats:
        """(n,) what a head says at the last token of each prompt."""
        said = self._values([TokenRow(prompt, _ANY) for prompt in prompts])
        return np.array([each[0, tuple(self.heads).index(head)] for each in said])

    def learn(self, lessons: Iterable[Lesson], rng: np.random.Generator) -> dict[str, float]:
        """See :meth:`Beside.learn`; a lesson is ``{head: N entries}`` as in ``Credit.value_targets``.

        The loss of each head is the mean over its targets y of ``1/2 max((V - y)^2, (V_c - y)^2)``, where V_c is V kept
        within ``critic_clip`` of what it was when the values were told; losses of heads are added.
        """
        items = [item for trajectories, targets in lessons for item in self._items(trajectories, targets or {})]
        losses, norms = [], []
        if items:
            for _ in range(self.config.critic_passes):
                for part in minibatches(items, self.config.critic_minibatches, rng):
                    loss, norm = self._step([items[number] for number in part])
                    losses.append(loss)
                    norms.append(norm)
        metrics = {"critic_loss": float(np.mean(losses)) if losses else 0.0}
        metrics["critic_grad_norm"] = float(np.mean(norms)) if norms else 0.0
        return metrics | self._explained(items)

    def _row(self, trajectory: Trajectory, t: int) -> TokenRow:
        return TokenRow(trajectory.prompt_ids[t], trajectory.response_ids[t] if self._reads_responses else _ANY)

    def _values(self, rows: Sequence[TokenRow]) -> list[Floats]:
        """(K, H) for each row of K response tokens."""

        def score(batch: MicroBatch) -> Sequence[Tensor]:
            return self._forward(batch).unbind(-1)

        return [torch.stack(each, -1).numpy() for each in self.work.scores(rows, score)] if rows else []

    def _forward(self, batch: MicroBatch) -> Tensor:
        """(tokens, H) of the rows' response tokens."""
        values: Tensor = self.processes.forward(*self.model.inputs(batch))
        return values[batch.places.to(values.device)]

    def _items(self, trajectories: Sequence[Trajectory], targets: Mapping[str, Sequence[StepCredit]]) -> list["_Item"]:
        """All steps with anything to learn."""
        if unknown := targets.keys() - self.heads.keys():
            raise ConfigError(
                f"value_targets for {', '.join(map(repr, sorted(unknown)))}, which is no head; the heads are "
                f"{', '.join(self.heads)}: a method declares them as heads = {{name: 'step' or 'token'}}"
            )
        items = []
        for i, trajectory in enumerate(trajectories):
            for t in range(len(trajectory)):
                row = self._row(trajectory, t)
                wanted = np.full((len(row.response), len(self.heads)), np.nan)
                before = np.zeros_like(wanted)
                for h, (name, kind) in enumerate(self.heads.items()):
                    places = slice(None) if kind == "token" else slice(1)
                    before[places, h] = trajectory.head_values[name][t]
                    if name in targets:
                        wanted[places, h] = targets[name][i][t]
                if not np.isnan(wanted).all():
                    items.append(_Item(row, wanted, before))
        return items

    def _step(self, items: Sequence["_Item"]) -> tuple[float, float]:
        """Take one optimiser step; returns its loss and gradient norm."""
        counts = sum((~np.isnan(item.wanted)).sum(axis=0) for item in items)

        def loss_of(batch: MicroBatch, numbers: list[int]) -> Tensor:
            values = self._forward(batch)
            wanted, before = (
                torch.from_numpy(np.concatenate([getattr(items[n], name) for n in numbers])).to(values)
                for name in ("wanted", "before")
            )
            shares = torch.tensor(1.0 / np.maximum(counts, 1)).to(values)
            return (value_losses(values, wanted, before, self.config.critic_clip) * shares).sum()

        return self.step([item.row for item in items], loss_of)

    def _explained(self, items: Sequence["_Item"]) -> dict[str, float]:
        """How much of the targets' variance the values explained before this iteration's steps, head by head."""
        metrics = {}
        for h, name in enumerate(self.heads):
            wanted = np.concatenate([item.wanted[:, h] for item in items]) if items else np.empty(0)
            before = np.concatenate([item.before[:, h] for item in items]) if items else np.empty(0)
            known = ~np.isnan(wanted)
            spread = float(wanted[known].var()) if known.any() else 0.0
            left = float((wanted - before)[known].var()) if known.any() else 0.0
            suffix = f"_{name}" if len(self.heads) > 1 else ""
            metrics[f"critic_explained_variance{suffix}"] = 1 - left / spread if spread > 0 else 0.0
        return metrics


class _Item(NamedTuple):
    """One step to learn from: (K, H) targets, NaN where there are none, and what the heads said before."""

    row: TokenRow
    wanted: Floats
    before: Floats


def value_losses(values: Tensor, targets: Tensor, before: Tensor, clip: float) -> Tensor:
    """``1/2 max((V - y)^2, (V_c - y)^2)`` with ``V_c = clamp(V, V_old - clip, V_old + clip)``; 0 where y is NaN.

    All have one shape. ``clip`` 0: plain squares.
    """
    known = ~torch.isnan(targets)
    wanted = torch.where(known, targets, values.detach())
    losses = (values - wanted).square()
    if clip:
        near = torch.maximum(torch.minimum(values, before + clip), before - clip)
        losses = torch.maximum(losses, (near - wanted).square())
    return torch.where(known, losses / 2, torch.zeros_like(losses))
