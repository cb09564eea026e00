"""One episode, played by the user at the terminal and told as it goes."""

import sys
from dataclasses import replace

from rich.text import Text

from agents.baselines.human import PersonLeft
from agents.common.console import PlainConsole
from agents.common.interrupt import kills_interrupt
from agents.episode import Episode, EpisodeTask, Step
from agents.loop.rollout import rollout
from benchmark.cli.settings import Play
from benchmark.errors import UsageError
from benchmark.play.agents.players import check_plays, load_policy
from benchmark.play.options import RunOptions
from benchmark.runs.plan import find_scenario
from benchmark.runs.replay import ReplayError, replay
from benchmark.show.viewer import Showing, move, outcome, spaced
from textgames.scenarios import Scenario


def run_play(settings: Play) -> int:
    """Let the user have the first seat, tell what every move did, and show the end.

    Without ``--against`` the other seats have greedy, or random in a game that greedy can't play.
    """
    scenario = find_scenario(settings.scenario, "play", settings.settings)
    me, *others = scenario.game().players
    if settings.against is not None and not others:
        raise UsageError(f"{settings.scenario} is played alone: leave out --against {settings.against}")
    options = RunOptions()
    opponent = load_policy(settings.against or "greedy", options)
    try:
        check_plays(opponent.name, opponent, [scenario] if others else [])
    except UsageError:
        if settings.against is not None:
            raise
        opponent = load_policy("random", options)
    policies = {me: load_policy("human", options), **dict.fromkeys(others, opponent)}
    task = EpisodeTask.of(scenario, scenario.seed(settings.episode))
    names = {me: "you", **dict.fromkeys(others, opponent.name)}
    telling = Telling(scenario, names, me)
    try:
        with kills_interrupt():  # or a terminated process would leave the terminal without its echo
            (episode,) = rollout(policies, [task], on_step=telling.add)
    except PersonLeft:
        if not sys.stdin.isatty():
            raise
        print("you left; the episode isn't finished")
        return 0
    episode = replace(episode, agents=names)
    replayed = replay(episode, scenario)
    board = replayed.board(episode.end_state)
    telling.console.print(spaced(board) if board else Text(replayed.final_observations.get(me, "")))
    fates = [*filter(None, (replayed.happened(step) for step in replayed.steps if step.player == me and step.out))]
    how, *results = map(str, outcome(Showing("", episode, replayed)))
    for line in (*(f"game over for you: {fate}" for fate in fates), *([how] if others or not fates else []), *results):
        print(line)
    return 0 if episode.error is None else 1


class Telling:
    """Tells on standard error what every move did, as soon as its round is complete.

    If a game hides something, the moves of others may be secret, and the result of a move tells more than a player
    knows: then only the person's own moves are told, and their results when the episode is over.
    """

    def __init__(self, scenario: Scenario, names: dict[str, str], me: str) -> None:
        self.console = PlainConsole(stderr=True)
        self._scenario, self._names = scenario, names
        self._hides = scenario.game().hidden_information
        self._shown_players = {me} if self._hides else set(names)
        self._steps: list[Step] = []
        self._shown_steps = 0

    def add(self, task: EpisodeTask, step: Step) -> None:
        """Note a step; that of the last player completes the round, which can then be replayed."""
        self._steps.append(step)
        steps = tuple(self._steps)
        record = Episode(task.scenario, task.seed, None, self._names, steps, {}, {}, False, False)
        try:
            replayed = replay(record, self._scenario)
        except ReplayError:
            return
        for index in range(self._shown_steps, len(steps)):
            if steps[index].player not in self._shown_players:
                continue
            name = self._names[steps[index].player]
            done = move(Showing("", record, None if self._hides else replayed), index)
            self.console.print(Text.assemble(f"{name}: ", done))
        self._shown_steps = len(steps)
