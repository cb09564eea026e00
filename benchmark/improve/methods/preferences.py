"""Preferences between single steps: the agent's own answers in one state, ranked by what their actions are worth.

Direct preference optimisation on step-level preferences (Zhai et al., arXiv 2409.09345, who rank by values that a tree
search estimates; here they are exact where the game is solved).
"""

from collections.abc import Sequence
from pathlib import Path

from agents.turn import Message
from benchmark.improve.improver import ImprovementTask
from benchmark.improve.methods.dpo import Pair, check_installed, prefer
from benchmark.improve.methods.learning import config_of, learnt, own_play
from benchmark.play.agents.objects import AgentTable
from benchmark.score.results import read_columns
from benchmark.show.training_data import Source, preferences


def improve(
    task: ImprovementTask,
    *,
    episodes: int = 200,
    attempts: int = 8,
    temperature: float = 1.0,
    beta: float = 0.1,
    sft: float = 1.0,
    rank: int = 16,
    learning_rate: float = 2e-4,
    passes: int = 4,
) -> AgentTable:
    """Train the agent's model on preferences between its own answers.

    Args:
        task: the agent has a local model, and its games tell what actions are worth.
        episodes: training seeds that the agent plays, of each scenario.
        attempts: how often it plays each of them, with other samples; two answers to one prompt are compared.
        temperature: of the agent's answers in this play.
        beta: of DPO: how much it costs to leave the first model.
        sft: the weight of the likelihood of the better answers in the loss; 0 is DPO alone, which may lose the form of
            answers on the way.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest.
        passes: how often the model goes through the pairs.
    """
    check_installed("preferences")
    config = config_of(task, episodes, rank=rank, learning_rate=learning_rate, passes=passes)
    player = {**task.agent, "temperature": temperature}
    pairs = pairs_of(own_play(task, player, episodes, attempts))
    if not pairs:
        task.say("no two answers to one prompt are worth differently, so there is nothing to prefer")
        return task.agent
    task.say(f"{len(pairs):,} pairs of answers")
    with task.meter.timed("training"):
        prefer(config, pairs, beta, sft)
    return learnt(task, task.agent, task.meter.seconds_of("training"))


def pairs_of(folders: Sequence[Path]) -> list[Pair]:
    """Every answer that is worth less than another to the same prompt, beside the best of these."""
    lines = preferences(Source(read_columns(folders), lenient=True), own=True)
    return sorted(  # folders have episodes in the order in which they ended
        Pair(tuple(Message(**one) for one in line["prompt"]), *(line[name][0]["content"] for name in Pair._fields[1:]))
        for line in lines
    )
