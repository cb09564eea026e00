"""Playing a recorded episode again: its scenario's real environment, its seed, its responses.

Whatever a record claims, this is what happens: ``record -> reset(seed) -> step(response) ... -> ReplayedStep``.
Replays, pages and the validation of entries are all made of it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agents.episode import EpisodeTask, RewardLedger
from agents.loop.live import EnvironmentPool, final_metrics
from agents.turn import Refused, Turn, TurnRequest, own_action_help
from benchmark.errors import UsageError
from benchmark.runs.plan import told_otherwise
from benchmark.runs.record import Record, observations_digest
from textgames.environments.rules import EpisodeRules
from textgames.scenarios import Scenario
from textgames.texts.actions import Unreadable
from textgames.tsmg import TSMG

if TYPE_CHECKING:
    from textgames.environments.parallel import TextParallelEnv

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
        env = _ENVIRONMENTS.take(task)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scenario {scenario.name!r} can't be made: {error}") from None
    try:
        return _played(env, task, record, boards)
    finally:
        _ENVIRONMENTS.give_back(task, env)


def _played(env: "TextParallelEnv", task: EpisodeTask, record: Record, boards: bool) -> Replay:
    _, infos = env.reset(seed=record["seed"])
    present = list(env.agents)
    steps: list[ReplayedStep] = []
    states: list[Any] = [env.state()]
    ledger, successes = RewardLedger(env.possible_agents), dict.fromkeys(env.possible_agents, False)
    limit = env.rules.max_steps
    cut_off = False
    for number, answers in enumerate(_rounds(record)):
        asked = env.to_move
        if not asked:
            raise ReplayError(f"round {number}: the game was over before it")
        if set(answers) != set(asked):
            raise ReplayError(f"round {number}: {', '.join(asked)} had to answer, {', '.join(answers)} did")
        responses = {player: answer["response"] for player, answer in answers.items()}
        refused = {player: _refused(env, number, player, answers[player], task.retries) for player in asked}
        before, board, elapsed = env.state(), _board(env) if boards else "", env.elapsed_steps
        present = list(env.agents)
        read, legal = (
            {player: env.observe(player) for player in asked},
            {player: tuple(infos[player]["legal_actions"]) for player in asked},
        )
        told = {player: own_action_help(env.game, before, player, legal[player]) for player in asked}
        rewards, terminated, truncated, infos = env.play(responses)
        states.append(env.state())
        happened = _what_happened(env, before, {player: infos[player] for player in asked}) if boards else {}
        cut_off = any(truncated.values())
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
                    out=terminated[player],
                    refused=refused[player],
                )
            )
    over = not env.agents
    end = ReplayedEnd(
        board=_board(env) if boards else "",
        observations={player: env.observe(player) for player in present},
        over=over,
        terminated=over and not cut_off,
        truncated=over and cut_off,
        successes=successes,
        returns=ledger.returns,
        metrics=final_metrics(env) if over else {},
    )
    paid = tuple(step._replace(reward=reward) for step, reward in zip(steps, ledger.rewards, strict=True))
    return Replay(paid, end, tuple(states), env.rules, task.moves_listed, task.seed)


def _refused(
    env: "TextParallelEnv", number: int, player: str, answer: Mapping[str, Any], retries: int
) -> tuple[Refused, ...]:
    """The answers of a decision before its last one, read again in the state that they were given in."""
    state, found = env.state(), []
    for earlier in answer.get("refused", ()):
        read = env.game.read(earlier["response"], state, player)
        if not isinstance(read, Unreadable):
            raise ReplayError(f"round {number}: {player} was asked again, but its answer can be read: {read!r}")
        found.append(Refused(Turn(earlier["response"]), str(read.reason)))
    last = env.game.interpret(answer["response"], state, player)
    if len(found) > retries or (last is None and len(found) < retries):
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


def _board(env: "TextParallelEnv") -> str:
    return "\n".join(env.game.board(env.state())) if env.game.has_board else ""


def _what_happened(env: "TextParallelEnv", before: Any, infos: dict[str, Any]) -> dict[str, str]:
    """What the round that led from ``before`` to the present state did to everybody who was asked in it."""
    game = env.game
    joint_action = {  # as the environment makes it: a default for those who play on without having been asked
        player: infos.get(player, {}).get("action") or game.default_action(before, player)
        for player in game.to_move(before)
    }
    # of a response that ended its player's episode nothing was executed, so there is nothing to tell
    return {
        player: game.what_happened(before, joint_action, env.state(), player)
        for player, info in infos.items()
        if info["action"]
    }
