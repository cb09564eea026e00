"""The critic: an optional model of values with an optimiser of its own, for methods that need ``values``.

A method of credit (or a task sampler) that has ``"values"`` in ``needs`` declares the values that it reads::

    heads = {"state": "step"}                        # V(s_t), read at the last token of the prompt
    heads = {"token": "token"}                       # one value before each response token
    heads = {"low": "token", "high": "step"}         # several at once, from one backbone

It finds the values in ``Trajectory.values`` (the first head) and ``Trajectory.head_values``, and returns their targets
as ``Credit.value_targets``; NaN stands for nothing to learn. A sampler has ``value_targets(batch)`` for it.

A method with ``"reward_model"`` in ``needs`` has a reward model in the critic's place, which its ``beside`` makes: it
finds ``Trajectory.log_ratios`` and returns :class:`Preferences` as ``Credit.preferences``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agents.episode import EpisodeTask
from agents.loop.live import LiveEpisode
from agents.models.local.forward.llama_forward import unwrap
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Heads, StepCredit, TokenRow, Trajectory
from agents.msgrpo.errors import ConfigError, DivergenceError, TrainingDivergedError, UnusableModelError, refused
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import copy_of_trained
from agents.msgrpo.learner.scoring.packing import MicroBatch, SharedWork
from agents.msgrpo.learner.scoring.scorer import TokenScorer, inputs_of
from agents.msgrpo.learner.update import make_optimizer, minibatches
from agents.policy import LanguageAgentPolicy

# ---------------------------------------------------------------- what learns beside the policy

Lesson = tuple[Sequence[Trajectory], Any]
"""Trajectories, and what the model is to learn from them."""


class Beside:
    """A model that is made of the policy as it begins, adds its values to trajectories, and learns after the policy.

    A subclass makes ``model`` after :meth:`check_not_sharded`. A checkpoint knows its values by the names ``heads``.
    ``packing``, ``width`` and ``lean`` are as in :class:`SharedWork`; ``rate`` is its constant learning rate.
    """

    called: ClassVar[str] = "critic"
    rate_setting: ClassVar[str] = "critic_learning_rate"

    def __init__(
        self,
        model: nn.Module,
        heads: Mapping[str, str],
        config: MSGRPOConfig,
        processes: Processes,
        *,
        packing: str,
        width: int,
        rate: float,
        lean: bool = False,
    ) -> None:
        self.model, self.heads, self.config = model, heads, config
        self.processes = processes.another()
        own = replace(config, learning_rate=rate)
        self.optimizer = self.processes.prepare(model, make_optimizer(model, own))
        self.work = SharedWork(config, self.processes, packing, width, lean=lean)

    @classmethod
    def check_not_sharded(cls, config: MSGRPOConfig, processes: Processes) -> None:
        if processes.sharded:
            raise ConfigError(
                f"credit = {config.credit!r} with task_sampling = {config.task_sampling!r} needs a {cls.called}, which "
                "can't be sharded over processes (FSDP): train data-parallel or in one process, or choose methods that "
                "need none"
            )

    def alone(self, iteration: int) -> bool:
        """Return whether only this model learns in this iteration, counted from 0."""
        return iteration < self.config.critic_warmup

    def complete(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        raise NotImplementedError

    def learn(self, lessons: Iterable[Lesson], rng: np.random.Generator) -> dict[str, float]:
        """Take all optimiser steps of one iteration and return metrics; ``rng`` shuffles alike in every process."""
        raise NotImplementedError

    def step(self, rows: Sequence[TokenRow], loss_of: Callable[[MicroBatch, list[int]], Tensor]) -> tuple[float, float]:
        limit = self.config.critic_max_grad_norm
        try:
            return self.work.step(rows, lambda *part: loss_of(*part[:2]), self.optimizer, limit)
        except DivergenceError as error:
            raise TrainingDivergedError(
                f"the {self.called}: {error}; its step was not applied. "
                f"Lower {self.rate_setting} (now {getattr(self.config, self.rate_setting):g})",
                self.rate_setting,
            ) from error

    def state_dict(self) -> dict[str, Any]:
        weights = {name: each.cpu().clone() for name, each in own_weights(self.model).items()}
        optimizer = self.processes.optimizer_state(self.optimizer)
        return {"heads": dict(self.heads), "weights": weights, "optimizer": optimizer}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        if state is None:
            raise ConfigError(
                f"the checkpoint holds no {self.called}, which credit = {self.config.credit!r} needs: resume it with "
                "the method that it was trained with, or begin a new run from its model"
            )
        # heads of other values can have the same shapes
        if list(state["heads"].items()) != list(self.heads.items()):
            raise ConfigError(
                f"credit = {self.config.credit!r} with task_sampling = {self.config.task_sampling!r} needs a "
                f"{self.called} with the heads {dict(self.heads)!r}, but the checkpoint's {self.called} is of "
                f"another model or method, with the heads {state['heads']!r}: resume it with the method that it was "
                "trained with, or begin a new run from its model"
            )
        what = f"the checkpoint's {self.called} is of another model or method"
        with refused(what, KeyError, RuntimeError, ValueError), torch.no_grad():
            for name, each in own_weights(self.model).items():
                each.copy_(state["weights"][name])
            self.processes.load_optimizer_state(self.optimizer, state["optimizer"])


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights that are trained, by name; the frozen ones are shared with the policy."""
    return {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}


# ---------------------------------------------------------------- the critic


class ValueModel(nn.Module):
    """Values at places of a text: ``V_h = w_h . hidden + b_h`` for each head h, on the last hidden states.

    The backbone is the policy's as it is when this is made. Weights that the policy trains are copied; frozen ones are
    shared: with an adapter of peft the critic has an adapter of its own on the one base model. Heads start at 0, in
    float32.
    """

    def __init__(self, policy: nn.Module, heads: Sequence[str], autocast: torch.dtype | None = None) -> None:
        super().__init__()
        causal_lm = unwrap(policy)
        backbone = getattr(causal_lm, "base_model", causal_lm)
        if backbone is causal_lm:
            raise UnusableModelError(
                f"{type(causal_lm).__name__} has no base_model apart from its output head, so a critic can't be made "
                "of it: choose a method of credit that needs no values"
            )
        self.backbone = copy_of_trained(backbone)
        self.names, self.autocast = tuple(heads), autocast
        weight = next(self.backbone.parameters())
        with torch.no_grad():
            start = torch.zeros((1, 1), dtype=torch.long, device=weight.device)
            width = self.backbone(input_ids=start, use_cache=False)[0].shape[-1]
        kept = torch.float64 if weight.dtype == torch.float64 else torch.float32
        kinds: dict[str, Any] = {"device": weight.device, "dtype": kept}
        self.heads: Any = nn.utils.skip_init(nn.Linear, width, len(self.names), **kinds)  # type: ignore[no-untyped-call]
        nn.init.zeros_(self.heads.weight)
        nn.init.zeros_(self.heads.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor | None, index: Tensor) -> Tensor:
        """Return (n, H) values at the places ``index`` (n,) of the flattened (B, L) input."""
        inputs: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask, "use_cache": False}
        if position_ids is not None:
            inputs["position_ids"] = position_ids
        kind = self.heads.weight.device.type
        with nullcontext() if self.autocast is None else torch.autocast(kind, dtype=self.autocast):
            hidden = self.backbone(**inputs)[0].flatten(0, 1).index_select(0, index)
        with torch.autocast(kind, enabled=False):
            values: Tensor = self.heads(hidden.to(self.heads.weight.dtype))
            return values

    def inputs(self, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        return inputs_of(batch, self.backbone, self.autocast)


_ANY = (0,)  # values of prompts alone are read where the first response token would be predicted, whichever it is


class Critic(Beside):
    """A model of values, its optimiser, and the processes that share its work.

    "step" heads are read at the last token of a prompt. "token" heads are read there for the first response token, and
    at each response token for the one after it: the value of token k knows the tokens before k alone.
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
            model, heads, config, processes, packing=packing, width=model.heads.in_features,
            rate=config.critic_learning_rate,
        )  # fmt: skip
        self._reads_responses = "token" in heads.values()

    def complete(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        said = iter(self._values([self._row(each, t) for each in trajectories for t in range(len(each))]))
        result = []
        for trajectory in trajectories:
            here = list(islice(said, len(trajectory)))
            values: dict[str, StepCredit] = {
                name: [each[:, h] for each in here] if kind == "token" else np.array([each[0, h] for each in here])
                for h, (name, kind) in enumerate(self.heads.items())
            }
            starts = np.array([each[0, 0] for each in here])
            result.append(replace(trajectory, values=starts, head_values=values))
        return result

    def prompt_values(self, prompts: Sequence[tuple[int, ...]], head: str) -> Floats:
        """Return (n,) a head's values at the last token of each prompt."""
        said = self._values([TokenRow(prompt, _ANY) for prompt in prompts])
        return np.array([each[0, tuple(self.heads).index(head)] for each in said])

    def learn(self, lessons: Iterable[Lesson], rng: np.random.Generator) -> dict[str, float]:
        """Take all optimiser steps; a lesson is ``{head: N entries}`` as in ``Credit.value_targets``.

        The loss of each head is the mean over its targets y of ``1/2 max((V - y)^2, (V_c - y)^2)``, if V_c is V kept
        within ``critic_clip`` of its value before; losses of heads are added.
        """
        items = [item for trajectories, targets in lessons for item in self._items(trajectories, targets or {})]
        steps = [
            self._step([items[number] for number in part])
            for _ in range(self.config.critic_passes if items else 0)
            for part in minibatches(items, self.config.critic_minibatches, rng)
        ]
        losses, norms = zip(*steps, strict=True) if steps else ((0.0,), (0.0,))
        metrics = {"critic_loss": float(np.mean(losses)), "critic_grad_norm": float(np.mean(norms))}
        for h, name in enumerate(self.heads):  # how much of the targets' variance the values explained before
            wanted = np.concatenate([item.wanted[:, h] for item in items]) if items else np.empty(0)
            before = np.concatenate([item.before[:, h] for item in items]) if items else np.empty(0)
            known = ~np.isnan(wanted)
            spread = float(wanted[known].var()) if known.any() else 0.0
            left = float((wanted - before)[known].var()) if known.any() else 0.0
            suffix = f"_{name}" if len(self.heads) > 1 else ""
            metrics[f"critic_explained_variance{suffix}"] = 1 - left / spread if spread > 0 else 0.0
        return metrics

    def _row(self, trajectory: Trajectory, t: int) -> TokenRow:
        return TokenRow(trajectory.prompt_ids[t], trajectory.response_ids[t] if self._reads_responses else _ANY)

    def _values(self, rows: Sequence[TokenRow]) -> list[Floats]:
        """Return (K, H) for each row of K response tokens."""
        told = self.work.scores(rows, lambda batch: self._forward(batch).unbind(-1)) if rows else []
        return [torch.stack(each, -1).numpy() for each in told]

    def _forward(self, batch: MicroBatch) -> Tensor:
        """Return (tokens, H) of the rows' response tokens."""
        values: Tensor = self.processes.forward(*self.model.inputs(batch))
        return values[batch.places.to(values.device)]

    def _items(self, trajectories: Sequence[Trajectory], targets: Mapping[str, Sequence[StepCredit]]) -> list["_Item"]:
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


class _Item(NamedTuple):
    """One step to learn from: (K, H) targets, NaN if there are none, and the heads' values before."""

    row: TokenRow
    wanted: Floats
    before: Floats


def value_losses(values: Tensor, targets: Tensor, before: Tensor, clip: float) -> Tensor:
    """Return ``1/2 max((V - y)^2, (V_c - y)^2)`` with ``V_c = clamp(V, V_old - clip, V_old + clip)``; 0 if y is NaN.

    All have one shape. ``clip`` 0: plain squares.
    """
    known = ~torch.isnan(targets)
    wanted = torch.where(known, targets, values.detach())
    losses = (values - wanted).square()
    if clip:
        near = torch.maximum(torch.minimum(values, before + clip), before - clip)
        losses = torch.maximum(losses, (near - wanted).square())
    return torch.where(known, losses / 2, torch.zeros_like(losses))


# ---------------------------------------------------------------- what a run's methods need


def heads_of(method: Any) -> Heads:
    """Return the heads that a method of credit or a task sampler wants; none if it needs no values."""
    if "values" not in method.needs:
        return {}
    heads: Heads = method.heads
    if not heads or not set(heads.values()) <= {"step", "token"}:
        raise ConfigError(
            f"{type(method).__name__}.heads must be a name for each value with 'step' (read at the prompt's last "
            f"token) or 'token' (read before each response token), got {dict(heads)!r}"
        )
    return heads


def make_beside(
    methods: Methods,
    scorer: TokenScorer,
    config: MSGRPOConfig,
    processes: Processes,
    packing: str,
    autocast: torch.dtype | None,
) -> Beside | None:
    """Return the critic for the heads of the method of credit and of the task sampler, or the method's reward model."""
    credit, sampler = heads_of(methods.credit), heads_of(methods.sampler)
    if "reward_model" in methods.credit.needs:
        if credit or sampler:
            raise ConfigError(
                f"credit = {config.credit!r} learns a reward model, and task_sampling = {config.task_sampling!r} or "
                "its base method needs a critic: accepted is one model beside the policy"
            )
        own: Beside | None = methods.credit.beside(scorer, config, processes, packing)
        if own is None:
            raise ConfigError(f"credit = {config.credit!r} needs a reward model, and its beside(...) makes none")
        return own
    if same := credit.keys() & sampler.keys():
        raise ConfigError(
            f"credit = {config.credit!r} and task_sampling = {config.task_sampling!r} both have a value named "
            f"{', '.join(map(repr, sorted(same)))}: rename one of them in its class's heads"
        )
    if not credit and not sampler:
        return None
    return Critic(scorer.model, {**credit, **sampler}, config, processes, packing=packing, autocast=autocast)


def lessons(methods: Methods, played: Batch, batch: Batch, credit: Credit) -> list[Lesson]:
    """Return the lessons of an iteration for the critic or the reward model.

    The method of credit teaches on the trajectories that it was given, drawn or not; a sampler that needs values
    teaches on all that were played, with ``value_targets(batch)``.
    """
    if "reward_model" in methods.credit.needs:
        return [(batch.trajectories, credit.preferences)]
    taught: list[Lesson] = [(batch.trajectories, credit.value_targets)]
    if "values" in methods.sampler.needs:
        taught.append((played.trajectories, methods.sampler.value_targets(played)))
    return taught


def first_prompt_values(
    critic: Beside | None, methods: Methods, policy: LanguageAgentPolicy, model: nn.Module, tokenizer: Any
) -> Callable[[Sequence[EpisodeTask]], Floats] | None:
    """Return a function that values the first prompts of tasks by the sampler's first head, if it needs values."""
    heads = heads_of(methods.sampler)
    if not isinstance(critic, Critic) or not heads:
        return None
    reader = TransformersModel(model, tokenizer)

    def values(tasks: Sequence[EpisodeTask]) -> Floats:
        firsts = [next(iter(LiveEpisode(task, policy).requests().values())) for task in tasks]
        return critic.prompt_values(reader.encode([*map(policy.prompt_map, firsts)]), next(iter(heads)))

    return values
