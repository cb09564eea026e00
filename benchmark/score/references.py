"""The two ends of the normalised score's scale, episode by episode: the best blind play, and the reference.

The 1 is the optimum of a player that knows what players are told, if the game's search player knows it, else the return
of the ``planner`` agent on the same seeds, from the results or played here. A bound that only a player reaches that
sees hidden things (``"clairvoyant"``) is never 1. Both are kept in the cache folder, by the source code that they
depend on; ``docs/research/scores.md`` has the 0.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.baselines.search import find_search_player
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.live import LiveEpisode
from agents.loop.rollout import rollout
from agents.turn import check_game
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
    """The 0 of a scale: the best play that doesn't read."""

    values: Returns  # (episodes,) the best blind player's expected return on each; all equal if it isn't known of each
    error: float  # the standard error of their mean, if they were estimated elsewhere; 0 if they are exact
    policy: str  # its distribution over actions, for people
    exact: bool  # whether the values are computed and not played


class ReferenceEnd(NamedTuple):
    """The 1 of a scale: optimal play, or a strong player."""

    values: Returns  # (episodes,)
    kind: Literal["optimal", "reference"]
    source: str  # how they are computed, or who played them: "value iteration", "planner (search)"


class Scale(NamedTuple):
    """The two ends for the episodes of one agent in one scenario; ``None`` if one can't be had."""

    blind: BlindEnd | None = None
    reference: ReferenceEnd | None = None


class References:
    """Looks references up: computed, in ``results``, in the cache, or by playing, which ``say`` reports."""

    def __init__(self, results: ResultColumns | None = None, say: Callable[[str], None] | None = None) -> None:
        self._results = results
        self._tell = say or (lambda message: None)
        self._said: set[str] = set()
        self._known: dict[str, dict[int, float]] = {}  # the returns of STRONGEST by scenario and seed
        self._starts: dict[str, StartValues] = {}

    def scale(self, scenario: Scenario, seeds: Sequence[int]) -> Scale:
        """Return both ends for these episodes; a game of an installed package that fails has none."""
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
        if (optimal := starts.optimal(seeds)) is not None:
            return Scale(starts.blind(seeds), ReferenceEnd(optimal, "optimal", starts.method))
        played = self._returns(scenario, seeds)
        reference = None if played is None else ReferenceEnd(played, "reference", f"{STRONGEST} ({starts.method})")
        return Scale(starts.blind(seeds), reference)

    def _say(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._tell(message)

    def _returns(self, scenario: Scenario, seeds: Sequence[int]) -> Returns | None:
        """Return the returns of :data:`STRONGEST` in these episodes; ``None`` if it can't play them or so many."""
        if scenario.name not in self._known:
            self._known[scenario.name] = self._from_results(scenario)

        def play(missing: Sequence[int]) -> dict[int, float] | None:
            if len(missing) > PLAY_LIMIT:
                self._say(
                    f"{scenario.name}: no normalised scores, they need the {STRONGEST} agent's returns on "
                    f"{len(missing)} more episodes; add --agent {STRONGEST} to the run"
                )
                return None
            try:
                policy = load_agent(STRONGEST)
                check_game(policy, scenario.game())
                played = f"playing {len(missing)} episodes of the {STRONGEST} agent for normalised scores"
                self._say(f"{scenario.name}: {played}")
                episodes = rollout(policy, (EpisodeTask.of(scenario, seed) for seed in missing))
                return {episode.seed: sum(episode.returns.values()) for episode in episodes}
            except (NotImplementedError, ValueError, TypeError):  # it plays only games that it can read back
                return None

        return _looked_up(self._known[scenario.name], seeds, play, STRONGEST, scenario)

    def _from_results(self, scenario: Scenario) -> dict[int, float]:
        if self._results is None:
            return {}
        for name, card in self._results.agents.items():
            cell = self._results.cells.get((name, scenario.name))
            if card["spec"] == STRONGEST and cell is not None:
                table = cell.table()
                return dict(zip(table["seed"].astype(int).tolist(), table["score"].tolist(), strict=True))
        return {}


class StartValues:
    """The worth of the episodes of a scenario for one player in their first state."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._game = scenario, scenario.game()
        self._player = find_search_player(self._game)
        # how the game's search player computes its values, in a few words
        self.method = "search" if self._player is None else self._player.method
        self._blind: BlindPlay | None = None
        self._known: dict[str, dict[int, float]] = {}
        self._random = load_agent("random")

    def optimal(self, seeds: Sequence[int]) -> Returns | None:
        """Return the optimum of each episode for a player that sees what players see; ``None`` if it isn't known."""
        player = self._player
        if player is None or player.kind != "optimal":
            return None
        return self._computed("optimal", "", seeds, lambda seed: player.value(self._start(seed)[1]))

    def blind(self, seeds: Sequence[int]) -> BlindEnd | None:
        self._blind = play = self._blind or blind_play(self._scenario)
        if play is None:
            return None
        # The optimum of a player from whom the start is hidden is a mean over all starts that there may be, and blind
        # play's value has to be one as well: two ends of which one alone knows an easy episode make a wrong scale.
        is_hidden = self._player is not None and self._player.kind == "optimal" and self._game.hidden_information

        def value(seed: int) -> float:
            state, request = self._start(seed)
            worth = None
            if is_hidden and self._player is not None:
                worth = None if play.policy else self._player.uniform_value(request)
            elif play.exact:  # else the game is too large on other starts, and finding out about this one takes long
                worth = blind_value(self._game, state, request.steps_left, self._game.players[0], play.policy)
            if worth is None:
                raise NotImplementedError(f"{self._scenario.name}: blind play can't be evaluated from seed {seed}")
            return worth

        try:
            computed = self._computed("blind-play", f" {sorted(play.policy.items())}", seeds, value)
            return BlindEnd(computed, 0.0, play.text, exact=True)
        except NotImplementedError:
            return BlindEnd(np.full(len(seeds), play.value), play.standard_error, play.text, exact=False)

    def _computed(self, name: str, about: str, seeds: Sequence[int], value: Callable[[int], float]) -> Returns:
        known = self._known.setdefault(name, {})
        found = _looked_up(known, seeds, lambda missing: {s: value(s) for s in missing}, name, self._scenario, about)
        assert found is not None  # values are computed or raise
        return found

    def _start(self, seed: int) -> tuple[Any, Any]:
        episode = LiveEpisode(EpisodeTask.of(self._scenario, seed), self._random)
        state, (request,) = episode.state, episode.requests().values()
        episode.finish()
        return state, request


def _looked_up(
    known: dict[int, float],
    seeds: Sequence[int],
    make: Callable[[Sequence[int]], Mapping[int, float] | None],
    name: str,
    scenario: Scenario,
    about: str = "",
) -> Returns | None:
    """Return a value for each seed: a known one, else from the cache file ``name``, else made and then kept there."""
    if any(seed not in known for seed in seeds):
        file = cache_file(name, scenario, about)
        kept = read_cache(file, lambda data: {int(seed): float(value) for seed, value in data.items()})
        known.update(kept or {})
        if missing := [seed for seed in seeds if seed not in known]:
            made = make(missing)
            if made is None:
                return None
            known.update(made)
            write_cache(file, known)
    return np.array([known[seed] for seed in seeds])
