"""A learned step value: what each action is worth, learnt from play, and a search that plays the best by it.

Values of steps as a critic of language agents (Zhai et al., arXiv 2409.09345, whose Q is estimated by tree search).
Our reading: a small network of its own in place of a head on the agent's model, on returns or by fitted Q iteration.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from agents import SearchPlayer, find_search_player
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import Spent
from research.improve.methods.imitating.offline import HELD_OUT, RecordedEpisode, recorded
from research.improve.methods.learning import compared_seeds, own_play, plays_better, said_as_usage, value_in
from research.improve.task import ImprovementTask

if TYPE_CHECKING:
    from research.improve.values.network import StepValue, Targets

VALUE = "value"
"""The folder of the learned value in the task's."""


def improve(
    task: ImprovementTask,
    *,
    targets: "Targets" = "mc",
    learn_from: list[str] | None = None,
    episodes: int = 500,
    attempts: int = 4,
    proposals: int = 8,
    passes: int = 20,
) -> AgentTable:
    """Learn what actions are worth, and let the agent play the best of its proposals by that.

    Args:
        task: any agent; its games list their actions, or it proposes them.
        targets: ``mc``, what was paid after a decision, or ``td``, the best that is known of the next one.
        learn_from: run folders; without any the agent plays itself first.
        episodes: training seeds that it then plays, of each scenario.
        attempts: how often it plays each of them, with other samples.
        proposals: how many of its answers the agent chooses from.
        passes: how often the value goes through the decisions.
    """
    if targets not in ("mc", "td"):
        raise UsageError(f"targets is mc or td, got {targets!r}")
    folders = [Path(each) for each in learn_from] if learn_from else own_play(task, task.agent, episodes, attempts)
    learn_value(task, folders, targets, passes)
    spec = f"search({task.agent['spec']})"
    made = {**task.agent, "spec": spec, "rank_by": "value", "proposals": proposals, "value": str(task.out / VALUE)}
    better = plays_better(task, task.agent, made)
    return {**made, "value": VALUE} if better else task.agent


def learn_value(task: ImprovementTask, folders: list[Path], targets: "Targets" = "mc", passes: int = 20) -> None:
    """Learn a value from run folders, and write it below the task's folder; a UsageError if there is nothing."""
    with said_as_usage():
        from research.improve.values.folder import write_value
        from research.improve.values.learning import learn

    found = recorded(folders, task.scenarios, "direct", apart=frozenset(compared_seeds(task)))
    learnt_from = [one for one in found if one.seed % HELD_OUT] or found
    with task.meter.timed(VALUE):
        about = {"scenarios": task.scenarios, "targets": targets}
        value = learn([one.decisions for one in learnt_from], about, seed=task.seed, passes=passes)
    task.meter.charge(Spent(seconds=task.meter.seconds_of(VALUE)), VALUE)
    write_value(value, task.out / VALUE)
    task.say(
        f"the value of {value.about.decisions:,} decisions of {len(learnt_from)} episodes is in {task.out / VALUE}"
    )
    if (truth := compared(value, [one for one in found if one.seed % HELD_OUT == 0])) is not None:
        task.say(f"its rank correlation with the exact values of {truth[1]} held-out decisions: {truth[0]:.2f}")


def ranker_of(task: ImprovementTask, folders: list[Path]) -> SearchPlayer:
    """Learn a value from run folders, and return the player that values actions by it."""
    learn_value(task, folders)
    return value_in(str(task.out / VALUE))


def compared(value: "StepValue", episodes: list[RecordedEpisode]) -> tuple[float, int] | None:
    """Return Spearman's rank correlation with the exact values of all legal actions, and of how many decisions.

    ``None`` if the game isn't solved, or all values are equal.
    """
    exact, learnt = list[float](), list[float]()
    decisions = [one for episode in episodes for one in episode.decisions]
    for one in decisions:
        solver = None if one.request.game is None else find_search_player(one.request.game)
        if solver is None or not solver.exact:
            return None
        exact += solver.values(one.request).values()
        learnt += value.of(one.request, one.request.legal_actions).values()
    if len(set(exact)) < 2 or len(set(learnt)) < 2:
        return None
    return float(spearmanr(np.round(exact, 9), learnt).statistic), len(decisions)
