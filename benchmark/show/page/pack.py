"""Episodes as the page carries them: a small index that is read at once, and compressed blocks that are read on demand.

Episodes are sorted by scenario, seed and line-up, so the two of a side-by-side replay usually share a block, and
neighbours that resemble each other compress well.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmark.score.document import EpisodeView, ViewDocument

BLOCK_CHARS = 400_000
"""A block is closed once its texts are this long: about a tenth of it compressed, and some 5 ms to unpack."""


class Pack(NamedTuple):
    """All episodes that a page holds, compressed in blocks."""

    # columns of equal length, one item an episode, in the order of the blocks; ``lineups`` are lists of positions in
    # the document's agents, one per player
    listing: dict[str, Any]
    blocks: tuple[str, ...]  # base64 of the zlib-compressed JSON of ``{"texts": [...], "episodes": [...]}``


def inert_json(value: object) -> str:
    """Serialise ``value`` so that no HTML parser finds anything in it: ASCII only, no ``<``, ``>`` or ``&``, no NaN."""
    return _json(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def pack_episodes(document: ViewDocument) -> Pack:
    """Lay out the document's episodes for the page."""
    scenarios = {scenario["name"]: place for place, scenario in enumerate(document["scenarios"])}
    agents = {agent["name"]: place for place, agent in enumerate(document["agents"])}
    lineups: dict[tuple[int, ...], int] = {}
    rows: list[tuple[int, int, int, EpisodeView]] = []
    for episode in document["episodes"]:
        lineup = tuple(agents[name] for name in episode["agents"].values())
        place = lineups.setdefault(lineup, len(lineups))
        rows.append((scenarios[episode["scenario"]], episode["seed"], place, episode))
    rows.sort(key=lambda row: row[:3])

    episodes = [row[3] for row in rows]
    blocks = list(_blocks(episodes))
    listing = {
        "lineups": [list(lineup) for lineup in lineups],
        "block_sizes": [size for _, size in blocks],
        "scenario": [row[0] for row in rows],
        "seed": [row[1] for row in rows],
        "lineup": [row[2] for row in rows],
        "returns": [list(episode["returns"].values()) for episode in episodes],
        "successes": [[int(success) for success in episode["successes"].values()] for episode in episodes],
        # e: an error, so it is unscored; t: terminated; l: the step limit
        "ending": ["e" if one["error"] is not None else "t" if one["terminated"] else "l" for one in episodes],
        "rounds": [1 + max(episode["steps"]["round"], default=-1) for episode in episodes],
        "invalid": [sum(not valid for valid in episode["steps"]["valid"]) for episode in episodes],
        # by all players together; null if it isn't known
        "lost": [
            None if None in (lost := one["steps"]["lost"]) else round(sum(filter(None, lost)), 6) for one in episodes
        ],
    }
    return Pack(listing, tuple(block for block, _ in blocks))


def packed(value: object) -> str:
    """Return ``base64(zlib(json))`` of any JSON value, as the page's script unpacks it."""
    return base64.b64encode(zlib.compress(_json(value).encode("ascii"), 9)).decode("ascii")


def _blocks(episodes: Sequence[EpisodeView]) -> Iterator[tuple[str, int]]:
    """Yield ``(block, episodes in it)``; a block has its own string table, so it can be read without any other."""
    table: dict[str, int] = {}  # boards and observations repeat a lot
    held: list[dict[str, Any]] = []

    def number(text: str | None) -> int:
        return -1 if text is None else table.setdefault(text, len(table))

    for episode in episodes:
        steps: dict[str, Any] = {**episode["steps"]}
        ending = number(episode["ending"])
        for name in ("board", "observation", "reasoning", "response", "happened"):
            steps[name] = list(map(number, steps[name]))
        steps["prompt"] = [told and [(role, number(text)) for role, text in told] for told in steps["prompt"]]
        held.append(
            {
                "players": list(episode["agents"]),
                "error": episode["error"],
                "ending": ending,
                **{name: column for name, column in steps.items() if name != "finish_reason"},
                "valid": [int(valid) for valid in steps["valid"]],
                "finish": steps["finish_reason"],
                "final_board": number(episode["final_board"]),
                "final_observation": number(episode["final_observation"]),
            }
        )
        if sum(map(len, table)) >= BLOCK_CHARS or episode is episodes[-1]:
            yield packed({"texts": list(table), "episodes": held}), len(held)
            table.clear()
            held = []
