"""The same agents by several protocols, side by side on the same seeds.

An agent that several sources hold under one name, with equal settings, is one agent; every scenario in which it was
played by two protocols or more has a row for each, and the paired difference to the first, which is the standard one
where that was played. Nothing is ranked across protocols: these are differences of one agent to itself.
"""

from collections.abc import Sequence
from typing import Any

from benchmark.score.comparing.comparison import cell_differences, mean_difference, solo_scenarios
from benchmark.score.comparing.protocols import label, plain_name, told
from benchmark.score.document import ProtocolView, ScoreView
from benchmark.score.results import ResultColumns
from benchmark.score.scores import ranked_by, to_view


def protocol_rows(results: ResultColumns, scores: Sequence[ScoreView]) -> list[ProtocolView]:
    """A row for every agent, scenario for one player and protocol, where it played by several."""
    by_name = {(row["agent"], row["scenario"]): row for row in scores}
    solo = {scenario.name for scenario in solo_scenarios(results)}
    rows: list[ProtocolView] = []
    for names in _same_agents(results):
        played: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            for agent, scenario in results.cells:
                if agent == name and scenario in solo:
                    played.setdefault(plain_name(scenario), []).append((agent, scenario))
        for plain, keys in played.items():
            first, *others = sorted(keys, key=lambda key: bool(label(*results.scenarios[key[1]].rules)))
            others = [key for key in others if _same_game(results, first[1], key[1])]
            shown = (first, *others) if others else ()
            rows += [_row(results, by_name[key], plain, key, first) for key in shown]
    return rows


def _same_agents(results: ResultColumns) -> list[list[str]]:
    """The names here of every agent that several sources hold."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for name, card in results.agents.items():
        same = next((names for known, names in found if known == card), None)
        if same is None:
            found.append((card, [name]))
        else:
            same.append(name)
    return [names for _, names in found if len(names) > 1]


def _same_game(results: ResultColumns, a: str, b: str) -> bool:
    """Whether two scenarios differ in their protocols, and in nothing else that decides an episode."""
    first, second = results.scenarios[a], results.scenarios[b]
    if first.rules == second.rules:
        return False
    about: dict[str, Any] = {"name": "", "protocol": "", "moves": "", "training": False}
    return first._replace(**about) == second._replace(**about)


def _row(
    results: ResultColumns, score: ScoreView, plain: str, key: tuple[str, str], first: tuple[str, str]
) -> ProtocolView:
    cells, scenarios = [results.cells[one] for one in (key, first)], [results.scenarios[one[1]] for one in (key, first)]
    differences = cell_differences(cells, scenarios)
    compared = key != first and len(differences) > 1
    return ProtocolView(
        agent=results.agents[key[0]]["name"],
        scenario=plain,
        protocol=scenarios[0].protocol,
        moves=scenarios[0].moves,
        mean=ranked_by(score),
        invalid_rate=score["invalid_rate"],
        difference=to_view(mean_difference(differences, cells, scenarios)[0]) if compared else None,
        against=told(scenarios[1]),
        pairs=len(differences),
    )
