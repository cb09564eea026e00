"""Documents for the page's tests: episodes really played, by players that answer at random, well or badly formed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.prompt_texts import PromptTexts
from agents.turn import NO_USAGE, Turn, TurnRequest, Usage
from benchmark.runs.manifest import MANIFEST_VERSION, RUN_KIND
from benchmark.runs.plan import Plan, find_scenarios
from benchmark.runs.record import recorded, to_line
from benchmark.score.document import ViewDocument
from benchmark.score.results import ResultColumns, read_columns
from benchmark.show.document_of import results_document
from textgames.scenarios import SCENARIOS

Responder = Callable[[tuple[str, ...], np.random.Generator], str]

HOSTILE = (
    "<script>window.pwned = 1; alert(1)</script><action>right</action>",
    "</script><script>window.pwned = 1</script>",
    "</pre></div><img src=x onerror='window.pwned = 1'><svg onload='window.pwned = 1'>",
    "<!-- <script> --!> ]]> <![CDATA[ <a href='javascript:window.pwned=1'>up</a>",
    "null \0 bell \a line\u2028paragraph\u2029 lone \ud800 right-to-left \u202e reversed",
    "{{ 7 * 7 }} ${7 * 7} {% raw %} &lt;b&gt; &#x3C;",
    "<style>body { display: none }</style><base href='https://example.org'><meta http-equiv=refresh content=0>",
)
HOSTILE_NAME = "<img src=x onerror='window.pwned = 1'> \"quoted\" & \u202eRTL \0"


def bare(legal: tuple[str, ...], rng: np.random.Generator) -> str:
    """A player that names an action and nothing else."""
    return str(rng.choice(legal))


def thinking(legal: tuple[str, ...], rng: np.random.Generator) -> str:
    """A player that writes as language models do, one response in eight badly formed."""
    action = rng.choice(legal)
    words = " ".join(rng.choice(("the", "goal", "is", "two", "cells", "right", "hole", "below", "so", "I", "go"), 24))
    text = f"<think>{words}</think>\n<plan>{action}, then {rng.choice(legal)}</plan>\n"
    endings = (f"<action>{action}</action>",) * 7 + (str(rng.choice(("I go there.", f"<action>{action}", ""))),)
    return text + endings[rng.integers(len(endings))]


def hostile(legal: tuple[str, ...], rng: np.random.Generator) -> str:
    """A player whose every response attacks the page."""
    return str(HOSTILE[rng.integers(len(HOSTILE))])


class Player:
    """A policy that answers as its responder does, from the seed of every decision."""

    def __init__(self, name: str, responder: Responder) -> None:
        self.name, self.responder = name, responder

    def act(self, requests: Sequence[TurnRequest]) -> list[Turn]:
        usage = Usage(1000, 234) if self.responder is thinking else NO_USAGE
        return [Turn(self.responder(one.legal_actions, self.rng(one)), usage=usage) for one in requests]

    def rng(self, request: TurnRequest) -> np.random.Generator:
        return np.random.default_rng([*request.seed, *map(ord, self.name)])

    def card(self) -> dict[str, Any]:
        """Its entry in a manifest; those that think have a prompt around the observation."""
        if self.responder is not thinking:
            return {"name": self.name, "spec": self.name, "kind": "scripted", "settings": {}}
        texts = PromptTexts(
            "",
            "You play a game.\n\n$instructions",
            "$observation",
            {"think": "Answer with <action>NAME</action>."},
            "",
            "",
        )
        prompt_map = {"mode": "think", "history_turns": 0, "texts": texts.as_data()}
        settings = {"temperature": 0.5, "prompt_map": prompt_map}
        return {"name": self.name, "spec": f"openai:{self.name}", "kind": "openai", "settings": settings}


def make_document(
    folder: Path,
    responders: dict[str, Responder],
    scenarios: Sequence[str] = ("frozen-lake", "snake"),
    episodes: int = 3,
) -> ViewDocument:
    """The document of a run of ``responders``, which is really played into ``folder``."""
    players = {name: Player(name, responder) for name, responder in responders.items()}
    plan = Plan.of(tuple(players), find_scenarios(scenarios), episodes)
    manifest = {
        **{"schema_version": MANIFEST_VERSION, "kind": RUN_KIND, "settings": {}, "prices": {}},
        **{"textbench": {"version": "0.1.0", "commit": "0123456789abcdef", "dirty": True}},
        **{"agents": [player.card() for player in players.values()], **plan.to_json(), "sessions": []},
    }
    for name, responder in responders.items():
        if responder is thinking:
            manifest["prices"][name] = {"input": 0.15, "output": 0.6}
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with (folder / "episodes.jsonl").open("wb") as file:
        for matchup, seeds in plan.seeds.items():
            scenario = plan.scenarios[matchup.scenario]
            seats = zip(scenario.game().players, (players[name] for name in matchup.agents), strict=True)
            tasks = (EpisodeTask.of(scenario, seed, protocol="default") for seed in seeds)
            for episode in rollout(dict(seats), tasks):
                agents = dict(zip(episode.agents, matchup.agents, strict=True))
                file.write(to_line(recorded(episode, agents)))
    return results_document(read_columns([folder]), title="Test leaderboard")


@pytest.fixture(scope="session")
def documents(tmp_path_factory, reference_cache):
    """The documents that most tests need, each played once."""
    folder = tmp_path_factory.mktemp("runs")
    usual = {"random": bare, "thinker-7b": thinking, "second": bare}
    long_names = {"an-organisation/" + "very-long-model-name-" * 6: thinking, "模型-二号 𝔐 नमूना": bare}
    scenarios = ("frozen-lake", "frozen-lake-big", "snake", "snake-duel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(reference_cache))
        yield {
            "usual": make_document(folder / "usual", usual, scenarios, episodes=6),
            "hostile": make_document(
                folder / "hostile", {HOSTILE_NAME: hostile, "plain": bare}, ("frozen-lake",), episodes=6
            ),
            "one agent": make_document(folder / "one", {"only": bare}, ("frozen-lake",), episodes=2),
            "empty": results_document(ResultColumns()),
            "not played": results_document(ResultColumns(scenarios={"snake": SCENARIOS["snake"]})),
            "long names": make_document(folder / "long", long_names, ("frozen-lake",), episodes=2),
        }
