"""Letting a method spend a budget of tokens, and counting what it spent: the same meter for all.

Tokens that the learner reads and writes to learn count: of the episodes that it plays, and of the rows that it is
updated on, each pass counted (of a preference both answers), and of gepa's writer. What a planner answers, exact values
and forward passes that only score don't. :mod:`research.credit.training` counts MS-GRPO so.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from agents import Prompt
from agents.msgrpo.warmup import TooFewDecisionsError
from benchmark import UsageError
from research.improve.agents import write_agent_folder
from research.improve.budget import Budget, SpendingMeter
from research.improve.improvers import checked, find_improver
from research.improve.methods.imitating import HELD_OUT, imitated, recorded
from research.improve.methods.learning import MODEL, mode_of, own_play
from research.improve.methods.preferences import pairs_of
from research.improve.study.settings import TRAINER, UNTRAINED, Comparison, Learner
from research.improve.task import ImprovementTask

Row = tuple[Prompt, str]
"""A prompt and an answer to it that a model is updated on."""


class Learning(NamedTuple):
    """What a method spent, in tokens; the agent's folder is written."""

    played: int  # of its own play
    updated: int  # of the rows of its updates, each pass counted
    passes: int = 1
    rows: int = 0  # of one pass; 0 if each row is new, as in MS-GRPO


class Costs(NamedTuple):
    """What the base's play costs on a game, in tokens: what budgets are planned with."""

    decision: float
    episode: float


def learn(name: str, study: Comparison, task: ImprovementTask, budget: int, rate: float, costs: Costs) -> Learning:
    """Let a method spend a budget, and write ``task.out/agent.toml``.

    A method misses it by what it can't divide: an iteration of MS-GRPO, or a pass over what it learns from; it spends
    less after ``most_passes`` or as many rounds as gepa is given.
    """
    if name == TRAINER:
        return _train(study, task, budget, rate)
    learner = study.methods[name]
    if name in UNTRAINED:  # whose every token is play or a question on record
        meter = SpendingMeter(Budget(tokens=budget), task.out / "seconds.json")
        made = find_improver(name)(replace(task, meter=meter), **checked(name, learner.options))
        write_agent_folder(task.out, made)
        return Learning(meter.spent.tokens, 0)
    options = {**learner.options, "learning_rate": rate}
    if name == "preferences":
        options["temperature"] = study.temperature  # of its play, which is then found by its name
    if name == "imitate":
        return _imitate(task, options, budget, costs)
    return _own_play(name, learner, task, options, budget, costs)


def _train(study: Comparison, task: ImprovementTask, budget: int, rate: float) -> Learning:
    from agents.models import card_of
    from agents.msgrpo import MSGRPOConfig, prompts_of, save_model
    from research.credit.training import train
    from research.jobs.bases import load

    model, tokenizer = load(Path(str(task.agent["spec"]).removeprefix("hf:")))
    prompts = card_of(model)
    settings = study.training_settings(task.seed, rate)
    (game,) = task.scenarios
    scenario = study.scenario(game)
    trained, record = train(model, tokenizer, scenario, settings, budget, 1, lambda *_: 0.0, lambda share: None)
    place = task.out / MODEL
    place.mkdir(parents=True)
    prompt_map = prompts_of(MSGRPOConfig.from_mapping(settings), prompts)
    save_model(trained, tokenizer, prompt_map, place, trained.state_dict())
    write_agent_folder(task.out, {**task.agent, "spec": f"hf:{MODEL}"})
    return Learning(record.rollout_tokens, record.update_tokens)


def _imitate(task: ImprovementTask, options: dict[str, Any], budget: int, costs: Costs) -> Learning:
    """Imitate as many decisions as the budget pays for, or all that short episodes have, more often."""
    passes, few = int(options.get("passes", 1)), 0
    while True:
        examples = max(1, round(budget / passes / costs.decision))
        try:
            _improve("imitate", task, {**options, "examples": examples, "passes": passes})
            break
        except UsageError as error:
            if few or not isinstance(error.__cause__, TooFewDecisionsError):
                raise
            few = error.__cause__.found
            passes = ceil(budget / few / costs.decision)
    told = json.loads((task.out / MODEL / "warmup.json").read_text(encoding="utf-8"))
    return Learning(0, round(passes * examples * (told["tokens_alone"] + 1)), passes, examples)


def _own_play(
    name: str, learner: Learner, task: ImprovementTask, options: dict[str, Any], budget: int, costs: Costs
) -> Learning:
    """Play for a share of the budget, and go through what is learnt from as often as the rest allows."""
    all_options = checked(name, options)
    attempts = int(all_options["attempts"])
    episodes = max(1, round(learner.play_share * budget / attempts / costs.episode))
    folders = own_play(task, task.agent, episodes, attempts)
    played = task.meter.spent.tokens
    rows = _rows(name, folders, task, all_options)
    tokens = count_tokens(rows, Path(str(task.agent["spec"]).removeprefix("hf:")))
    passes = min(learner.most_passes, max(1, (budget - played) // tokens)) if tokens else 1
    _improve(name, task, {**options, "episodes": episodes, "passes": passes})
    return Learning(played, passes * tokens, passes, len(rows))


def _rows(name: str, folders: Sequence[Path], task: ImprovementTask, options: dict[str, Any]) -> list[Row]:
    """Return what one pass of a method goes through, by the same rules as the method's own."""
    if name == "preferences":
        pairs = pairs_of(folders)
        return [(pair.prompt, answer) for pair in pairs for answer in (pair.chosen, pair.rejected)]
    from research.improve.agents import prompt_map_of

    prompts = prompt_map_of(task.agent)
    episodes = recorded(folders, task.scenarios, mode_of(task))
    kept = [
        one.episode
        for one in imitated(episodes, options["method"], options["top"], options["beta"])
        if one.episode.seed % HELD_OUT
    ]
    return [(prompts(each.request), each.response) for episode in kept for each in episode.decisions]


def count_tokens(rows: Sequence[Row], model: Path) -> int:
    """Return the tokens of rows as a model reads them, each answer with the end of a sequence."""
    from agents.models import TransformersModel
    from research.jobs.bases import load

    if not rows:
        return 0
    loaded, tokenizer = load(model)
    prompts = TransformersModel(loaded, tokenizer).encode([prompt for prompt, _ in rows])
    answers = tokenizer([answer for _, answer in rows], add_special_tokens=False)["input_ids"]
    end = tokenizer.eos_token_id is not None
    return sum(len(prompt) + len(answer) + end for prompt, answer in zip(prompts, answers, strict=True))


def _improve(name: str, task: ImprovementTask, options: dict[str, Any]) -> None:
    """Run an improver on a meter of its own, which finds what is played already and pays it once more.

    What it has trained is measured, also if the improver would keep what there was, as it plays no better.
    """
    meter = SpendingMeter(task.meter.budget, task.out / "seconds.json")
    made = find_improver(name)(replace(task, meter=meter), **checked(name, options))
    trained = {"spec": f"hf:{MODEL}"} if (task.out / MODEL).is_dir() else {}
    write_agent_folder(task.out, {**made, **trained})


def task_of(agent: dict[str, Any], game: str, seed: int, out: Path, say: Callable[[str], None]) -> ImprovementTask:
    """Return a task whose folder is new, without a limit: how much is spent is planned beforehand."""
    out.mkdir(parents=True)
    meter = SpendingMeter(Budget(), out / "seconds.json")
    return ImprovementTask(agent, (game,), meter, seed, out, say, quiet=True)
