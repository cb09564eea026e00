"""What the improvers share that train a local model's weights: its settings, and the agent that comes of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import PromptMap, SearchPlayer, options_taken, questions, wrapped_in
from agents.models import find_model
from benchmark import BenchmarkError, UsageError
from benchmark.play import AgentTable
from research.improve.around.choosing import learned_value
from research.improve.budget import BudgetSpentError, Spent
from research.improve.task import ImprovementTask
from textgames import TRAINING_SEEDS

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig

MODEL = "model"
"""The folder of the weights in the task's."""

LAST = "last"
"""The checkpoint of a training's last iteration, in its folder."""

COMPARED = 100
"""How many training seeds an agent plays before and after, from which nothing is learnt."""


def mode_of(task: ImprovementTask) -> str:
    """Return the response mode that the agent's model plays in; a UsageError if its weights can't be trained here."""
    from agents.models import model_folder, read_card

    with said_as_usage():
        card = read_card(model_folder(_local(task)))
    return str(task.agent.get("mode") or (card.mode if card else PromptMap.mode))


def check_weights(task: ImprovementTask) -> None:
    """Raise a UsageError before anything takes time if the agent's weights aren't on this machine."""
    from agents.models import model_folder

    for spec in questions(str(task.agent["spec"]), task.agent):
        found = find_model(spec)
        if found is not None and found[0].folder is not None:
            with said_as_usage():
                model_folder(spec)


def config_of(
    task: ImprovementTask,
    decisions: int,
    *,
    rank: int,
    learning_rate: float | None,
    passes: int,
    minibatches: int | None = None,
) -> "MSGRPOConfig":
    """Return the settings with which an agent's model learns so many decisions, as ``textbench warmup`` has them.

    There are ``minibatches`` optimiser steps in a pass; as many as fit the decisions when not given.
    """
    from agents.msgrpo.warmup import warmup_config

    spec = _local(task)
    settings: dict[str, Any] = {
        "response_mode": mode_of(task),
        "lora_rank": rank,
        "learning_rate": learning_rate,
        "update_passes": passes,
        "minibatches": minibatches,
        "seed": task.seed,
        "out": str(task.out / MODEL),
        "prompt_file": task.agent.get("prompts") or "",
        "legal_only": bool(task.agent.get("legal_only")),
        "max_response_tokens": task.agent.get("max_tokens"),
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    with said_as_usage():
        return warmup_config(spec.removeprefix("hf:"), task.scenarios, decisions, **settings)


def teach(task: ImprovementTask, config: "MSGRPOConfig", source: Any, demonstrations: Any, **how: Any) -> None:
    """Have a config's model imitate demonstrations, as :func:`agents.msgrpo.warmup.taught` does, and charge that."""
    from agents.msgrpo.warmup import taught

    with said_as_usage():
        made = taught(config, source, demonstrations, task.say, **how)
    task.meter.charge(Spent(seconds=made["seconds"]))


def reinforce(config: "MSGRPOConfig", iterations: int, learning_rate: float, **settings: Any) -> str:
    """Train a config's model by MS-GRPO in ``config.out``, and return its last checkpoint, below the task's folder.

    ``settings`` count more than those of :func:`config_of`, of which the mode, the prompts and the adapter stay. The
    same call resumes it, and does nothing if it is done.
    """
    from agents.msgrpo import MSGRPOTrainer, load

    out, usual = Path(config.out), {"minibatches": 1, "update_passes": 1, "eval_every": 0, "samples_every": 0}
    with said_as_usage():
        config = replace(config, iterations=iterations, learning_rate=learning_rate, warmup=0, **(usual | settings))
        trainer = MSGRPOTrainer(*load(config), config=config, quiet=True)
        if (out / LAST).exists():
            trainer.resume(out)
        trainer.train()
    return f"{out.name}/{LAST}"


def own_play(
    task: ImprovementTask, agent: AgentTable, episodes: int, attempts: int, *, needed: bool = True
) -> list[Path]:
    """Return run folders of own play on training seeds, as many of ``attempts`` as the budget reaches for."""
    folders: list[Path] = []
    try:
        for attempt in range(1, attempts + 1):
            play = task.play(agent, task.seeds(episodes), f"own-{attempt}", resample=attempt)
            task.say(f"attempt {attempt} of {attempts}: mean return {play.mean:.3f} on {episodes} training seeds")
            folders.append(play.folder)
    except BudgetSpentError as spent:
        if needed and not folders:
            raise UsageError(
                f"{spent}, before {episodes} episodes were played, which is what it learns from: the same command with "
                "a larger budget goes on; episodes=N asks for fewer"
            ) from None
        task.say(str(spent))
    return folders


def value_in(folder: str) -> SearchPlayer:
    """Return the player that values actions by a folder's learned value; a UsageError if it holds none."""
    with said_as_usage():
        return learned_value(folder)[0]


def trained(task: ImprovementTask, folder: str) -> AgentTable:
    """Return the agent with the weights of a folder, which knows its mode and its prompts."""
    taken = options_taken(f"hf:{folder}")[0].keys() - {"mode", "prompts", "adapter", "revision"}
    return {"spec": f"hf:{folder}", **{option: value for option, value in task.agent.items() if option in taken}}


def learnt(
    task: ImprovementTask,
    before: AgentTable,
    folder: str = MODEL,
    *,
    seeds: Sequence[int] | None = None,
) -> AgentTable:
    """Return the better one of the agent ``before`` and with the trained weights.

    They are compared on fresh seeds if the budget is spent, too: training continues until it is, so the outcome would
    never be known, and both are models of this machine, whose play costs no money.
    """
    with task.meter.without_limits():
        better = plays_better(task, before, trained(task, str(task.out / folder)), seeds)
    return trained(task, folder) if better else before


def compared_seeds(task: ImprovementTask) -> list[int]:
    """Return the training seeds on which an agent plays before and after."""
    return task.seeds(COMPARED, after=len(TRAINING_SEEDS) - COMPARED)


def plays_better(
    task: ImprovementTask, before: AgentTable, after: AgentTable, seeds: Sequence[int] | None = None
) -> bool:
    """Return whether an agent does better on seeds that it wasn't trained on; not if the budget is spent before."""
    try:
        first, second = task.both(before, after, compared_seeds(task) if seeds is None else seeds)
    except BudgetSpentError as spent:
        task.say(f"{spent}, so that nobody knows whether it plays better, and the agent stays as it was")
        return False
    if task.is_better(second, first):
        return True
    task.say(f"it plays no better, so the agent stays as it was; what was made is in {task.out}")
    return False


@contextmanager
def said_as_usage() -> Iterator[None]:
    """Raise what the trainer refuses as the errors of a command."""
    from agents.msgrpo import ConfigError, DivergenceError, UnusableModelError

    try:
        yield
    except (ConfigError, UnusableModelError, ModuleNotFoundError, ValueError) as error:
        raise UsageError(" ".join(str(error).split())) from error
    except DivergenceError as error:
        raise BenchmarkError(str(error)) from error


def _local(task: ImprovementTask) -> str:
    """Return the spec of the agent's model; a UsageError if its weights can't be trained here."""
    spec = str(task.agent["spec"])
    found = None if wrapped_in(spec) else find_model(spec)
    if found is None or found[0].folder is None or task.agent.get("adapter"):
        raise UsageError(
            f"the weights of {spec!r} can't be trained here: name a model of this machine without an adapter option, "
            "such as tiny, smollm2 or hf:PATH"
        )
    from agents.msgrpo import check_packages

    try:
        check_packages(spec, adapter=True)
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from error
    return spec
