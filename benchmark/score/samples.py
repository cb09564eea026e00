"""Several samples of one start: what the best, the worst and all of k make of an agent.

A run that says ``resample`` draws other samples on the same starts and chances. ``returns (starts, samples) -> mean
over all choices of k of a start's samples -> mean over starts``, whose intervals are over starts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import comb

import numpy as np

from agents.common.intervals import Array, mean_estimate
from benchmark.score.comparison import return_range, solo_scenarios
from benchmark.score.document import EstimateView, SampleView
from benchmark.score.results import Cell, ResultColumns
from benchmark.score.scores import to_view
from textgames.scenarios import Scenario


def sample_rows(results: ResultColumns) -> list[SampleView]:
    """Make rows for every agent and scenario for one player of which there are several samples: k of 2, 4, 8 and so
    on, and of all."""
    rows: list[SampleView] = []
    for names, scenario in _several(results):
        rows += _rows(names, scenario, [results.cells[name, scenario.name] for name in names])
    return rows


def without_samples(results: ResultColumns) -> ResultColumns:
    """Return the results with the first sample of each agent alone, the plain run's if there is one.

    Boards rank and compare these: more samples of an agent are neither rivals of it nor further comparisons.
    """
    further = {(name, scenario.name) for names, scenario in _several(results) for name in names[1:]}
    if not further:
        return results
    cells = {key: cell for key, cell in results.cells.items() if key not in further}
    kept = {name for name, _ in cells} | (results.agents.keys() - {name for name, _ in further})
    return replace(
        results,
        agents={name: card for name, card in results.agents.items() if name in kept},
        agent_source={name: source for name, source in results.agent_source.items() if name in kept},
        names=[{name: here for name, here in own.items() if here in kept} for own in results.names],
        cells=cells,
    )


def _several(results: ResultColumns) -> Iterator[tuple[Sequence[str], Scenario]]:
    """Yield the names of each agent that has several samples of a start in a scenario for one player."""
    again = any(manifest.get("settings", {}).get("resample") for _, manifest in results.sources)
    for scenario in solo_scenarios(results) if again else ():
        for names in dict.fromkeys(tuple(samples_of(results, one, scenario.name).values()) for one in results.agents):
            scored = [name for name in names if results.cells[name, scenario.name].episodes]
            starts = [results.cells[name, scenario.name].returns()[0] for name in scored]
            if len(scored) > 1 and len(reduce(np.intersect1d, starts)):
                yield scored, scenario


def samples_of(results: ResultColumns, agent: str, scenario: str) -> dict[int | None, str]:
    """Return ``{resample: name}`` of the same agent in all runs of a scenario, the plain one first and one of each: two
    of equal samples are one play."""
    same, card = ("spec", "kind", "settings"), results.agents[agent]
    found: dict[int | None, str] = {}
    for other, own in results.agents.items():
        if (other, scenario) in results.cells and all(own[name] == card[name] for name in same):
            settings = results.sources[results.agent_source[other]][1].get("settings", {})
            found.setdefault(settings.get("resample"), other)
    return dict(sorted(found.items(), key=lambda one: one[0] or 0))


def _rows(names: Sequence[str], scenario: Scenario, cells: Sequence[Cell]) -> Iterator[SampleView]:
    tables = [cell.table() for cell in cells]
    starts: Array = reduce(np.intersect1d, [table["seed"] for table in tables])

    def of_starts(name: str) -> Array:
        """Return a column of every sample, shape (starts, samples); the tables are in the order of seeds."""
        return np.stack([table[name][np.isin(table["seed"], starts)] for table in tables], axis=1)

    def figure(values: Array, possible: Sequence[float]) -> EstimateView | None:
        return to_view(mean_estimate(values, possible, max(cell.confidence for cell in cells)))

    returns, successes = of_starts("score"), of_starts("success")
    known = bool(scenario.game().success_means) or successes.any()
    possible, count = return_range(scenario), len(cells)
    for k in [*(2**power for power in range(1, count.bit_length()) if 2**power < count), count]:
        (worst, best), (every, some) = worst_and_best(returns, k), worst_and_best(successes, k)
        yield SampleView(
            agent=names[0],
            others=[*names[1:]],
            scenario=scenario.name,
            k=k,
            samples=count,
            starts=len(starts),
            mean=figure(returns.mean(axis=1), possible),
            best=figure(best, possible),
            worst=figure(worst, possible),
            pass_at_k=figure(some, (0, 1)) if known else None,
            pass_all_k=figure(every, (0, 1)) if known else None,
        )


def worst_and_best(values: Array, k: int) -> tuple[Array, Array]:
    """Return for each row the mean, over all choices of ``k`` of its values, of the lowest and of the highest.

    These are unbiased for k independent draws. With values of 0 and 1 they are pass^k and pass@k (Chen et al. 2021,
    arXiv 2107.03374): ``C(c, k) / C(n, k)`` and ``1 - C(n - c, k) / C(n, k)`` with ``c`` ones among ``n``.
    """
    count, ordered = values.shape[1], np.sort(values, axis=1)
    # the share of the choices in which the value of each place is the highest: the others are of those below it
    weights = np.array([comb(place, k - 1) / comb(count, k) for place in range(count)])
    return ordered[:, ::-1] @ weights, ordered @ weights
