"""An episode as pictures tell it: what is on the board after every round, what was done, and what it has paid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.episode import Episode, EpisodeTask, Step
from agents.load import load_agent
from agents.loop.live import environment_of
from agents.loop.rollout import rollout
from benchmark.runs.plan import find_scenarios
from textgames import TSMG, Scenario

PATIENCE = 40
"""How many episodes are looked through for one in which the good player gets more than the bad one."""


@dataclass(frozen=True)
class Frame:
    """One picture.

    Attributes:
        rows: the board, a character a cell; or lines of text if the game has no board.
        doing: what was done in the round that led here, in lines.
        paid: what the shown player has been paid so far.
    """

    rows: tuple[str, ...]
    doing: tuple[str, ...]
    paid: float


@dataclass(frozen=True)
class Play:
    """One episode of one player.

    Attributes:
        scenario: its name.
        seed: of the episode.
        agents: ``{player: agent}``; the first one is shown.
        has_board: whether frames are boards, and not text.
        frames: the start, then one for each round.
        episode: the record.
    """

    scenario: str
    seed: int
    agents: Mapping[str, str]
    has_board: bool
    frames: tuple[Frame, ...]
    episode: Episode

    @property
    def paid(self) -> float:
        """What the shown player got."""
        return self.frames[-1].paid


def scenario_of(name: str) -> Scenario:
    """Return a scenario that ships, or a game without one, as commands take it: ``"module:Id-v0"``."""
    return find_scenarios([name])[name]


def play(scenario: str, agents: Mapping[str, str] | str, seed: int, text: bool = False) -> Play:
    """Play an episode; ``agents`` is one agent for all players, or ``{player: agent}``.

    Args:
        scenario: its name.
        agents: names of agents.
        seed: of the episode.
        text: whether to show what the first player reads although there is a board.
    """
    task = EpisodeTask.of(scenario_of(scenario), seed)
    game = environment_of(task).game
    names = dict.fromkeys(game.players, agents) if isinstance(agents, str) else dict(agents)
    players = {name: load_agent(name) for name in names.values()}
    (episode,) = rollout({player: players[name] for player, name in names.items()}, [task])
    if episode.error is not None:
        raise RuntimeError(f"{scenario}, seed {seed}: {episode.error}")
    return shown(scenario, seed, names, game, episode, text)


def shown(
    scenario: str,
    seed: int,
    agents: Mapping[str, str],
    game: TSMG[Any],
    episode: Episode,
    text: bool = False,
    responses: bool = False,
) -> Play:
    """Return an episode that was played, with its states, as pictures tell it; ``responses``: with what the player
    wrote."""
    viewer = game.players[0]
    has_board = game.has_board and not text
    rounds: dict[int, list[Step]] = {}
    for step in episode.steps:
        rounds.setdefault(step.index, []).append(step)
    states = [steps[0].state for steps in rounds.values()] + [episode.end_state]
    views = [_rows(game, state, viewer, has_board) for state in states]
    frames, paid = [Frame(views[0], ("the start",), 0.0)], 0.0
    for number, (steps, before, after) in enumerate(zip(rounds.values(), states[:-1], states[1:], strict=True), 1):
        paid += sum(step.reward for step in steps if step.player == viewer)
        doing = _doing(game, steps, before, after, viewer)
        if responses:
            said = [step.turn.response for step in steps if step.player == viewer]
            doing += tuple(line for response in said for line in response.replace("><", ">\n<").splitlines())
        frames.append(Frame(views[number], (f"Round {number}: {doing[0]}", *doing[1:]), paid))
    return Play(scenario, seed, agents, has_board, tuple(frames), episode)


def _rows(game: TSMG[Any], state: Any, viewer: str, has_board: bool) -> tuple[str, ...]:
    return game.board(state) if has_board else tuple(game.observe(state, viewer).splitlines())


def _doing(game: TSMG[Any], steps: Sequence[Step], before: Any, after: Any, viewer: str) -> tuple[str, ...]:
    """Return the deeds of the viewer, or of the player that moved in its place, and what became of it."""
    step = next((step for step in steps if step.player == viewer), steps[0])
    who = f"{step.player}: " if len(game.players) > 1 else ""
    did = step.action if step.valid else f"unreadable, so {step.action}"
    joint = {step.player: step.action for step in steps}
    happened = game.what_happened(before, joint, after, viewer)
    return (f"{who}{did}", *([happened] if happened else []))


def good_and_bad(
    scenario: str, good: Mapping[str, str] | str, bad: Mapping[str, str] | str, text: bool = False
) -> tuple[Play, Play]:
    """Two episodes from one start: the first seed of the scenario in which the good player gets more.

    Raises:
        RuntimeError: it never does, in :data:`PATIENCE` episodes.
    """
    for number in range(PATIENCE):
        seed = scenario_of(scenario).seed(number)
        better, worse = play(scenario, good, seed, text), play(scenario, bad, seed, text)
        if better.paid > worse.paid:
            return better, worse
    raise RuntimeError(f"{good} got no more than {bad} in any of {PATIENCE} episodes of {scenario}")
