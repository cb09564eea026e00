"""Playing a recorded episode again: its scenario's real environment, its seed, its responses.

Whatever a record claims, this is what happens: ``record -> reset(seed) -> response -> Step ... -> Episode``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import LiveEpisode, environment_of
from agents.loop.session import PlayedOutside
from agents.turn import TurnRequest
from benchmark.errors import UsageError
from benchmark.runs.plan import told_otherwise
from benchmark.runs.record import observations_digest
from textgames.environments.rules import EpisodeRules
from textgames.scenarios import Scenario
from textgames.tsmg import TSMG


@dataclass(frozen=True)
class Replay:
    """A whole episode played again."""

    episode: Episode  # with its states; not terminated if the responses end before it does
    over: bool  # whether it has reached its end
    rules: EpisodeRules
    asked: tuple[TurnRequest, ...]  # of every step the request that was answered, with the whole history of the player
    game: TSMG[Any]

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.episode.steps

    @cached_property
    def states(self) -> tuple[Any, ...]:
        by_round = {step.index: step.state for step in self.steps}
        return (*by_round.values(), self.episode.end_state)

    def board(self, state: Any) -> str:
        """Return the board of a state, rows joined by newlines; empty for games without one."""
        return "\n".join(self.game.board(state)) if self.game.has_board else ""

    @property
    def final_observations(self) -> dict[str, str]:
        """``{player: observation at the end}`` of the players that were still there in the last round."""
        last = self.steps[-1].index if self.steps else 0
        gone = {step.player for step in self.steps if step.out and step.index < last}
        players = [player for player in self.game.players if player not in gone]
        return {player: self.game.observe(self.episode.end_state, player) for player in players}

    def happened(self, step: Step) -> str:
        """Return the fate of a step's player in that round, and its cause, ``"fell into a hole"``, or an empty text."""
        if not step.action:  # the response ended its player's episode, and nothing was executed
            return ""
        executed = {each.player: each.action for each in self.steps if each.index == step.index and each.action}
        joint_action = {  # as the environment makes it: a default for those who play on without having been asked
            player: executed.get(player) or self.game.default_action(step.state, player)
            for player in self.game.to_move(step.state)
        }
        return self.game.what_happened(step.state, joint_action, self.states[step.index + 1], step.player)


class ReplayError(ValueError):
    """The responses don't fit the game: too many, too few of a round, or of a player who is out."""


def replay(record: Episode, scenario: Scenario) -> Replay:
    """Play a record's responses again; nothing else is taken from it but its seed and its players' names.

    A ReplayError is raised if they don't fit, or a twin is told in other words now; a UsageError if the scenario's
    definition makes no environment.
    """
    if record.seed < 0:
        raise ReplayError(f"there is no episode with seed {record.seed}")
    if why := told_otherwise(scenario):
        raise ReplayError(why)
    task = EpisodeTask.of(scenario, record.seed)
    try:
        env = environment_of(task)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scenario {scenario.name!r} can't be made: {error}") from None
    recorded = {player: PlayedOutside(record.agents.get(player, player), None) for player in env.game.players}
    live = LiveEpisode(task, recorded)
    asked: list[TurnRequest] = []
    for number, answers in enumerate(_rounds(record)):
        if live.over:
            raise ReplayError(f"round {number}: the game was over before it")
        requests = live.requests()
        if set(answers) != set(requests):
            raise ReplayError(f"round {number}: {', '.join(requests)} had to answer, {', '.join(answers)} did")
        last, left = dict(requests), {player: list(answers[player].turns) for player in requests}
        while not (played := live.play({player: left[player].pop(0) for player in requests})):
            requests = live.requests()  # of those that are asked again
            last |= requests
            if lacking := [player for player in requests if not left[player]]:
                raise _wrong_number(number, answers[lacking[0]], task)
        for step in (step for step in played if left[step.player]):
            if step.valid:
                raise ReplayError(
                    f"round {number}: {step.player} was asked again, but its answer can be read: {step.action!r}"
                )
            raise _wrong_number(number, answers[step.player], task)
        asked += last.values()
    over = live.over
    episode = live.finish()
    episode = episode if over else replace(episode, terminated=False, metrics={})
    return Replay(episode, over, env.rules, tuple(asked), env.game)


def _wrong_number(number: int, step: Step, task: EpisodeTask) -> ReplayError:
    count, most = len(step.turns), 1 + task.retries
    return ReplayError(f"round {number}: {step.player} has {count} answers, but may give {most} until one can be read")


def requests_of(replayed: Replay) -> Iterator[tuple[Step, TurnRequest]]:
    """Yield every step with the request that it answered, whose seed is the episode's alone."""
    for step, request in zip(replayed.steps, replayed.asked, strict=True):
        yield step, replace(request, seed=(replayed.episode.seed,))


def replay_if_unchanged(record: Episode, scenario: Scenario) -> Replay | None:
    """Return the replay, or ``None`` when the game's rules or texts aren't any more what the player saw."""
    try:
        replayed = replay(record, scenario)
    except ReplayError:
        return None
    return replayed if shows_what_was_seen(replayed, record) else None


def shows_what_was_seen(replayed: Replay, record: Episode) -> bool:
    """Report whether the players read the same texts when the episode was recorded."""
    return observations_digest(replayed.steps) == record.observations_digest


def ending(record: Episode, replayed: Replay | None) -> str:
    """Return how an episode ended, as what follows "the episode"; by its replay with the cause, "fell into a hole"."""
    if record.error is not None:
        how = "broke off with an error"
    elif record.truncated:
        how = "reached the step limit"
    else:
        how = "ended by the rules" if record.terminated else "was stopped before its end"
    last = [(step, replayed.happened(step)) for step in replayed.steps if step.out] if replayed else []
    several = len(record.agents) > 1
    causes = [f"{step.player} {cause} in round {step.index + 1}" if several else cause for step, cause in last if cause]
    # who died before the step limit isn't the cause of that end
    return (": " if record.terminated else "; ").join([how, ", ".join(causes)]) if causes else how


def _rounds(record: Episode) -> Iterator[dict[str, Step]]:
    answers, number = dict[str, Step](), 0
    for index, step in enumerate(record.steps):
        if step.index != number:
            if step.index != number + 1 or not answers:
                raise ReplayError(f"step {index} belongs to round {step.index!r}, expected round {number}")
            yield answers
            answers, number = {}, number + 1
        if step.player in answers:
            raise ReplayError(f"step {index}: {step.player} answers twice in round {number}")
        answers[step.player] = step
    if answers:
        yield answers
