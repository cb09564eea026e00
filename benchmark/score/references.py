"""The two ends of the normalised score's scale, episode by episode: what the best blind play gets, and the reference.

* **0 is the best blind player** (:mod:`textgames.solving.blind`): the best way to choose actions without reading. What
  it gets is computed for each episode's own first state where the game's chances allow that (where the start is hidden
  from the player of the optimum, over all starts, as the optimum is). Else it is its mean over many episodes of other
  starts, and the standard error of that mean takes part in the scores' intervals.
* **1 is the reference.** Where the game's search player (:class:`agents.baselines.search.SearchPlayer`) is of the kind
  ``"optimal"``, it is the optimum of a player who knows what players are told: the exact value of the episode's first
  state. In every other game for one player it is what the ``planner`` agent got on the same seeds, of the kind
  ``"reference"``, which can be beaten; it is taken from the results where that agent played, else played here. A bound
  that only a player that sees hidden things can reach (``"clairvoyant"``) is never 1.

Both are made once: the values are kept in a cache folder (``TEXTBENCH_CACHE_DIR``, or ``textbench`` in the user's cache
folder), by the source code that they depend on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.baselines.search import find_search_player
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.live import EnvironmentPool, LiveEpisode
from agents.loop.rollout import rollout
from agents.turn import Policy, check_game
from benchmark.runs.manifest import MOST_SOLVED
from benchmark.runs.plan import num_players
from benchmark.score.cache import cache_file, read_cache, write_cache
from benchmark.score.results import ResultColumns
from textgames.scenarios import Scenario, known_scenario
from textgames.solving.blind import BlindPlay, blind_play, blind_value

STRONGEST = "planner"
"""The agent whose returns are the reference if the optimum is unknown."""

PLAY_LIMIT = 2000
"""The most episodes of one agent in one scenario that are played for a scale. Larger runs should include the agents."""

Returns = NDArray[np.float64]


class BlindEnd(NamedTuple):
    """The end of a scale that a score of 0 stands for: the best play that doesn't read."""

    values: Returns  # (episodes,) the best blind player's expected return on each; all equal if it isn't known of each
    error: float  # the standard error of their mean, if they were estimated elsewhere; 0 if they are exact
    policy: str  # its distribution over actions, for people
    exact: bool  # whether the values are computed and not played


class ReferenceEnd(NamedTuple):
    """The end of a scale that a score of 1 stands for: optimal play, or a strong player."""

    values: Returns  # (episodes,)
    kind: Literal["optimal", "reference"]
    source: str  # how they are computed, or who played them: "value iteration", "planner (search)"


class Scale(NamedTuple):
    """The two ends for the episodes of one agent in one scenario; ``None`` if one can't be had."""

    blind: BlindEnd | None = None
    reference: ReferenceEnd | None = None


class References:
    """Looks references up: computed, in ``results``, in the cache, or by playing.

    Since playing takes time, ``say`` is told so, once per scenario.
    """

    def __init__(self, results: ResultColumns | None = None, say: Callable[[str], None] | None = None) -> None:
        self._results = results
        self._tell = say or (lambda message: None)
        self._said: set[str] = set()
        self._known: dict[tuple[str, str], dict[int, float]] = {}
        self._starts: dict[str, StartValues] = {}

    def scale(self, scenario: Scenario, seeds: Sequence[int]) -> Scale:
        try:
            return self._scale(scenario, seeds)
        except Exception as error:
            if known_scenario(scenario.name) is not None:
                raise
            self._say(
                f"{scenario.name}: no normalised scores, as its game failed: {type(error).__name__}: {error}; "
                f"textgames.conformance.check({scenario.env_id!r}) says what a game has to do"
            )
            return Scale()

    def _scale(self, scenario: Scenario, seeds: Sequence[int]) -> Scale:
        if num_players(scenario) > 1:
            return Scale()
        if scenario.horizon > MOST_SOLVED:
            self._say(
                f"{scenario.name}: no normalised scores, which are computed for episodes of at most {MOST_SOLVED:,} "
                f"rounds; these have up to {scenario.horizon:,}"
            )
            return Scale()
        if scenario.twin_number:  # the same values, and the same files that keep them; only actions have other names
            scale, named = self.scale(scenario.twin(0), seeds), blind_play(scenario)
            if scale.blind is None or named is None:
                return scale
            return scale._replace(blind=scale.blind._replace(policy=named.text))
        if scenario.name not in self._starts:
            self._starts[scenario.name] = StartValues(scenario)
        starts = self._starts[scenario.name]
        optimal = starts.optimal(seeds)
        if optimal is not None:
            return Scale(starts.blind(seeds), ReferenceEnd(optimal, "optimal", starts.method))
        played = self._returns(STRONGEST, scenario, seeds)
        reference = None if played is None else ReferenceEnd(played, "reference", f"{STRONGEST} ({starts.method})")
        return Scale(starts.blind(seeds), reference)

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._tell(message)

    def _returns(self, agent: str, scenario: Scenario, seeds: Sequence[int]) -> Returns | None:
        key = (agent, scenario.name)
        if key not in self._known:
            self._known[key] = self._from_results(agent, scenario)
        known = self._known[key]
        if all(seed in known for seed in seeds):
            return np.array([known[seed] for seed in seeds])
        file = cache_file(agent, scenario)
        known.update(read_cache(file, _values_of_json) or {})
        missing = [seed for seed in seeds if seed not in known]
        if len(missing) > PLAY_LIMIT:
            self._say(
                f"{scenario.name}: no normalised scores, they need the {agent} agent's returns on {len(missing)} more "
                f"episodes; add --agent {agent} to the run"
            )
            return None
        if missing:
            policy = load_agent(agent)
            try:
                check_game(policy, scenario.game())
            except ValueError:  # the planner searches only games that it can read back
                return None
            self._say(f"{scenario.name}: playing {len(missing)} episodes of the {agent} agent for normalised scores")
            played = _play(policy, scenario, missing)
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


class StartValues:
    """What the episodes of a scenario for one player are worth in their first state.

    Attributes:
        method: how the game's search player computes its values, in a few words.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._game = scenario, scenario.game()
        self._player = find_search_player(self._game)
        self.method = "search" if self._player is None else self._player.method
        self._blind: BlindPlay | None = None
        self._known: dict[str, dict[int, float]] = {}
        self._pool, self._random = EnvironmentPool(), load_agent("random")

    def optimal(self, seeds: Sequence[int]) -> Returns | None:
        """Return the optimum of each episode for a player that sees what players see; ``None`` if it isn't known."""
        player = self._player
        if player is None or player.kind != "optimal":
            return None

        def value(seed: int) -> float:
            return player.value(self._start(seed)[1])

        return self._computed("optimal", "", seeds, value)

    def blind(self, seeds: Sequence[int]) -> BlindEnd | None:
        """Return what the best blind player gets in each episode."""
        self._blind = play = self._blind or blind_play(self._scenario)
        if play is None:
            return None
        try:
            computed = self._computed(
                "blind-play", f" {sorted(play.policy.items())}", seeds, lambda s: self._worth(play, s)
            )
            return BlindEnd(computed, 0.0, play.text, exact=True)
        except NotImplementedError:
            return BlindEnd(np.full(len(seeds), play.value), play.standard_error, play.text, exact=False)

    def _worth(self, play: BlindPlay, seed: int) -> float:
        """Return the exact value of blind play in an episode.

        If the optimum is that of a player from whom the start is hidden, it is a mean over all starts that there may
        be, and blind play's value has to be one as well: two ends of which only one knows that an episode is easy
        would make a wrong scale.

        Raises:
            NotImplementedError: it can't be computed.
        """
        state, request = self._start(seed)
        if self._player is not None and self._player.kind == "optimal" and self._game.hidden_information:
            worth = None if play.policy else self._player.uniform_value(request)
        elif play.exact:
            worth = blind_value(self._game, state, request.steps_left, self._game.players[0], play.policy)
        else:  # too large on other starts, so here too: finding that out takes long
            worth = None
        if worth is None:
            raise NotImplementedError(f"{self._scenario.name}: blind play can't be evaluated from seed {seed}")
        return worth

    def _computed(self, name: str, about: str, seeds: Sequence[int], value: Callable[[int], float]) -> Returns:
        """Return a value for each seed: from the cache, else computed and then kept there."""
        known = self._known.setdefault(name, {})
        if any(seed not in known for seed in seeds):
            file = cache_file(name, self._scenario, about)
            known.update(read_cache(file, _values_of_json) or {})
            missing = {seed: value(seed) for seed in seeds if seed not in known}
            if missing:
                known.update(missing)
                write_cache(file, known)
        return np.array([known[seed] for seed in seeds])

    def _start(self, seed: int) -> tuple[Any, Any]:
        """Return the first state of an episode, and what its player is asked there."""
        episode = LiveEpisode(EpisodeTask.of(self._scenario, seed), self._random, self._pool)
        state, (request,) = episode.state, episode.requests().values()
        episode.finish()
        return state, request


def _play(policy: Policy, scenario: Scenario, seeds: Sequence[int]) -> dict[int, float] | None:
    """Return a player's returns, played; ``None`` if that fails in a game that it seemed to know."""
    tasks = (EpisodeTask.of(scenario, seed) for seed in seeds)
    try:
        return {episode.seed: sum(episode.returns.values()) for episode in rollout(policy, tasks)}
    except (NotImplementedError, ValueError, TypeError):
        return None


def _values_of_json(kept: Mapping[str, Any]) -> dict[int, float]:
    """Return ``{seed: value}`` as it is kept."""
    return {int(seed): float(value) for seed, value in kept.items()}
