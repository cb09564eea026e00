"""The two ends of the normalised score's scale, episode by episode: what random play and optimal play get.

* Where the game's search player is exact (:class:`agents.baselines.search.SearchPlayer`), optimal is the exact value of
  the episode's first state, and random the exact value of the uniform policy, if the search player computes that.
* In every other game for one player: the returns of the ``random`` and the ``planner`` agent on the same seeds. They
  are taken from the results where these agents played, else played here.

Both are made once: the values are kept in a cache folder (``TEXTBENCH_CACHE_DIR``, or ``textbench`` in the user's cache
folder), by the source code that they depend on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.baselines.search import SearchPlayer, find_search_player
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.live import EnvironmentPool, LiveEpisode
from agents.loop.rollout import rollout
from benchmark.runs.plan import num_players
from benchmark.score.cache import cache_file, read_cache, write_cache
from benchmark.score.results import ResultColumns
from textgames.scenarios import Scenario

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
    """Looks references up: computed, in ``results``, in the cache, or by playing.

    Since playing takes time, ``say`` is told so, once per scenario.
    """

    def __init__(self, results: ResultColumns | None = None, say: Callable[[str], None] | None = None) -> None:
        self._results = results
        self._tell = say or (lambda message: None)
        self._told: set[str] = set()
        self._known: dict[tuple[str, str], dict[int, float]] = {}
        self._exact: dict[str, ExactValues | None] = {}

    def scale(self, scenario: Scenario, seeds: Sequence[int]) -> Scale:
        if num_players(scenario) > 1:
            return Scale(None, "", None, "")
        if scenario.name not in self._exact:
            self._exact[scenario.name] = ExactValues.of(scenario)
        exact = self._exact[scenario.name]
        if exact is not None:
            exact.look_up(seeds)
        uniform = [None if exact is None else exact.uniform(seed) for seed in seeds]
        if None in uniform:
            random, random_source = self._returns("random", scenario, seeds), PLAYED_RANDOM
        else:
            random, random_source = np.array(uniform, dtype=np.float64), EXACT_RANDOM
        if exact is None:
            return Scale(random, random_source, self._returns("planner", scenario, seeds), SEARCH)
        optimal = np.array([exact.optimal(seed) for seed in seeds])
        return Scale(random, random_source, optimal, f"exact ({exact.method})")

    def _say(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)

    def _returns(self, agent: str, scenario: Scenario, seeds: Sequence[int]) -> NDArray[np.float64] | None:
        key = (agent, scenario.name)
        if key not in self._known:
            self._known[key] = self._from_results(agent, scenario)
        known = self._known[key]
        if all(seed in known for seed in seeds):
            return np.array([known[seed] for seed in seeds])
        file = cache_file(agent, scenario)
        known.update(read_cache(file, _returns_of_json) or {})
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
            write_cache(file, known)
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


class ExactValues:
    """What the episodes of a scenario for one player are worth in their first state, by the game's search player."""

    def __init__(self, scenario: Scenario, player: SearchPlayer) -> None:
        self.method = player.method
        self._scenario, self._player = scenario, player
        self._pool = EnvironmentPool()
        self._random = load_agent("random")
        self._known: dict[int, tuple[float | None, float]] = {}

    @classmethod
    def of(cls, scenario: Scenario) -> "ExactValues | None":
        """The exact values of a scenario; ``None`` where its game has no exact search player."""
        player = find_search_player(scenario.game())
        return cls(scenario, player) if isinstance(player, SearchPlayer) and player.exact else None

    def look_up(self, seeds: Sequence[int]) -> None:
        """Make the values of these seeds known: from the cache, else computed and then kept there."""
        if all(seed in self._known for seed in seeds):
            return
        file = cache_file("exact", self._scenario)
        self._known |= read_cache(file, _pairs_of_json) or {}
        missing = [seed for seed in seeds if seed not in self._known]
        for seed in missing:
            self._values(seed)
        if missing:
            write_cache(file, self._known)

    def optimal(self, seed: int) -> float:
        return self._values(seed)[1]

    def uniform(self, seed: int) -> float | None:
        """The uniform policy's expected return of an episode; ``None`` where it isn't computed."""
        return self._values(seed)[0]

    def _values(self, seed: int) -> tuple[float | None, float]:
        if seed not in self._known:
            episode = LiveEpisode(EpisodeTask.of(self._scenario, seed), self._random, self._pool)
            (request,) = episode.requests().values()
            episode.finish()
            self._known[seed] = self._player.uniform_value(request), self._player.value(request)
        return self._known[seed]


def _play(agent: str, scenario: Scenario, seeds: Sequence[int]) -> dict[int, float] | None:
    """The agent's returns, played; ``None`` where it can't play this game."""
    tasks = (EpisodeTask.of(scenario, seed) for seed in seeds)
    try:
        return {episode.seed: sum(episode.returns.values()) for episode in rollout(load_agent(agent), tasks)}
    except (NotImplementedError, ValueError, TypeError):  # the planner searches only games that it can read back
        return None


def _pairs_of_json(kept: Mapping[str, Any]) -> dict[int, tuple[float | None, float]]:
    """``{seed: (uniform, optimal)}`` as :class:`ExactValues` keeps them."""
    return {
        int(seed): (None if uniform is None else float(uniform), float(optimal))
        for seed, (uniform, optimal) in kept.items()
    }


def _returns_of_json(kept: Mapping[str, Any]) -> dict[int, float]:
    """``{seed: return}`` as :class:`References` keeps them."""
    return {int(seed): float(value) for seed, value in kept.items()}
