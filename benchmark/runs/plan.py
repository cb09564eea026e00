"""The plan of a run: its agents by seat, its scenarios and its seeds.

``agents x scenarios x seeds -> matchups -> tasks``. A matchup is a scenario and one agent per seat. In a scenario for
one player every agent is a matchup; in one for several, :func:`tables` decides who meets whom.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from agents.common.refusals import shown
from agents.common.toml import read_setting
from agents.protocol import check_moves, same_protocol
from benchmark.errors import UsageError, unknown_name
from benchmark.runs.manifest import MOST_EPISODES, MOST_ROUNDS, MOST_SEEDS, OLD_PROTOCOL, RUN_KIND
from benchmark.runs.record import Key
from textgames.importing import from_here
from textgames.registry import registered_ids, settings_of
from textgames.scenarios import SCENARIOS, SUITES, Scenario, known_scenario, scenario_of_game, why_unknown

PAPER_SCENARIOS = SUITES["paper"]
"""The scenarios of the paper's evaluation; the default of a run, and what a leaderboard entry must have."""


class Matchup(NamedTuple):
    """One scenario with one agent per seat, in the order of the game's players."""

    scenario: str
    agents: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that a run is to play."""

    scenarios: Mapping[str, Scenario]  # by name, in the order of the tables
    seeds: Mapping[Matchup, Sequence[int]]  # ``{matchup: its seeds}``, in the order in which they are played

    @classmethod
    def of(
        cls,
        agents: Sequence[str],
        scenarios: Mapping[str, Scenario],
        episodes: int,
        seed_offset: int = 0,
        left_out: Collection[tuple[str, str]] = (),
    ) -> "Plan":
        """Return every agent in every scenario, but the pairs ``left_out``, from ``first_seed + seed_offset`` on."""
        seats = {name: num_players(scenario) for name, scenario in scenarios.items()}
        plays = {name: [agent for agent in agents if (agent, name) not in left_out] for name in scenarios}
        # all of an agent's own scenarios together: one model in memory, one batch
        matchups = [
            Matchup(name, (agent,))
            for agent in agents
            for name in scenarios
            if seats[name] == 1 and agent in plays[name]
        ]
        for name in [name for name in scenarios if seats[name] > 1]:
            matchups += [Matchup(name, table) for table in tables(plays[name], seats[name])]
        return cls(scenarios, dict.fromkeys(matchups, ())).with_episodes(episodes, seed_offset)

    def with_episodes(self, episodes: int, seed_offset: int = 0) -> "Plan":
        """Return the plan of the same tables with as many episodes, from ``first_seed + seed_offset`` on."""
        first = {name: scenario.first_seed + seed_offset for name, scenario in self.scenarios.items()}
        seeds = {one: range(first[one.scenario], first[one.scenario] + episodes) for one in self.seeds}
        return Plan(self.scenarios, seeds)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> "Plan":
        """Return the plan that a manifest holds; a UsageError if its parts contradict each other.

        Nothing that the manifest names is imported: a game that isn't registered yet is refused.
        """
        own = manifest["kind"] == RUN_KIND
        scenarios = {
            name: scenario_from_json(name, data, own_games=own) for name, data in manifest["scenarios"].items()
        }
        scenarios = played_by(manifest.get("settings", {}), scenarios)
        seats = {name: num_players(scenario) for name, scenario in scenarios.items()}
        seeds: dict[Matchup, Sequence[int]] = {}
        # an entry's check reports another name on its card
        cards = {card["name"] for card in manifest["agents"]} if own and "agents" in manifest else None
        for row in manifest["matchups"]:
            matchup = Matchup(row["scenario"], tuple(row["agents"]))
            where = shown(matchup.scenario)
            if matchup in seeds:
                agents = " against ".join(matchup.agents)
                raise UsageError(f"the manifest has the matchup of {agents} in {where} twice")
            if matchup.scenario not in scenarios:
                raise UsageError(f"the manifest has matchups of {where} and no definition of it")
            seeds[matchup] = expand_ranges(row["seeds"])
            if (needed := seats[matchup.scenario]) != len(matchup.agents):
                raise UsageError(
                    f"the manifest has a matchup of {len(matchup.agents)} in {where}, which is for {needed}"
                )
            if cards is not None and (strangers := [agent for agent in matchup.agents if agent not in cards]):
                raise UsageError(f"the manifest has matchups of {shown(strangers[0])} and no card of it")
        plan = cls(scenarios, seeds)
        if plan.total > MOST_EPISODES:
            raise UsageError(f"the manifest plans {plan.total:,} episodes; at most {MOST_EPISODES:,} are read")
        return plan

    def to_json(self) -> dict[str, Any]:
        return {
            "scenarios": {name: scenario_to_json(scenario) for name, scenario in self.scenarios.items()},
            "matchups": [
                {"scenario": matchup.scenario, "agents": list(matchup.agents), "seeds": to_ranges(seeds)}
                for matchup, seeds in self.seeds.items()
            ],
        }

    @property
    def agents(self) -> tuple[str, ...]:
        """Everyone who plays, in the order of first appearance."""
        return tuple(dict.fromkeys(agent for matchup in self.seeds for agent in matchup.agents))

    @property
    def total(self) -> int:
        return sum(len(seeds) for seeds in self.seeds.values())

    def episodes(self) -> Iterator[Key]:
        """Yield the key of every episode, in the order in which they are played."""
        return (Key(*matchup, seed) for matchup, seeds in self.seeds.items() for seed in seeds)

    def scenarios_of(self, agent: str) -> list[Scenario]:
        names = {matchup.scenario for matchup in self.seeds if agent in matchup.agents}
        return [scenario for name, scenario in self.scenarios.items() if name in names]


def tables(agents: Sequence[str], seats: int) -> list[tuple[str, ...]]:
    """Return the agents of every table, in the order of the game's players; a single agent plays itself.

    Every ordered pair of agents (a, b) has one table, at which the two take the seats in turn: a, b, a, b, ... So on
    every seed each agent of a pair holds every seat once, which is fair in games for teams and with hidden roles, too.
    At tables of more than two seats every agent has one more for itself, as games of common interest ask what a group
    of its own kind achieves. One agent alone among several copies of another isn't played.
    """
    alone = [(agent,) * seats for agent in agents]
    if seats == 1 or len(agents) == 1:
        return alone
    mixed = [tuple(pair[seat % 2] for seat in range(seats)) for pair in permutations(agents, 2)]
    return mixed + (alone if seats > 2 else [])


def protocol_of(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the protocol and the moves of a run's settings; raises a UsageError if one of these isn't known."""
    told = {**OLD_PROTOCOL, **settings}
    try:
        return same_protocol(told["protocol"]), check_moves(told["moves"])
    except ValueError as error:
        raise UsageError(f"the manifest's {error}") from None


def played_by(settings: Mapping[str, Any], scenarios: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Return the scenarios as a run with these settings plays them; raises as :func:`protocol_of`."""
    protocol, moves = protocol_of(settings)
    return {name: scenario._replace(protocol=protocol, moves=moves) for name, scenario in scenarios.items()}


def num_players(scenario: Scenario) -> int:
    """Return how many agents a scenario needs at once."""
    return len(scenario.game().players)


def find_scenarios(names: Sequence[str], groups: Sequence[str] = ("all", "paper")) -> dict[str, Scenario]:
    """Return scenarios by name, in the order of the table, then other games.

    ``names`` are those of scenarios, the groups ``"all"`` and ``"paper"``, or ``"my_module:MyGame-v0"``: a game of the
    user's own, as it was registered; ``(size=6)`` behind a name are other settings, ``-level-3`` is a level of it, and
    ``-twin-3`` behind that a twin.
    ``groups`` are those that an error about an unknown name may offer.
    """
    wanted: set[str] = set()
    others: dict[str, Scenario] = {}
    for name in names:
        if name in ("all", "paper"):
            wanted |= set(SUITES[name])
        elif name in SCENARIOS:
            wanted.add(name)
        elif (known := known_scenario(name)) is not None:
            others[name] = _playable(known)
        elif ":" in name:
            import_registration(name.partition("(")[0])
            try:
                others[name] = _playable(scenario_of_game(name))
            except ValueError as error:
                raise UsageError(str(error)) from None
        elif name in registered_ids():
            raise UsageError(f"{name!r} is a game, not a scenario of it; {_scenarios_of_game(name)}")
        else:
            raise UsageError(f"no scenario named {name!r}; {why_unknown(name, groups)}")
    return {name: scenario for name, scenario in SCENARIOS.items() if name in wanted} | others


def find_scenario(name: str, verb: str, settings: Sequence[str] = ()) -> Scenario:
    """Return the one scenario of that name, for a command that can't ``verb`` several; else raises a UsageError."""
    if name in SUITES:
        raise UsageError(f"{verb} one scenario, {name!r} is several; see textbench list scenarios")
    return with_settings(find_scenarios([name], groups=())[name], settings)


def with_settings(scenario: Scenario, texts: Sequence[str]) -> Scenario:
    """Return a scenario with the settings of ``--setting NAME=VALUE``; a UsageError names those that there are."""
    try:
        pairs = [read_setting(text, "NAME=VALUE", flag="--setting") for text in texts]
        made = scenario.with_settings(**dict(pairs)) if pairs else scenario
    except ValueError as error:
        raise UsageError(f"{scenario.name}: {error}") from None
    return _playable(made)


def _playable(scenario: Scenario) -> Scenario:
    if scenario.horizon > MOST_ROUNDS:
        raise UsageError(
            f"{scenario.name!r} has max_steps={scenario.horizon:,}; episodes have at most {MOST_ROUNDS:,} rounds"
        )
    return scenario


def _scenarios_of_game(env_id: str) -> str:
    """Return the advice on a game's id, as half a sentence: its scenarios, and the game as it is."""
    names = [name for name, scenario in SCENARIOS.items() if scenario.env_id.rpartition(":")[2] == env_id]
    shipped = f"its scenarios are {', '.join(names)}" if names else "it has no scenario of its own"
    game = settings_of(env_id)["game"]
    module = game.partition(":")[0] if isinstance(game, str) else game.__module__
    here = "; other programs can read runs of it when its class is in a file of its own" if module == "__main__" else ""
    if module == "__main__" or module.partition(".")[0] == "textgames":
        module = "textgames"  # which registers it wherever the run is read
    return f"{shipped}; {module}:{env_id} is the game with the settings that it was registered with{here}"


def find_suite(name: str) -> tuple[str, ...]:
    """Return the names of a suite's scenarios; raises a UsageError with the suite that may have been meant."""
    if name not in SUITES:
        raise unknown_name("suite", name, SUITES)
    return SUITES[name]


def import_registration(env_id: str) -> None:
    """Import the module of ``"my_module:MyGame-v0"``, from the working directory too; as :func:`import_games`."""
    module, separator, _ = env_id.rpartition(":")
    if separator:
        import_games(module, f"the game {env_id!r}")


def import_games(module: str, what: str) -> None:
    """Import a module that registers games, since the user has named it: as ``what``, for errors."""
    if module in sys.modules:
        return
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"{what} can't be imported: {module!r} isn't a module's name")
    try:
        with from_here():
            import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(f"{what} can't be imported: {error}") from None
    except Exception as error:
        raise UsageError(f"{what} can't be imported: {type(error).__name__}: {error}") from error


def unknown_module(env_id: str) -> str:
    """Return the module that ``"my_module:MyGame-v0"`` names, unless it is imported already; else an empty text."""
    module = env_id.rpartition(":")[0]
    return "" if module in sys.modules else module


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario's whole definition, a level's settings included: its table or ladder may be made anew."""
    return {
        "env_id": scenario.env_id,
        "kwargs": dict(scenario.kwargs),
        "horizon": scenario.horizon,
        "first_seed": scenario.first_seed,
        "training": scenario.training,
        **({"level": scenario.level_number} if scenario.level_number else {}),
        **({"vocabulary": scenario.vocabulary} if scenario.vocabulary else {}),
    }


def scenario_from_json(name: str, data: Mapping[str, Any], *, own_games: bool = False) -> Scenario:
    """Return the scenario of a manifest's definition, with ``own_games`` one of the user's own; nothing is imported."""
    scenario = Scenario(name, data["env_id"], data["kwargs"], data["horizon"], data["first_seed"], data["training"])
    scenario = scenario._replace(level_number=data.get("level", 0), vocabulary=data.get("vocabulary", ""))
    env_id, named = scenario.env_id, f"the manifest's scenario {shown(name)}"
    if ":" in env_id and not own_games:
        raise UsageError(f"{named} is {env_id!r}; an entry can't bring its own game")
    if module := unknown_module(env_id):
        raise UsageError(
            f"{named} is the game {shown(env_id)}, and no module is imported since a folder names it; if it is yours "
            f"or you trust it, add --import {shown(module)[1:-1]}"
        )
    if "game" in scenario.kwargs:  # with which an environment's registration names its class
        raise UsageError(
            f"{named} names the class {shown(scenario.kwargs['game'])} as its game; a manifest names a game by its id "
            "alone"
        )
    try:
        scenario.game()
    except Exception as error:  # noqa: BLE001 - games may come from anywhere, and refuse settings as they like
        sentence = " ".join(str(error).split())
        own = "" if env_id.rpartition(":")[2] in registered_ids() else "; a module that registers it: --import MODULE"
        raise UsageError(f"{named} can't be made: {sentence}{own}") from None
    return scenario


def told_otherwise(scenario: Scenario) -> str:
    """Return why a twin of a manifest isn't the twin of that number any more; empty if it is, or is none."""
    now = scenario.twin(scenario.twin_number).vocabulary if scenario.vocabulary else ""
    if now == scenario.vocabulary:
        return ""
    return (
        f"{scenario.name} was told with the vocabulary {scenario.vocabulary}, which is {now or 'gone'} in this version "
        "of textbench, with other words and moves; take the version that played it, or play it anew"
    )


def to_ranges(seeds: Iterable[int]) -> list[list[int]]:
    """Return seeds as ascending ranges ``[[first, last], ...]``, both ends included."""
    ranges: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if ranges and ranges[-1][1] == seed - 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ranges


def expand_ranges(ranges: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the seeds of ``[[first, last], ...]``, ends included."""
    ends = [end for pair in ranges for end in pair]
    if ends != sorted(ends) or any(last >= first for (_, last), (first, _) in pairwise(ranges)):
        raise UsageError(f"the manifest's seeds must be [first, last] pairs in order, got {shown(ranges)}")
    if sum(last - first for first, last in ranges) >= MOST_SEEDS:
        raise UsageError(f"the manifest has more than {MOST_SEEDS:,} seeds of one matchup, {shown(ranges)}")
    if len(ranges) == 1:
        return range(ranges[0][0], ranges[0][1] + 1)
    return [seed for first, last in ranges for seed in range(first, last + 1)]
