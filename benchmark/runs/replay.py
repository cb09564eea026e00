"""Playing a recorded episode again: its scenario's real environment, its seed, its responses.

Whatever a record claims, this is what happens: ``record -> reset(seed) -> step(response) ... -> ReplayedStep``.
Replays, pages and the validation of entries are all made of it.
"""

from collections.abc import Iterator
from functools import lru_cache
from json import dumps, loads
from typing import Any, NamedTuple

from benchmark.errors import UsageError
from benchmark.runs.plan import scenario_to_json
from benchmark.runs.record import Record
from textgames.scenarios import Scenario


class ReplayedStep(NamedTuple):
    """One player's part of one round, as the environment plays it.

    Attributes:
        round: from 0.
        player: who acts.
        board: the board before the round, rows joined by newlines; ``""`` for games without one.
        observation: what the player reads.
        response: the recorded response.
        action: the action that is executed.
        valid: whether the response names a legal action.
        unreadable: why it doesn't, or ``None``.
        reward: of this round.
        legal_actions: what would have counted.
    """

    round: int
    player: str
    board: str
    observation: str
    response: str
    action: str
    valid: bool
    unreadable: str | None
    reward: float
    legal_actions: tuple[str, ...]


class ReplayedEnd(NamedTuple):
    """How the episode ends.

    Attributes:
        board: the last board.
        observations: ``{player: last observation}``.
        over: whether the game is over; ``False`` when the responses end before the episode does.
        terminated: the game ended by its own rules.
        truncated: by the step limit.
        successes: ``{player: whether it counts as a success}``.
        returns: ``{player: sum of rewards}``.
    """

    board: str
    observations: dict[str, str]
    over: bool
    terminated: bool
    truncated: bool
    successes: dict[str, bool]
    returns: dict[str, float]


class Replay(NamedTuple):
    """A whole episode played again."""

    steps: tuple[ReplayedStep, ...]
    end: ReplayedEnd


class ReplayError(ValueError):
    """The responses don't fit the game: too many, too few of a round, or of a player who is out."""


def replay(record: Record, scenario: Scenario, *, boards: bool = True) -> Replay:
    """Play a record's responses again.

    Args:
        record: an episode; only its scenario, seed and responses are looked at.
        scenario: the scenario's definition.
        boards: also draw the boards, for people.

    Raises:
        ReplayError: a round lacks a response or has one that nobody was asked for; says where.
    """
    env = _environment(scenario)
    if record["seed"] < 0:
        raise ReplayError(f"there is no episode with seed {record['seed']}")
    observations, infos = env.reset(seed=record["seed"])
    steps: list[ReplayedStep] = []
    players = list(env.possible_agents)
    returns, successes = dict.fromkeys(players, 0.0), dict.fromkeys(players, False)
    terminated, truncated = dict.fromkeys(players, False), dict.fromkeys(players, False)
    for number, responses in enumerate(_rounds(record)):
        _check_round(number, responses, env.agents)
        board = _board(env) if boards else ""
        asked, legal = observations, {player: infos[player]["legal_actions"] for player in env.agents}
        observations, rewards, ended, cut, infos = env.step(responses)
        for player, response in responses.items():
            info = infos[player]
            terminated[player], truncated[player] = ended[player], cut[player]
            returns[player] += float(rewards[player])
            successes[player] = bool(info["success"])
            steps.append(
                ReplayedStep(
                    round=number,
                    player=player,
                    board=board,
                    observation=asked[player],
                    response=response,
                    action=info["action"],
                    valid=info["valid"],
                    unreadable=None if info["unreadable"] is None else str(info["unreadable"]),
                    reward=float(rewards[player]),
                    legal_actions=tuple(legal[player]),
                )
            )
    cut_off = any(truncated.values())
    over = not env.agents
    end = ReplayedEnd(
        board=_board(env) if boards else "",
        observations=dict(observations),
        over=over,
        terminated=over and not cut_off,
        truncated=over and cut_off,
        successes=successes,
        returns=returns,
    )
    return Replay(tuple(steps), end)


def _rounds(record: Record) -> Iterator[dict[str, str]]:
    """The responses of every round, ``{player: response}``."""
    responses: dict[str, str] = {}
    number = 0
    for index, step in enumerate(record["steps"]):
        if step["round"] != number:
            if step["round"] != number + 1 or not responses:
                raise ReplayError(f"step {index} belongs to round {step['round']!r}, expected round {number}")
            yield responses
            responses, number = {}, number + 1
        if step["player"] in responses:
            raise ReplayError(f"step {index}: {step['player']} answers twice in round {number}")
        responses[step["player"]] = step["response"]
    if responses:
        yield responses


def _check_round(number: int, responses: dict[str, str], asked: list[str]) -> None:
    if not asked:
        raise ReplayError(f"round {number}: the game was over before it")
    if set(responses) != set(asked):
        raise ReplayError(f"round {number}: {', '.join(asked)} had to answer, {', '.join(responses)} did")


def _board(env: Any) -> str:
    try:
        return "\n".join(env.game.board(env.state()))
    except NotImplementedError:
        return ""


def _environment(scenario: Scenario) -> Any:
    """The scenario's environment; made once, since building a game costs more than an episode."""
    definition = scenario_to_json(scenario)
    try:
        return _made(dumps([definition["env_id"], definition["kwargs"], definition["horizon"]], sort_keys=True))
    except (TypeError, ValueError) as error:
        raise UsageError(f"scenario {scenario.name!r} can't be made: {error}") from None


@lru_cache(maxsize=32)
def _made(identity: str) -> Any:
    env_id, kwargs, horizon = loads(identity)
    return Scenario("", env_id, kwargs, horizon, 0).parallel_env()
