"""How often a player answers as it should, apart from how well it plays.

``cells of an agent -> one row a seed -> shares of responses and of episodes``. A response can be unreadable, out of
tokens, or a refusal; an episode can be forfeited by one, and it fails where a provider does. What any of that costs
depends on the protocol (:mod:`agents.protocol`), and is in the score already.
"""

from collections.abc import Sequence

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import CONFIDENCE
from agents.models.served.answers import NO_ANSWER
from benchmark.score.document import EstimateView, ReliabilityView
from benchmark.score.results import Cell, ResultColumns
from benchmark.score.scores import to_view

OF_RESPONSES = ("invalid", "cut_off", "refused")


def reliability_rows(results: ResultColumns, agents: Sequence[str]) -> list[ReliabilityView]:
    """A row for each of ``agents``, over all scenarios that it played; they are of one protocol."""
    rows = []
    for agent in agents:
        cells = {name: cell for (player, name), cell in results.cells.items() if player == agent}
        if not cells:  # of a manifest that has a card of an agent and no matchup
            continue
        scenario = results.scenarios[next(iter(cells))]
        rows.append(_row(agent, scenario.protocol, scenario.moves, list(cells.values())))
    return rows


def _row(agent: str, protocol: str, moves: str, cells: Sequence[Cell]) -> ReliabilityView:
    shares: dict[str, EstimateView | None] = dict.fromkeys((*OF_RESPONSES, "forfeited"))
    scored = sum(cell.episodes for cell in cells)
    names = ("responses", *OF_RESPONSES, "forfeited")
    columns = {name: np.concatenate([cell.columns[name] for cell in cells]) for name in ("seed", *names)}
    if scored:
        # a seed's games in several scenarios may be of one start, as those of a game and its twins are: they are one
        # observation, in which every response and episode counts once, though one scenario has more of them a seed
        _, place, games = np.unique(columns["seed"], return_inverse=True, return_counts=True)
        table = np.stack([*(np.bincount(place, columns[name]) for name in names), games], axis=1)
        wanted = [stats.share(names.index(name), names.index("responses")) for name in OF_RESPONSES]
        wanted.append(stats.share(names.index("forfeited"), len(names)))
        confidence = max((cell.confidence for cell in cells), default=CONFIDENCE)
        estimates = stats.bootstrap(table, wanted, confidence)
        shares |= {name: to_view(one) for name, one in zip(shares, estimates, strict=True)}
    late = sum(count for cell in cells for reason, count in cell.errors.items() if reason.startswith(NO_ANSWER))
    failed = sum(cell.unscored for cell in cells) - late
    return ReliabilityView(
        agent=agent,
        protocol=protocol,
        moves=moves,
        episodes=scored + late + failed,
        responses=int(columns["responses"].sum()),
        invalid=shares["invalid"],
        cut_off=shares["cut_off"],
        refused=shares["refused"],
        forfeited=shares["forfeited"],
        timed_out=_share(late, scored + failed + late),
        failed=_share(failed, scored + failed + late),
    )


def _share(count: int, of: int) -> EstimateView | None:
    """The share that so many episodes are of so many, with its interval."""
    return to_view(stats.mean_estimate((np.arange(of) < count).astype(float), (0.0, 1.0))) if of else None
