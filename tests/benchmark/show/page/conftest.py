"""Documents for the page's tests: episodes really played, by players that answer at random, well or badly formed."""

import json
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import benchmark
from agents.prompt_texts import PromptTexts
from agents.turn import NO_USAGE, Turn, TurnRequest, Usage
from benchmark.score.document import ViewDocument
from benchmark.score.results import ResultColumns
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
        self.name, self.responder, self.settings = name, responder, {}
        if responder is thinking:  # which has a prompt around the observation
            format_text = {"think": "Answer with <action>NAME</action>."}
            texts = PromptTexts("", "You play a game.\n\n$instructions", "$observation", format_text, "", "")
            prompt_map = {"mode": "think", "history_turns": 0, "texts": texts.as_data()}
            self.settings = {"temperature": 0.5, "prompt_map": prompt_map}

    def act(self, requests: Sequence[TurnRequest]) -> list[Turn]:
        usage = Usage(1000, 234) if self.responder is thinking else NO_USAGE
        return [Turn(self.responder(one.legal_actions, self.rng(one)), usage=usage) for one in requests]

    def rng(self, request: TurnRequest) -> np.random.Generator:
        return np.random.default_rng([*request.seed, *map(ord, self.name)])


def make_document(responders: dict[str, Responder], scenarios: Sequence[str], episodes: int) -> ViewDocument:
    """The document of a run that is really played; players that think count as models behind a server."""
    players = {f"agent-{place}": Player(*one) for place, one in enumerate(responders.items())}
    about = {"scenarios": scenarios, "episodes": episodes, "protocol": "default", "quiet": True}
    text = json.dumps(benchmark.evaluate(players, **about).document(title="Test leaderboard"))
    for played, player in players.items():  # a run refuses such names, a stranger's folder has them
        text = text.replace(f'"{played}"', json.dumps(player.name))
    document = json.loads(text)
    for agent in document["agents"]:
        is_model, name = responders[agent["name"]] is thinking, agent["name"]
        agent["kind"], agent["spec"] = ("openai", f"openai:{name}") if is_model else ("scripted", name)
    for score in document["scores"]:
        score["cost"] = 0.01 if responders[score["agent"]] is thinking else None
    return document


@pytest.fixture(scope="session")
def documents(reference_cache):
    """The documents that most tests need, each played once."""
    usual = {"random": bare, "thinker-7b": thinking, "second": bare}
    long_names = {"an-organisation/" + "very-long-model-name-" * 6: thinking, "模型-二号 𝔐 नमूना": bare}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(reference_cache))
        yield {
            "usual": make_document(usual, ("frozen-lake", "frozen-lake-big", "snake", "snake-duel"), 6),
            "hostile": make_document({HOSTILE_NAME: hostile, "plain": bare}, ("frozen-lake",), 6),
            "one agent": make_document({"only": bare}, ("frozen-lake",), 2),
            "empty": results_document(ResultColumns()),
            "not played": results_document(ResultColumns(scenarios={"snake": SCENARIOS["snake"]})),
            "long names": make_document(long_names, ("frozen-lake",), 2),
        }
