"""The picture of the README: the small model before and after training, in the episodes that leaderboards/ has of both.

Nothing is played anew by a model: the recorded responses are given to the game again.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path

from agents.loop.session import EpisodeSession
from pages.pictures.animation import side_by_side
from pages.pictures.playing import Play, shown
from pages.scores import measured
from textgames import SCENARIOS

ENTRIES = Path(__file__).parents[4] / "leaderboards"
FILE = Path(__file__).parents[3] / "images/play.svg"
SCENARIO, BEFORE, AFTER = "frozen-lake", "tiny", "tiny-msgrpo-frozen-lake"
EPISODES = 4  # the scenario's first ones


def files() -> Iterator[tuple[Path, str]]:
    """Yield the picture."""
    yield FILE, training_picture()


def training_picture() -> str:
    """Frozen Lake by ``tiny``, and by what MS-GRPO made of it: the first episodes of the scenario, as SVG."""
    seeds = [SCENARIOS[SCENARIO].seed(number) for number in range(EPISODES)]
    pairs = [(recorded(BEFORE, seed), recorded(AFTER, seed)) for seed in seeds]
    padded = [_as_long(one, other) for one, other in pairs]
    plays = [reduce(_after, [pair[side] for pair in padded]) for side in range(2)]
    return side_by_side(plays, [("tiny, before training", _told(BEFORE)), ("tiny, after MS-GRPO", _told(AFTER))])


def recorded(agent: str, seed: int) -> Play:
    """Return an episode of a leaderboard's entry, played again from its responses."""
    lines = (ENTRIES / agent / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)
    record = next(one for one in records if (one["scenario"], one["seed"]) == (SCENARIO, seed))
    session = EpisodeSession(SCENARIOS[SCENARIO], seed, opponents=None, name=agent)
    for step in record["steps"]:
        session.respond(step["response"])
    return shown(SCENARIO, seed, {"player_0": agent}, SCENARIOS[SCENARIO].game(), session.episode, responses=True)


def _told(agent: str) -> str:
    score = measured()[SCENARIO]["agents"][agent]
    return f"{score['success_rate']['value']:.0%} of {score['episodes']} episodes reach the goal"


def _as_long(one: Play, other: Play) -> tuple[Play, Play]:
    """Return both with as many frames as the longer one: the last one stays. One frame more keeps episodes apart."""
    longest = max(len(one.frames), len(other.frames)) + 1

    def padded(play: Play) -> Play:
        last = play.frames[-1]
        over = replace(last, doing=(f"The episode is over: return {play.paid:g}.",))
        return replace(play, frames=play.frames + (over,) * (longest - len(play.frames)))

    return padded(one), padded(other)


def _after(first: Play, second: Play) -> Play:
    """Two plays, one after the other."""
    start = replace(second.frames[0], doing=("The next episode",))
    return replace(first, frames=(*first.frames, start, *second.frames[1:]))
