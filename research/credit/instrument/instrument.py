"""Measure methods of credit: ``policy, game -> truth, batches, exact gradient -> credit of every method ->
figures``."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from agents import Policy
from agents.analysis import has_local_model
from agents.common import mean, over_rows
from agents.msgrpo import DRAWS, checked_credit, spreads
from agents.msgrpo.credit import METHODS, Batch, Credit, CreditMethod
from research.credit.instrument.batches import Setting, play, why_not_met, with_needs
from research.credit.instrument.draws import DrawnBatch, compare_draws
from research.credit.instrument.exact.answers import DEFAULT_SAMPLES, Progress
from research.credit.instrument.exact.solution import MAX_STATES
from research.credit.instrument.exact.truth import Chances, DrawnReturns, Noise, Oracle
from research.credit.instrument.fidelity import COSINES, NOTHING, BatchGradient, compare, fidelity, granularity, quality
from research.credit.instrument.gradients import (
    BatchRows,
    EpisodeGradients,
    ExactGradient,
    RowProducts,
    exact_gradient,
    numbered,
)
from research.credit.instrument.results import CreditReport, MethodResult, TruthSummary
from research.credit.instrument.scores import ScoreModel, why_no_gradient
from textgames import Scenario

ORACLE, NOISE = "oracle", "noise"

DEFAULT_METHODS = ("msgrpo", "rloo", "rtg", "gigpo", "empg", "ppo_turn")
"""What is measured unless said otherwise: a handful that differ, and that play nothing more. Those that are there."""

DEFAULT_BATCHES = 8


class Credited(NamedTuple):
    """The credit that one method gave to all batches."""

    credits: list[Credit]
    extra_tokens: float
    seconds: float


class Instrument:
    """A policy on a game with everything that measuring credit takes, made once for any number of methods.

    Args:
        policy: plays every seat; its temperature is that of training, 1.25 for MS-GRPO.
        batches: how many batches are played from the same starts.
        samples, max_states: as of :meth:`Truth.of`.
        gradient: whether to look at gradients, if the policy has a model in this process.

    Raises:
        ValueError: the game or the policy can't be measured; the message says why, and what can.
        RuntimeError: a provider's error.

    Attributes:
        truth: the true values.
        batches: what was played.
        model: of the policy, for gradients; ``None`` without, and then ``no_gradient`` says why.
        credited: what each of the methods measured last assigned.
    """

    def __init__(
        self,
        policy: Policy,
        setting: Setting,
        *,
        batches: int = DEFAULT_BATCHES,
        samples: int = DEFAULT_SAMPLES,
        max_states: int = MAX_STATES,
        gradient: bool = True,
        progress: Progress | None = None,
    ) -> None:
        if batches < 1:
            raise ValueError(f"batches must be at least 1, got {batches}")
        self.policy, self.setting = policy, setting
        self._progress = progress or (lambda what, done, total: None)
        self.truth = setting.truth(policy, samples=samples, max_states=max_states, progress=progress)
        self.no_gradient = why_no_gradient(policy) if gradient else "it wasn't asked for"
        self.model = None if self.no_gradient else ScoreModel(policy)
        self.credited: dict[str, Credited] = {}
        self.batches: list[Batch] = []
        for number in range(batches):
            self._progress("batches played", number, batches)
            self.batches.append(play(policy, setting, number))
        self._progress("batches played", batches, batches)

    @cached_property
    def exact(self) -> ExactGradient | None:
        """The exact gradient of the policy's return from the starts; ``None`` without a model."""
        if self.model is None:
            return None
        self._progress("exact gradient", 0, 1)
        return exact_gradient(self.model, self.truth.answers, self.truth.solution, self.truth.halves)

    @cached_property
    def _chances(self) -> Chances:
        return Chances(self.truth)

    def measure(
        self, methods: Mapping[str, CreditMethod], *, draws: Sequence[str] = (), sizes: Sequence[int] = ()
    ) -> CreditReport:
        """Measure methods, and "oracle" and "noise" beside them.

        Args:
            methods: by the names that results are to have.
            draws: draw rules to look at, of every method.
            sizes: numbers of episodes to draw; half of a batch if none is given.
        """
        everyone: dict[str, CreditMethod] = {**methods, ORACLE: Oracle(self.truth), NOISE: Noise()}
        skipped: dict[str, str] = {}
        self.credited = credited = dict[str, Credited]()
        for number, (name, method) in enumerate(everyone.items()):
            self._progress("credit assigned", number, len(everyone))
            if (reason := why_not_met(method, self.policy, self.truth)) is not None:
                skipped[name] = reason
                continue
            try:
                credited[name] = self.assign(name, method)
            except ValueError as error:  # it wants a batch of another kind
                skipped[name] = str(error)
        if draws and not sizes:
            sizes = (max(1, len(self.batches[0]) // 2),)
        gradients, results = self._gradients(credited, draws, sizes), []
        for name, (credits, extra, seconds) in credited.items():
            own = gradients.get(name, {"gradient": None})
            own |= {"extra_tokens": extra, "seconds": seconds, "granularity": granularity(credits)}
            results.append(MethodResult(name, fidelity(compare(self.batches, credits, self.truth)), **own))
        return self._report(results, skipped)

    def assign(self, name: str, method: CreditMethod) -> Credited:
        """Return a method's credit of all batches, one after the other, as in training.

        Fresh rollouts are drawn from the exact chances if these are known, and played elsewhere.
        """
        credits, extra, seconds = [], 0.0, 0.0
        for number, batch in enumerate(self.batches):
            ready = with_needs(batch, method, self.policy, self.model, self.truth)
            seed = (self.setting.seed, number, crc32(name.encode()))
            if self.truth.is_exact and "rollouts" in method.needs:
                drawn = DrawnReturns(self.policy, self._chances, np.random.default_rng((*seed, 1)))
                ready = replace(ready, rollouts=drawn)
            before = 0 if ready.rollouts is None else ready.rollouts.tokens
            started = perf_counter()
            credits.append(checked_credit(name, method.assign(ready, np.random.default_rng(seed)), ready))
            seconds += perf_counter() - started
            extra += 0 if ready.rollouts is None else ready.rollouts.tokens - before
        return Credited(credits, extra / len(self.batches), seconds / len(self.batches))

    def _gradients(
        self, credited: Mapping[str, Credited], draws: Sequence[str], sizes: Sequence[int]
    ) -> dict[str, dict[str, Any]]:
        """Return what each method's result says of gradients: ``gradient``, ``normalisations`` and ``draws``."""
        if self.model is None or self.exact is None:
            return {}
        norm, references = math.sqrt(max(self.exact.squared_norm, 0.0)), self.exact.vector[:, None]
        means: dict[str, list[BatchGradient]] = {name: [] for name in credited}
        drawn: dict[str, list[DrawnBatch]] = {name: [] for name in credited}
        variants: dict[str, dict[str, list[float]]] = {name: {} for name in credited}
        number = 0
        for part in numbered(self.batches, self.model.size):
            self._progress("batches' gradients", number, len(self.batches))
            products = RowProducts(self.model, part[0].rows, references)
            for rows in part:
                everyone = np.full(len(rows.batch), 1 / len(rows.batch))
                credits = [each.credits[number] for each in credited.values()]
                vectors = products.mean_gradients(rows, credits)
                for name, credit, vector in zip(credited, credits, vectors, strict=True):
                    own = products.episodes(rows, credit)
                    if own.square(everyone) == 0:  # nothing is left of it but rounding
                        vector = vector.new_zeros(vector.shape)
                    along = float(vector.double() @ self.exact.vector.double())
                    means[name].append(BatchGradient(vector, along, len(rows.batch), rows.tokens.sum()))
                    for variant, found in _variants(products, rows, credit).items():
                        variants[name].setdefault(variant, []).append(found.cosine(everyone, 0, norm))
                    if draws:
                        drawn[name].append(DrawnBatch(rows.batch, credit, own, rows.tokens))
                number += 1
        self._progress("batches' gradients", len(self.batches), len(self.batches))
        told: dict[str, dict[str, Any]] = {}
        for name in credited:
            scaled = {each: over_rows(np.array(own)[:, None], mean(0), COSINES) for each, own in variants[name].items()}
            told[name] = {"gradient": quality(means[name], norm, self.exact.reliability), "normalisations": scaled}
            if draws:
                compared = compare_draws(drawn[name], draws, sizes, [norm] * len(self.batches), seed=self.setting.seed)
                told[name]["draws"] = tuple(compared)
        return told

    def _report(self, results: Sequence[MethodResult], skipped: Mapping[str, str]) -> CreditReport:
        truth, exact, setting = self.truth, self.exact, self.setting
        episodes = [each for batch in self.batches for each in batch.trajectories]
        lengths = [len(each) for each in episodes]
        policy: Any = self.policy
        decoding = getattr(policy, "decoding", None)
        summary = TruthSummary(
            source=truth.answers.source,
            samples=truth.answers.samples,
            states=len(truth.graph.states),
            questions=len(truth.answers.questions),
            expected_return=float(truth.solution.returns.mean()),
            invalid=float(np.mean([not valid for each in episodes for valid in each.valid.tolist()])),
            reliability=truth.reliability(self.batches),
            gradient_reliability=None if exact is None else exact.reliability,
            other_forms=truth.other_forms(self.batches),
            forks=float(np.mean(np.abs(np.concatenate([*map(truth.advantages, episodes)])) > NOTHING)),
        )
        played = {
            "groups": setting.groups,
            "group_size": setting.group_size,
            "batches": len(self.batches),
            "horizon": setting.rounds,
            "temperature": None if decoding is None else decoding.temperature,
            "format_penalty": setting.format_penalty,
            "invalid_action": setting.invalid_action,
            "seed": setting.seed,
        }
        return CreditReport(
            agent=policy.name,
            game=setting.scenario.name,
            setting=played,
            truth=summary,
            methods=tuple(results),
            skipped=dict(skipped),
            no_gradient=self.no_gradient,
            episode_tokens=float(np.mean([each.tokens for each in episodes])),
            episode_length=float(np.mean(lengths)),
            episode_lengths=(min(lengths), float(np.median(lengths)), max(lengths)),
            parameters=sum(p.numel() for p in policy.model.model.parameters()) if has_local_model(policy) else None,
        )


def _variants(products: RowProducts, rows: BatchRows, credit: Credit) -> dict[str, EpisodeGradients]:
    """Return the credit scaled in the other ways that are in use."""
    per_step = [each for each in credit.advantages if isinstance(each, np.ndarray)]
    if len(per_step) < len(credit.advantages):
        return {}
    spread = np.empty(len(rows.batch))  # (N,) the standard deviation of the returns of each one's group
    for members, own in zip(rows.batch.groups.values(), spreads(rows.batch), strict=True):
        spread[members] = own
    lengths = np.array([len(row.response) for row in rows.rows], dtype=np.float64)
    divided = [each / s if s > 0 else each for each, s in zip(per_step, spread, strict=True)]
    times = [each * s for each, s in zip(per_step, spread, strict=True)]
    return {
        "divided by group std": products.episodes(rows, credit._replace(advantages=divided)),
        "times group std": products.episodes(rows, credit._replace(advantages=times)),
        "mean per response": products.episodes(rows, credit, row_weights=1 / lengths),
    }


def methods_of(names: Iterable[str], setting: Setting) -> dict[str, CreditMethod]:
    """Make registered methods with the settings that training has by default; a ConfigError for no such method."""
    shared = vars(setting.config)
    return {name: METHODS.make(name, {}, shared) for name in dict.fromkeys(names) if name not in (ORACLE, NOISE)}


def default_methods() -> tuple[str, ...]:
    """Return those of :data:`DEFAULT_METHODS` that are registered."""
    return tuple([name for name in DEFAULT_METHODS if name in METHODS.names])


def measure(
    policy: Policy,
    scenario: Scenario | Setting,
    methods: Sequence[str] | Mapping[str, CreditMethod] | None = None,
    *,
    draws: Sequence[str] = (),
    sizes: Sequence[int] = (),
    **how: Any,
) -> CreditReport:
    """Measure methods of credit on a policy and a game.

    Args:
        policy: plays every seat, without history; its temperature is that of training, 1.25 for MS-GRPO.
        scenario: a small game with ``outcomes``, or a setting of one.
        methods: names of registered methods, or ``{name: method}``; :data:`DEFAULT_METHODS` when not given.
        draws, sizes: as of :meth:`Instrument.measure`.
        how: fields of :class:`Setting`, and what :class:`Instrument` takes.

    Raises:
        ValueError: the game or the policy can't be measured.
        ConfigError: no such method or rule.
        RuntimeError: a provider's error.
    """
    setting = scenario if isinstance(scenario, Setting) else Setting(scenario)
    setting = replace(setting, **{one.name: how.pop(one.name) for one in fields(Setting) if one.name in how})
    if not isinstance(methods, Mapping):
        methods = methods_of(default_methods() if methods is None else methods, setting)
    for rule in draws:
        DRAWS.check(rule)
    return Instrument(policy, setting, **how).measure(methods, draws=draws, sizes=sizes)
