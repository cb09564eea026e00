"""What a draw rule is worth: the gradient of M drawn episodes beside a gradient that they took no part in.

Two references answer two questions:

* ``"exact"``: the exact gradient of the return from a few starts, the same in every batch; in small games.
* ``"others"``: the mean gradient of all other batches, each with starts of its own as training draws them. It needs
  nothing of the game, so it is to be had on Snake too. It is noisy, so all its cosines are smaller by one factor; and
  it has the bias of the method itself, all episodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo.credit import Batch, Credit, CreditMethod
from agents.msgrpo.draws import DRAWS
from agents.turn import Policy
from benchmark.credit.batches import Setting, play, why_not_met, with_needs
from benchmark.credit.draws.comparison import REPEATS, DrawnBatch, DrawResult, compare_draws
from benchmark.credit.exact.answers import DEFAULT_SAMPLES, Progress
from benchmark.credit.gradients.episodes import (
    EpisodeGradients,
    RowProducts,
    episode_by_episode,
    means_of_others,
    numbered,
)
from benchmark.credit.gradients.scores import ScoreModel
from benchmark.credit.instrument import Instrument, methods_of
from textgames.scenarios import Scenario

RULES = ("aaw", "unbiased", "uniform", "uniform_nonzero", "off")
SIZES = (8, 16, 32, 64)

Reference = Literal["exact", "others"]


@dataclass(frozen=True)
class DrawStudy:
    """The result of :func:`study_draws`.

    Attributes:
        agent, game, method: whose gradients.
        reference: what they are compared with.
        batches: how many were played.
        episodes: trajectories of a batch.
        silent_groups: the share of the groups whose episodes all have an advantage of 0.
        results: of every rule at every number of draws.
    """

    agent: str
    game: str
    method: str
    reference: Reference
    batches: int
    episodes: float
    silent_groups: float
    results: tuple[DrawResult, ...]

    def __getitem__(self, place: tuple[str, int]) -> DrawResult:
        """The result of a rule that draws m episodes."""
        for result in self.results:
            if (result.rule, result.m) == place:
                return result
        raise KeyError(place)


def study_draws(
    policy: Policy,
    scenario: Scenario | Setting,
    method: str | tuple[str, CreditMethod] = "msgrpo",
    *,
    rules: Sequence[str] = RULES,
    sizes: Sequence[int] = SIZES,
    reference: Reference = "exact",
    batches: int = 32,
    samples: int = DEFAULT_SAMPLES,
    repeats: int = REPEATS,
    progress: Progress | None = None,
    **of_setting: Any,
) -> DrawStudy:
    """Compare draw rules on one policy, game and method.

    Args:
        policy: with a model in this process, at the temperature of training.
        scenario: the game, or a setting of it; for ``"exact"`` a small one with ``outcomes``.
        method: the name of a registered method, or ``(name, method)``.
        rules: names of draw rules. ``minus_uniform`` of the results compares with ``uniform`` in any case.
        sizes: numbers of episodes that are drawn.
        reference: see the head of this file.
        batches: how many are played; the independent parts of all intervals.
        samples: responses to each prompt, for ``"exact"``, where they are needed.
        repeats: draws from each batch.
        progress: ``(what, done, total)`` as it goes on.
        of_setting: fields of :class:`Setting`.

    Raises:
        ValueError: the policy has no gradient, the game no exact one, or there are too few batches.
        ConfigError: no such method or rule.
        RuntimeError: a provider's error.
    """
    for rule in rules:
        DRAWS.check(rule)
    if batches < 2:
        raise ValueError(f"an interval takes at least 2 batches, got {batches}")
    setting = Setting.of(scenario, **of_setting)
    name, how = (method, methods_of([method], setting)[method]) if isinstance(method, str) else method
    tell = progress or (lambda what, done, total: None)
    if reference == "exact":
        drawn, norms = _beside_the_exact(policy, setting, name, how, batches, samples, tell)
    else:
        drawn, norms = _beside_the_others(policy, setting, name, how, batches, tell)
    results = compare_draws(drawn, rules, sizes, norms, reference_name=reference, repeats=repeats, seed=setting.seed)
    return DrawStudy(
        agent=policy.name,
        game=setting.scenario.name,
        method=name,
        reference=reference,
        batches=batches,
        episodes=float(np.mean([len(each.batch) for each in drawn])),
        silent_groups=_silent_groups(drawn),
        results=tuple(results),
    )


Drawn = tuple[list[DrawnBatch], list[float]]
"""The batches, and the length of the reference of each."""


def _beside_the_exact(
    policy: Policy, setting: Setting, name: str, method: CreditMethod, batches: int, samples: int, tell: Progress
) -> Drawn:
    instrument = Instrument(policy, setting, batches=batches, samples=samples, progress=tell)
    if instrument.model is None or instrument.exact is None:
        raise ValueError(str(instrument.no_gradient))
    credits, exact = instrument.assign(name, method).credits, instrument.exact
    drawn = ready_to_draw(instrument.model, instrument.batches, credits, exact=exact.vector, tell=tell)
    return drawn, [max(exact.squared_norm, 0.0) ** 0.5] * batches


def _beside_the_others(
    policy: Policy, setting: Setting, name: str, method: CreditMethod, batches: int, tell: Progress
) -> Drawn:
    if (reason := why_not_met(method, policy, None)) is not None:
        raise ValueError(f"{name}: {reason}")
    model, played, credits = ScoreModel(policy), [], []
    for number in range(batches):
        tell("batches played", number, batches)
        batch = with_needs(play(policy, setting, number, fresh_starts=True), method, policy, model, None)
        played.append(batch)
        credits.append(method.assign(batch, np.random.default_rng((setting.seed, number, crc32(name.encode())))))
    others = gradients_of_others(model, played, credits)
    return ready_to_draw(model, played, credits, others=others, tell=tell), [float(each.norm()) for each in others]


def gradients_of_others(model: ScoreModel, batches: Sequence[Batch], credits: Sequence[Credit]) -> list[Tensor]:
    """The mean gradient of all other batches for each batch, every episode in it; (size,) each."""
    rows = [each for part in numbered(batches, model.size) for each in part]
    return means_of_others([each.gradient(model, credit) for each, credit in zip(rows, credits, strict=True)])


def ready_to_draw(
    model: ScoreModel,
    batches: Sequence[Batch],
    credits: Sequence[Credit],
    *,
    exact: Tensor | None = None,
    others: Sequence[Tensor] | None = None,
    tell: Progress = lambda what, done, total: None,
) -> list[DrawnBatch]:
    """Batches with the gradients of their episodes, along the references that are given.

    Args:
        model: whose gradients.
        batches: what was played.
        credits: of one method, for each of them.
        exact: (size,) a reference for all batches, the first column of :attr:`EpisodeGradients.along`.
        others: (size,) a reference for each batch, the last column.
        tell: how far it is.
    """
    drawn: list[DrawnBatch] = []
    shared = [] if exact is None else [exact.float()]
    for part in numbered(batches, model.size):
        first, last = len(drawn), len(drawn) + len(part)
        tell("batches' gradients", first, len(batches))
        own = [] if others is None else [each.float() for each in others[first:last]]
        references = torch.stack([*shared, *own], dim=1)
        products = None
        if len(part[0].rows) <= sum(_with_advantage(each) for each in credits[first:last]):
            products = RowProducts(model, part[0].rows, references)
        for place, (rows, credit) in enumerate(zip(part, credits[first:last], strict=True)):
            found = products.episodes(rows, credit) if products else episode_by_episode(model, rows, credit, references)
            columns = [*range(len(shared)), *([len(shared) + place] if own else [])]
            gradients = EpisodeGradients(found.products, found.along[:, columns])
            drawn.append(DrawnBatch(rows.batch, credit, gradients, rows.tokens))
    return drawn


def _with_advantage(credit: Credit) -> int:
    """How many episodes have any, and so a gradient: where responses reason these are fewer than different rows."""
    return sum(any(np.any(each) for each in own) for own in credit.advantages)


def _silent_groups(drawn: Sequence[DrawnBatch]) -> float:
    silent = [not np.any(each.credit.draw_weight[members]) for each in drawn for members in each.batch.groups.values()]
    return float(np.mean(silent))
