"""The two ends of the normalised score's scale, episode by episode: what random play and optimal play get.

* Frozen Lake: both exactly, on every episode's own map. Optimal is finite-horizon value iteration, random is the
  expected return of the uniform policy by the same recursion.
* Every other game for one player: the returns of the ``random`` and the ``planner`` agent on the same seeds. They are
  taken from the results where these agents played, else played here, once: the values are kept in a cache folder
  (``TEXTBENCH_CACHE_DIR``, or ``textbench`` in the user's cache folder), keyed by the rules' and players' source code.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.files import replacing
from benchmark.runs.plan import num_players, scenario_to_json
from benchmark.score.results import Results
from textgames.scenarios import Scenario

EXACT = "exact (value iteration)"
EXACT_RANDOM = "exact (uniform policy)"
SEARCH = "planner (search)"
PLAYED_RANDOM = "random (played)"

PLAY_LIMIT = 2000
"""The most episodes of one agent in one scenario that are played for a scale. Larger runs should include the agents."""


class Scale(NamedTuple):
    """Returns per seed of the two references; ``None`` where one can't be had."""

    random: NDArray[np.float64] | None
    random_source: str
    optimal: NDArray[np.float64] | None
    optimal_source: str


class References:
    """Looks references up, in the results, in the cache, or by playing.

    Args:
        results: where the reference agents may already have played; ``None`` to do without.
        say: told once per scenario that has to be played, since that takes time.
    """

    def __init__(self, results: Results | None = None, say: Callable[[str], None] | None = None) -> None:
        self._results = results
        self._tell = say or (lambda message: None)
        self._told: set[str] = set()
        self._known: dict[tuple[str, str], dict[int, float]] = {}

    def scale(self, scenario: Scenario, seeds: Sequence[int]) -> Scale:
        """The references of these episodes, in the order of ``seeds``."""
        if num_players(scenario) > 1:
            return Scale(None, "", None, "")
        if is_frozen_lake(scenario):
            exact = np.array([exact_values(scenario, seed) for seed in seeds])
            return Scale(exact[:, 0], EXACT_RANDOM, exact[:, 1], EXACT)
        return Scale(
            self._returns("random", scenario, seeds), PLAYED_RANDOM, self._returns("planner", scenario, seeds), SEARCH
        )

    def _say(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)

    def _returns(self, agent: str, scenario: Scenario, seeds: Sequence[int]) -> NDArray[np.float64] | None:
        key = (agent, scenario.name)
        if key not in self._known:
            self._known[key] = self._from_results(agent, scenario)
        known = self._known[key]
        if any(seed not in known for seed in seeds):
            known.update(_read_cache(agent, scenario))
        missing = [seed for seed in seeds if seed not in known]
        if len(missing) > PLAY_LIMIT:
            self._say(
                f"{scenario.name}: no normalised scores, they need the {agent} agent's returns on {len(missing)} more "
                f"episodes; add --agent {agent} to the run"
            )
            return None
        if missing:
            self._say(f"{scenario.name}: playing {len(missing)} episodes of the {agent} agent for normalised scores")
            played = _play(agent, scenario, missing)
            if played is None:
                return None
            known.update(played)
            _write_cache(agent, scenario, known)
        return np.array([known[seed] for seed in seeds])

    def _from_results(self, agent: str, scenario: Scenario) -> dict[int, float]:
        if self._results is None:
            return {}
        for name, card in self._results.agents.items():
            cell = self._results.cells.get((name, scenario.name))
            if card["spec"] == agent and cell is not None:
                table = cell.table()
                return dict(zip(table["seed"].astype(int).tolist(), table["score"].tolist(), strict=True))
        return {}


def is_frozen_lake(scenario: Scenario) -> bool:
    """Whether the scenario's references can be computed exactly."""
    from textgames.frozen_lake.game import FrozenLake

    return isinstance(_game(scenario), FrozenLake)


def exact_values(scenario: Scenario, seed: int) -> tuple[float, float]:
    """(uniform policy's, optimal) expected return of a Frozen Lake episode, given its map."""
    solver, env, by_seed, by_state = _frozen_lake(_identity(scenario))
    if seed not in by_seed:
        env.reset(seed=seed)
        state = env.unwrapped.state
        if state not in by_state:
            uniform = _uniform_value(env.unwrapped.game, state, scenario.horizon)
            by_state[state] = (uniform, solver.optimal_value(state, scenario.horizon))
        by_seed[seed] = by_state[state]
    return by_seed[seed]


class _FrozenLakeValues(NamedTuple):
    solver: Any
    env: Any
    by_seed: dict[int, tuple[float, float]]
    by_state: dict[Any, tuple[float, float]]


@cache
def _frozen_lake(identity: str) -> _FrozenLakeValues:
    """What a scenario's values are computed with, and those that have been; given as JSON so that it can be a key."""
    from textgames.frozen_lake.solver import FrozenLakeSolver

    data = json.loads(identity)
    env = Scenario("", data["env_id"], data["kwargs"], data["horizon"], 0).make()
    return _FrozenLakeValues(FrozenLakeSolver(env.unwrapped.game), env, {}, {})


def _uniform_value(game: Any, state: Any, horizon: int) -> float:
    """``V_h(s) = 1/4 sum_a sum_s' P(s'|s,a) (r + V_{h-1}(s'))`` from the map's own transition kernel."""
    from textgames.frozen_lake.rules import ACTIONS, outcomes

    cells = len(state.lake.tiles)
    kernel, reward = np.zeros((cells, cells)), np.zeros(cells)
    for cell in range(cells):
        for action in range(len(ACTIONS)):
            for chance, target, pay, _ in outcomes(state.lake, cell, action, game.is_slippery, game.success_rate):
                kernel[cell, target] += chance / len(ACTIONS)
                reward[cell] += chance * pay / len(ACTIONS)
    values = np.zeros(cells)
    for _ in range(horizon):
        values = reward + kernel @ values
    return float(values[state.position])


def _play(agent: str, scenario: Scenario, seeds: Sequence[int]) -> dict[int, float] | None:
    """The agent's returns, played; ``None`` where it can't play this game."""
    from agents.episode import EpisodeTask
    from agents.load import load_agent
    from agents.loop.rollout import rollout

    tasks = (EpisodeTask.of(scenario, seed) for seed in seeds)
    returns = {}
    try:
        for episode in rollout(load_agent(agent), tasks):
            (value,) = episode.returns.values()
            returns[episode.seed] = value
    except (NotImplementedError, ValueError, TypeError):  # the planner searches only games that it can read back
        return None
    return returns


# ---------------------------------------------------------------- the cache


def cache_folder() -> Path:
    """Where reference values are kept between commands."""
    given = os.environ.get("TEXTBENCH_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textbench"


def _cache_file(agent: str, scenario: Scenario) -> Path:
    name = hashlib.sha256(f"{_sources_digest()} {agent} {_identity(scenario)}".encode()).hexdigest()[:24]
    return cache_folder() / f"{agent}-{name}.json"


def _read_cache(agent: str, scenario: Scenario) -> dict[int, float]:
    try:
        values: Mapping[str, float] = json.loads(_cache_file(agent, scenario).read_bytes())
        return {int(seed): float(value) for seed, value in values.items()}
    except (OSError, ValueError, AttributeError):  # absent, unreadable, or damaged: it is only a cache
        return {}


def _write_cache(agent: str, scenario: Scenario, values: Mapping[int, float]) -> None:
    file = _cache_file(agent, scenario)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            json.dump(values, stream)
    except OSError:
        pass  # a home that can't be written costs time, nothing else


@cache
def _sources_digest() -> str:
    """A fingerprint of the rules, the loop and the scripted players: a changed one makes the cache miss."""
    digest = hashlib.sha256()
    for package, folder in (("textgames", "."), ("agents", "baselines")):
        for file in sorted(Path(str(files(package))).joinpath(folder).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _identity(scenario: Scenario) -> str:
    data = scenario_to_json(scenario)
    return json.dumps({name: data[name] for name in ("env_id", "kwargs", "horizon")}, sort_keys=True)


@lru_cache(maxsize=64)
def _game_of(identity: str) -> Any:
    data = json.loads(identity)
    return Scenario("", data["env_id"], data["kwargs"], data["horizon"], 0).game()


def _game(scenario: Scenario) -> Any:
    return _game_of(_identity(scenario))
