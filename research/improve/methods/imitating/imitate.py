"""Imitation of a cheap expert: it plays training seeds, and the model learns what it does there.

The first stage of SCOUT (arXiv 2601.21754). It is what ``textbench warmup`` does, as an improvement with a budget.
"""

from shlex import quote

from agents import check_spec, models_inside
from benchmark import UsageError
from benchmark.play import AgentTable
from benchmark.show import EVALUATED
from research.improve.methods import learning
from research.improve.methods.learning import config_of, learnt, said_as_usage
from research.improve.task import ImprovementTask


def improve(
    task: ImprovementTask,
    *,
    teacher: str = "planner",
    examples: int = 2000,
    explore: float = 0.5,
    rank: int = 16,
    learning_rate: float | None = None,
    passes: int = 1,
) -> AgentTable:
    """Train the agent's model on a teacher's decisions.

    Args:
        task: the agent has a local model.
        teacher: who is imitated: planner, greedy, random or a player of your own, whose answers cost nothing.
        examples: decisions to learn from.
        explore: share of moves that the random player takes, after which the teacher still says what it would do.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
        passes: how often the model goes through the decisions.
    """
    from agents.msgrpo.warmup import Teaching, untaught_seeds, warm_start

    task.meter.check()
    try:
        if not models_inside(teacher):
            check_spec(teacher)
    except ValueError as error:
        raise UsageError(f"the teacher: {error}") from None
    if models_inside(teacher):
        raise UsageError(
            f"the teacher {teacher!r} is a language model, whose answers would be on no record: play it, textbench run "
            f"--agent {quote(teacher)} --seed-offset {EVALUATED}, and learn from that: textbench improve offline --set "
            "learn_from=DIR"
        )
    config = config_of(task, examples, rank=rank, learning_rate=learning_rate, passes=passes)
    with said_as_usage():
        made = warm_start(config, Teaching((teacher,), examples, explore), task.say)
    return learnt(task, task.agent, made["seconds"], seeds=untaught_seeds(task.seed, learning.COMPARED))
