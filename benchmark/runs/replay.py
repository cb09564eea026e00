"""Playing a recorded episode again: its scenario's real environment, its seed, its responses.

Whatever a record claims, this is what happens: ``record -> reset(seed) -> step(response) ... -> ReplayedStep``.
Replays, pages and the validation of entries are all made of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agents.episode import EpisodeTask, RewardLedger
from agents.loop.live import EnvironmentPool
from agents.turn import Refused, Turn, TurnRequest, own_action_help
from benchmark.errors import UsageError
from benchmark.runs.plan import told_otherwise
from benchmark.runs.record import Record, observations_digest
from textgames.environments.rules import EpisodeRules
from textgames.environments.table import Table
from textgames.scenarios import Scenario
from textgames.texts.actions import Unreadable
from textgames.tsmg import TSMG

_ENVIRONMENTS = EnvironmentPool()


class ReplayedStep(NamedTuple):
    """One player's part of one round, as the environment plays it."""

    round: int  # from 0
    player: str
    board: str  # before the round, rows joined by newlines; "" for games without one
    observation: str
    response: str
    action: str  # that was executed; "" where the response ended the player's episode
    valid: bool
    unreadable: str | None  # why the response names no legal action
    reward: float  # from this decision to the player's next one
    legal_actions: tuple[str, ...]  # empty where they can't be listed
    action_help: str  # the game's words on what may be written, where it has some of its own
    steps_left: int | None  # rounds until the step limit, this one included
    happened: str  # what the round did to the player and why, "fell into a hole"; "" where there is nothing to tell
    out: bool  # whether this step ended the player's own episode by the rules of the game
    refused: tuple[Refused, ...] = ()  # answers before this one that couldn't be read


class ReplayedEnd(NamedTuple):
    """How the episode ends; dictionaries have a value of every player."""

    board: str
    observations: dict[str, str]  # of the players of the last round only
    over: bool  # False when the responses end before the episode does
    terminated: bool  # by the rules of the game
    truncated: bool  # by the step limit
    successes: dict[str, bool]
    returns: dict[str, float]
    metrics: dict[str, dict[str, float]]  # of games that tell more than the return; else empty


class Replay(NamedTuple):
    """A whole episode played again."""

    steps: tuple[ReplayedStep, ...]
    end: ReplayedEnd
    states: tuple[Any, ...]  # the state before every round, and the last one
    rules: EpisodeRules  # the environment's: the horizon, and what an invalid response does
    moves_listed: bool = True  # whether the prompts list the legal moves
    seed: int = 0  # of the episode


class ReplayError(ValueError):
    """The responses don't fit the game: too many, too few of a round, or of a player who is out."""


def replay(record: Record, scenario: Scenario, *, boards: bool = True) -> Replay:
    """Play a record's responses again.

    Args:
        record: an episode; only its seed and responses are looked at.
        scenario: the scenario's definition.
        boards: also draw the boards and tell what happened, which only people look at.

    Raises:
        ReplayError: a round lacks a response or has one that nobody was asked for; says where. Or a twin is told in
            other words than when it was played.
        UsageError: the scenario's definition can't be made into an environment.
    """
    if record["seed"] < 0:
        raise ReplayError(f"there is no episode with seed {record['seed']}")
    if why := told_otherwise(scenario):
        raise ReplayError(why)
    task = EpisodeTask.of(scenario, record["seed"])
    try:
        table = _ENVIRONMENTS.table(task)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scenario {scenario.name!r} can't be made: {error}") from None
    return _played(table, task, record, boards)


def _played(table: Table, task: EpisodeTask, record: Record, boards: bool) -> Replay:
    game, players = table.game, table.game.players
    table.reset(record["seed"])
    present = table.agents
    steps: list[ReplayedStep] = []
    states: list[Any] = [table.state]
    ledger, successes = RewardLedger(players), dict.fromkeys(players, False)
    limit = table.rules.max_steps
    cut_off = False
    for number, answers in enumerate(_rounds(record)):
        asked = table.asked
        if not asked:
            raise ReplayError(f"round {number}: the game was over before it")
        if set(answers) != set(asked):
            raise ReplayError(f"round {number}: {', '.join(asked)} had to answer, {', '.join(answers)} did")
        responses = {player: answer["response"] for player, answer in answers.items()}
        last = {player: game.read(responses[player], table.state, player) for player in asked}
        refused = {player: _refused(table, number, player, answers[player], last[player], task) for player in asked}
        before, board, elapsed = table.state, _board(table) if boards else "", table.elapsed
        present = table.agents
        read, legal = (
            {player: table.observe(player) for player in asked},
            {player: table.legal_actions(player) for player in asked},
        )
        told = {player: own_action_help(game, before, player, legal[player]) for player in asked}
        rewards, terminated, truncated, infos = table.play({player: responses[player] for player in asked}, last)
        states.append(table.state)
        happened = _what_happened(table, before, {player: infos[player] for player in asked}) if boards else {}
        cut_off = bool(truncated)
        ledger.enter(responses, {player: float(reward) for player, reward in rewards.items()})
        for player, info in infos.items():
            successes[player] = bool(info["success"])
        for player, response in responses.items():
            info = infos[player]
            steps.append(
                ReplayedStep(
                    round=number,
                    player=player,
                    board=board,
                    observation=read[player],
                    response=response,
                    action=info["action"],
                    valid=info["valid"],
                    unreadable=None if info["unreadable"] is None else str(info["unreadable"]),
                    reward=0.0,  # known when everything is played
                    legal_actions=legal[player],
                    action_help=told[player],
                    steps_left=None if limit is None else limit - elapsed,
                    happened=happened.get(player, ""),
                    out=player in terminated,
                    refused=refused[player],
                )
            )
    over = not table.agents
    end = ReplayedEnd(
        board=_board(table) if boards else "",
        observations={player: table.observe(player) for player in present},
        over=over,
        terminated=over and not cut_off,
        truncated=over and cut_off,
        successes=successes,
        returns=ledger.returns,
        metrics=table.metrics() if over else {},
    )
    paid = tuple(step._replace(reward=reward) for step, reward in zip(steps, ledger.rewards, strict=True))
    return Replay(paid, end, tuple(states), table.rules, task.moves_listed, task.seed)


def _refused(
    table: Table, number: int, player: str, answer: Mapping[str, Any], last: str | Unreadable, task: EpisodeTask
) -> tuple[Refused, ...]:
    """The answers of a decision before its last one, read again in the state that they were given in."""
    found, retries = [], task.retries
    for earlier in answer.get("refused", ()):
        read = table.game.read(earlier["response"], table.state, player)
        if not isinstance(read, Unreadable):
            raise ReplayError(f"round {number}: {player} was asked again, but its answer can be read: {read!r}")
        found.append(Refused(Turn(earlier["response"]), str(read.reason)))
    if len(found) > retries or (isinstance(last, Unreadable) and len(found) < retries):
        raise ReplayError(
            f"round {number}: {player} has {1 + len(found)} answers, but may give {1 + retries} until one can be read"
        )
    return tuple(found)


def requests_of(replayed: Replay, game: TSMG[Any]) -> Iterator[tuple[ReplayedStep, TurnRequest]]:
    """What every step's player was asked, the whole history of its turns included; of its seed the episode's alone."""
    history: dict[str, list[tuple[str, str]]] = {}
    left: dict[str, list[int | None]] = {}
    for step in replayed.steps:
        past, left_then = history.setdefault(step.player, []), left.setdefault(step.player, [])
        yield (
            step,
            TurnRequest(
                observation=step.observation,
                instructions=game.instructions(step.player),
                legal_actions=step.legal_actions,
                history=tuple(past),
                player=step.player,
                steps_left=step.steps_left,
                game=game,
                action_help=step.action_help,
                refused=step.refused,
                moves_listed=replayed.moves_listed,
                history_steps_left=tuple(left_then),
                seed=(replayed.seed,),
            ),
        )
        past.append((step.observation, step.response))
        left_then.append(step.steps_left)


def replay_if_unchanged(record: Record, scenario: Scenario) -> Replay | None:
    """The replay, or ``None`` when the game's rules or texts aren't any more what the player saw."""
    try:
        replayed = replay(record, scenario)
    except ReplayError:
        return None
    return replayed if shows_what_was_seen(replayed, record) else None


def shows_what_was_seen(replayed: Replay, record: Record) -> bool:
    """Whether the players read the same texts when the episode was recorded."""
    return bool(observations_digest(step.observation for step in replayed.steps) == record["observations_digest"])


def ending(record: Record, replayed: Replay | None) -> str:
    """How an episode ended and why, as what follows "the episode": ``"reached the step limit"``.

    Args:
        record: the episode.
        replayed: its replay, which knows the causes (``"ended by the rules: fell into a hole"``); ``None`` without one.
    """
    if record["error"] is not None:
        how = "broke off with an error"
    elif record["truncated"]:
        how = "reached the step limit"
    else:
        how = "ended by the rules" if record["terminated"] else "was stopped before its end"
    last = [step for step in replayed.steps if step.out and step.happened] if replayed else []
    if len(record["agents"]) > 1:
        causes = [f"{step.player} {step.happened} in round {step.round + 1}" for step in last]
    else:
        causes = [step.happened for step in last]
    # who died before the step limit isn't the cause of that end
    return (": " if record["terminated"] else "; ").join([how, ", ".join(causes)]) if causes else how


def _rounds(record: Record) -> Iterator[dict[str, Mapping[str, Any]]]:
    """What was answered in every round, ``{player: step}``."""
    responses: dict[str, Mapping[str, Any]] = {}
    number = 0
    for index, step in enumerate(record["steps"]):
        if step["round"] != number:
            if step["round"] != number + 1 or not responses:
                raise ReplayError(f"step {index} belongs to round {step['round']!r}, expected round {number}")
            yield responses
            responses, number = {}, number + 1
        if step["player"] in responses:
            raise ReplayError(f"step {index}: {step['player']} answers twice in round {number}")
        responses[step["player"]] = step
    if responses:
        yield responses


def _board(table: Table) -> str:
    return "\n".join(table.game.board(table.state)) if table.game.has_board else ""


def _what_happened(table: Table, before: Any, infos: dict[str, Any]) -> dict[str, str]:
    """What the round that led from ``before`` to the present state did to everybody who was asked in it."""
    game = table.game
    joint_action = {  # as the environment makes it: a default for those who play on without having been asked
        player: infos.get(player, {}).get("action") or game.default_action(before, player)
        for player in game.to_move(before)
    }
    # of a response that ended its player's episode nothing was executed, so there is nothing to tell
    return {
        player: game.what_happened(before, joint_action, table.state, player)
        for player, info in infos.items()
        if info["action"]
    }
