"""Documents for the page's tests: episodes really played, by players that answer at random, well or badly formed."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import textgames
from benchmark.score.document import SCHEMA_VERSION, EstimateView, ViewDocument

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


def play(
    scenario: textgames.Scenario, seed: int, agents: dict[str, str], players: dict[str, Responder]
) -> dict[str, Any]:
    """One episode as ``{columns: lists of texts and numbers}``, texts in place of indices."""
    env = scenario.parallel_env()
    observations, infos = env.reset(seed=seed)
    rng = np.random.default_rng([seed, *map(ord, "".join(agents.values()))])
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "round",
            "player",
            "board",
            "observation",
            "prompt",
            "response",
            "action",
            "valid",
            "unreadable",
            "reward",
            "happened",
        )
    }
    returns, successes = dict.fromkeys(agents, 0.0), dict.fromkeys(agents, False)
    ended = truncated = False
    for number in itertools.count():
        if not env.agents:
            break
        state, board, live = env.state(), "\n".join(env.game.board(env.state())), list(env.agents)
        responses = {player: players[agents[player]](infos[player]["legal_actions"], rng) for player in live}
        before = observations
        observations, rewards, terminations, truncations, infos = env.step(responses)
        joint_action = {player: infos[player]["action"] for player in live}
        for player in live:
            info = infos[player]
            happened = env.game.what_happened(state, joint_action, env.state(), player) or None
            unreadable = info.get("unreadable")
            row = (
                number,
                player,
                board,
                before[player],
                None,
                responses[player],
                info["action"],
                info["valid"],
                unreadable,
            )
            for column, value in zip(columns.values(), (*row, float(rewards[player]), happened), strict=True):
                column.append(value)
            returns[player] += float(rewards[player])
            successes[player] |= bool(info["success"])
            ended, truncated = terminations[player], truncations[player]
    return {
        "columns": columns,
        "final_board": "\n".join(env.game.board(env.state())),
        "final_observation": next(iter(observations.values())),
        "returns": returns,
        "successes": successes,
        "terminated": bool(ended),
        "truncated": bool(truncated),
    }


def estimate(values: Sequence[float]) -> EstimateView | None:
    """The mean with a normal interval: good enough to draw."""
    if not values:
        return None
    mean = float(np.mean(values))
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return {"value": mean, "low": None if half is None else mean - half, "high": None if half is None else mean + half}


class DocumentMaker:
    """Plays every agent on every scenario and writes down what the page is made from."""

    def __init__(self, players: dict[str, Responder], scenarios: Sequence[str], episodes: int) -> None:
        self.players, self.episodes = players, episodes
        self.scenarios = [textgames.SCENARIOS[name] for name in scenarios]
        self.texts: dict[str | None, int] = {None: -1}
        self.views: list[dict[str, Any]] = []

    def document(self) -> ViewDocument:
        """Play and describe everything; ``prompts`` are a template around the observation for players that think."""
        for scenario in self.scenarios:
            for lineup in self.lineups(scenario):
                for number in range(self.episodes):
                    self.add(scenario, scenario.seed(number), lineup)
        names = list(self.players)
        document = {
            "schema_version": SCHEMA_VERSION,
            "title": "Test leaderboard",
            "textbench_version": "0.1.0",
            "sources": [self.source()],
            "agents": [self.agent(name) for name in names],
            "scenarios": [self.scenario(scenario) for scenario in self.scenarios],
            "scores": [row for scenario in self.scenarios for row in self.scores(scenario)],
            "overall": [],
            "overall_scenarios": [scenario.name for scenario in self.scenarios if len(scenario.game().players) == 1],
            "comparisons": list(self.comparisons()),
            "comparisons_family": 12,
            "ratings": list(self.ratings()),
            "texts": [text for text in self.texts if text is not None],
            "episodes": self.views,
            "episodes_total": len(self.views),
        }
        for rank, name in enumerate(names, 1):
            values = [
                row["normalized"]["value"] for row in document["scores"] if row["agent"] == name and row["normalized"]
            ]
            row = {"agent": name, "rank": rank, "tied": False, "normalized": estimate(values)}
            document["overall"].append(row | {"scenarios": len(values), "lacks": []})
        return document  # type: ignore[return-value]

    def lineups(self, scenario: textgames.Scenario) -> list[tuple[str, ...]]:
        players = scenario.game().players
        return list(itertools.permutations(self.players, len(players))) if len(self.players) >= len(players) else []

    def add(self, scenario: textgames.Scenario, seed: int, lineup: tuple[str, ...]) -> None:
        agents = dict(zip(scenario.game().players, lineup, strict=True))
        played = play(scenario, seed, agents, self.players)
        columns = played["columns"]
        for column in ("board", "observation", "prompt", "response", "happened"):
            columns[column] = [self.text(value) for value in columns[column]]
        count = len(columns["round"])
        columns |= {"finish_reason": ["stop"] * count, "tokens": [0] * count}
        self.views.append(
            {
                "id": len(self.views),
                "scenario": scenario.name,
                "seed": seed,
                "agents": agents,
                "error": None,
                "ending": self.text("reached the step limit" if played["truncated"] else "ended by the rules: <why>"),
                **{key: played[key] for key in ("returns", "successes", "terminated", "truncated")},
                "final_board": self.text(played["final_board"]),
                "final_observation": self.text(played["final_observation"]),
                "steps": columns,
            }
        )

    def text(self, value: str | None) -> int:
        return self.texts.setdefault(value, len(self.texts) - 1)

    def source(self) -> dict[str, Any]:
        return {
            "name": "runs/test",
            "kind": "run",
            "textbench_version": "0.1.0",
            "commit": "0123456789abcdef",
            "dirty": True,
            "started": "2026-01-02T03:04:05Z",
            "finished": None,
            "complete": True,
        }

    def agent(self, name: str) -> dict[str, Any]:
        pieces = [
            {"text": "You play a game.\n\n"},
            {"slot": "observation"},
            {"text": "\n\nAnswer with <action>NAME</action>."},
        ]
        prompts = {scenario.name: [{"role": "user", "pieces": pieces}] for scenario in self.scenarios}
        model = self.players[name] is thinking
        return {
            "name": name,
            "spec": f"openai:{name}" if model else name,
            "kind": "openai" if model else "scripted",
            "source": 0,
            "settings": {"temperature": 0.5} if model else {},
            "prompts": prompts if model else {},
        }

    def scenario(self, scenario: textgames.Scenario) -> dict[str, Any]:
        game = scenario.game()
        return {
            "name": scenario.name,
            "env_id": scenario.env_id,
            "kwargs": dict(scenario.kwargs),
            "horizon": scenario.horizon,
            "first_seed": scenario.first_seed,
            "training": scenario.training,
            "num_players": len(game.players),
            "actions": list(game.actions),
            "instructions": game.instructions(game.players[0]),
            "palette": {mark: tuple(colour) for mark, colour in game.palette.items()},
            "legend": dict(game.legend),
            "optimal_source": "planner (search)",
        }

    def of(self, scenario: textgames.Scenario, name: str) -> Iterator[tuple[dict[str, Any], str]]:
        for view in self.views:
            for player, agent in view["agents"].items():
                if view["scenario"] == scenario.name and agent == name:
                    yield view, player

    def scores(self, scenario: textgames.Scenario) -> list[dict[str, Any]]:
        rows = []
        for name in self.players:
            played = list(self.of(scenario, name))
            returns = [view["returns"][player] for view, player in played]
            valid = [ok for view, _ in played for ok in view["steps"]["valid"]]
            reasons: dict[str, int] = {}
            for view, _ in played:
                for reason in filter(None, view["steps"]["unreadable"]):
                    reasons[reason] = reasons.get(reason, 0) + 1
            reference = {
                "random": 0.1,
                "random_source": "random",
                "optimal": 1.0,
                "optimal_source": "exact (value iteration)",
            }
            mean = estimate(returns)
            normalized = mean and {key: None if end is None else (end - 0.1) / 0.9 for key, end in mean.items()}
            rows.append(
                {
                    "agent": name,
                    "scenario": scenario.name,
                    "episodes": len(played),
                    "planned": len(played),
                    "unscored": 0,
                    "errors": {},
                    "rank": None,
                    "tied": False,
                    "mean_return": mean,
                    "normalized": normalized,
                    "success_rate": estimate([float(view["successes"][player]) for view, player in played]),
                    "invalid_rate": estimate([float(not ok) for ok in valid]),
                    "invalid_reasons": reasons,
                    "length": estimate([1.0 + max(view["steps"]["round"]) for view, _ in played]),
                    "tokens": estimate([1234.0] * len(played)) if self.players[name] is thinking else None,
                    "cost": 0.0123 if self.players[name] is thinking else None,
                    "seconds": None,
                    "reference": reference,
                }
            )
        rows.sort(key=lambda row: -(row["mean_return"] or {"value": -9e9})["value"])
        for rank, row in enumerate(rows, 1):
            row["rank"] = rank if row["mean_return"] else None
        return rows

    def comparisons(self) -> Iterator[dict[str, Any]]:
        for scenario, (a, b) in itertools.product(self.scenarios, itertools.combinations(self.players, 2)):
            left = {view["seed"]: view["returns"][player] for view, player in self.of(scenario, a)}
            right = {view["seed"]: view["returns"][player] for view, player in self.of(scenario, b)}
            common = [left[seed] - right[seed] for seed in left if seed in right]
            if common:
                value = estimate(common)
                spread = float(np.std(common)) / math.sqrt(len(common))
                p = math.erfc(abs(float(np.mean(common))) / spread / math.sqrt(2)) if spread else 1.0
                needed = 240 if spread else None
                known = {"difference": value, "p_value": p, "p_holm": min(1.0, 2 * p), "episodes_needed": needed}
                yield {"scenario": scenario.name, "a": a, "b": b, "pairs": len(common), **known}

    def ratings(self) -> Iterator[dict[str, Any]]:
        for scenario in self.scenarios:
            for place, name in enumerate(self.players if len(scenario.game().players) > 1 else ()):
                value = {"value": 40.0 - 30 * place, "low": 10.0 - 30 * place, "high": 70.0 - 30 * place}
                games = len(list(self.of(scenario, name)))
                yield {
                    "scenario": scenario.name,
                    "agent": name,
                    "group": 1,
                    "rating": value,
                    "in_cycle": False,
                    "games": games,
                    "wins": games,
                    "losses": 0,
                    "draws": 0,
                }


def make_document(
    players: dict[str, Responder], scenarios: Sequence[str] = ("frozen-lake", "snake"), episodes: int = 3
) -> ViewDocument:
    """A document of episodes that ``players`` really play."""
    return DocumentMaker(players, scenarios, episodes).document()


@pytest.fixture(scope="session")
def documents() -> dict[str, ViewDocument]:
    """The documents that most tests need, each played once."""
    usual = {"random": bare, "thinker-7b": thinking, "second": bare}
    return {
        "usual": make_document(usual, ("frozen-lake", "frozen-lake-big", "snake", "snake-duel"), episodes=6),
        "hostile": make_document({HOSTILE_NAME: hostile, "plain": bare}, ("frozen-lake",), episodes=6),
        "one agent": make_document({"only": bare}, ("frozen-lake",), episodes=2),
        "empty": make_document({}, (), episodes=0),
        "not played": make_document({}, ("snake",), episodes=0),
        "long names": make_document(
            {"an-organisation/" + "very-long-model-name-" * 6: thinking, "模型-二号 𝔐 नमूना": bare},
            ("frozen-lake",),
            episodes=2,
        ),
    }
