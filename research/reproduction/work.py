"""Doing one job of a reproduction: pretrain a base, train a run, play episodes, run the controls."""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents import Episode, EpisodeTask, LanguageAgentPolicy, Policy, load_agent, rollout
from benchmark import UsageError
from research.jobs import bases
from research.jobs.work import Report, Work, tokens_taken
from research.reproduction.jobs import Job, ReproductionFolder
from research.reproduction.settings import PROTOCOL, Experiment
from textgames import SCENARIOS

AT_ONCE = 256  # how many episodes are played at the same time in an evaluation

WHATEVER_COMES = {"preflight_episodes": 0, "stop_after": 0, "eval_protocol": "default"}
"""Every run of an experiment is trained to its end, also one that learns nothing; evaluations are the paper's."""

KEPT_METRICS = ("iteration", "return", "success", "invalid_rate", "entropy", "grad_norm", "episode_length", "skipped")
"""The metrics of every iteration that a run's result keeps."""


def pretrain_base(job: Job, experiment: Experiment, folder: ReproductionFolder, report: Report) -> dict[str, Any]:
    """Make a base model, or take the one that its settings name."""
    place = folder.model(job.agent)
    source = experiment.bases[job.agent].source
    if source:
        shutil.rmtree(place, ignore_errors=True)  # of a process that was killed before it wrote its result
        shutil.copytree(source_folder(source), place)
        recipe_file = place / "recipe.json"
        about: dict[str, Any] = json.loads(recipe_file.read_text("utf-8")) if recipe_file.exists() else {}
        model, _ = bases.load(place)
    else:
        recipe = experiment.recipe(job.agent)
        made = bases.make(recipe, place, report, "textbench reproduce")
        about = {"seconds": made.seconds, "recipe": recipe.as_data, "losses": list(made.losses)}
        model = made.model
    return {"parameters": model.num_parameters(), "source": source, **about}


def source_folder(source: str) -> Path:
    """Return the folder of a model that has a name (``tiny``, ``smollm2``), or the folder itself."""
    from agents.models import model_folder

    folder = Path(model_folder(source))
    if (folder / "config.json").is_file():
        return folder
    raise UsageError(f"there is no model {source!r}: neither an embedded one nor a folder in Hugging Face format")


def train_run(job: Job, experiment: Experiment, folder: ReproductionFolder, report: Report) -> dict[str, Any]:
    """Train one run from the small base, resuming its own last checkpoint if there is one."""
    settings = experiment.training_settings(job.game, job.arm, job.seed) | {"threads": 1}
    out = folder.result_file(job.name).parent
    return run_training(out, settings, job.game, lambda: bases.load(folder.model("small")), report)


def run_training(
    out: Path, settings: dict[str, Any], game: Any, load: Callable[[], tuple[Any, Any]], report: Report
) -> dict[str, Any]:
    """Train to the end, resuming the last checkpoint in the folder ``out`` if there is one; else that is emptied.

    ``settings`` are fields of MSGRPOConfig, ``game`` is what the trainer is given, ``load`` makes model and tokenizer.
    """
    from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, iteration_of

    class ReportingTrainer(MSGRPOTrainer):
        def iterate(self) -> dict[str, Any]:
            processor = time.process_time()
            metrics = super().iterate()
            metrics["processor_seconds"] = time.process_time() - processor
            report(self.iteration / self.config.iterations)
            return metrics

    going_on = (iteration_of(out, "last") or 0) > 0
    if not going_on:
        shutil.rmtree(out, ignore_errors=True)  # of a process that was stopped before its first iteration was saved
    model, tokenizer = load()
    config = MSGRPOConfig.from_mapping(WHATEVER_COMES | settings | {"out": str(out)})
    trainer = ReportingTrainer(model, tokenizer, game, config, quiet=True)
    if going_on:
        trainer.resume(out)
    earlier = sum(metrics["seconds"] for metrics in trainer.history)  # before this process took over
    started = time.perf_counter()
    history = trainer.train()
    return {
        "seconds": earlier + time.perf_counter() - started,
        "settings": settings | {"out": ""},
        "evaluations": [[done, [result._asdict() for result in results]] for done, results in trainer.evaluations],
        "history": [{name: metrics[name] for name in KEPT_METRICS if name in metrics} for metrics in history],
        "training_seconds": sum(metrics["seconds"] for metrics in history),
        "training_processor_seconds": sum(metrics.get("processor_seconds", 0.0) for metrics in history),
        "tokens": tokens_taken(history, trainer.config.update_passes)._asdict(),
    }


def policy_of(agent: str, experiment: Experiment, folder: ReproductionFolder) -> Policy:
    """Return the player: a reference agent, or the model of a base or a run with the evaluation's decoding."""
    if agent in experiment.reference_agents:
        return load_agent(agent)
    from agents.models import Decoding, TransformersModel, card_of
    from agents.msgrpo import MSGRPOConfig, prompts_of

    model, tokenizer = bases.load(folder.model(agent))
    settings = experiment.msgrpo
    decoding = Decoding(
        temperature=experiment.temperature, max_tokens=int(settings.get("max_response_tokens", Decoding().max_tokens))
    )
    config = MSGRPOConfig.from_mapping(settings)
    reader, prompt_map = TransformersModel(model, tokenizer, name=agent), prompts_of(config, card_of(model))
    return LanguageAgentPolicy(reader, prompt_map, decoding, legal_only=config.legal_only)


def play_agent(job: Job, experiment: Experiment, folder: ReproductionFolder, report: Report) -> dict[str, Any]:
    """Play the fresh episodes of every scenario."""
    policy = policy_of(job.agent, experiment, folder)
    total = len(experiment.scenarios) * experiment.final_episodes
    scenarios: dict[str, Any] = {}
    for name in experiment.scenarios:
        first = SCENARIOS[name].seed(experiment.final_offset)
        tasks = [EpisodeTask.of(name, first + k, protocol=PROTOCOL) for k in range(experiment.final_episodes)]
        episodes = []
        for episode in rollout(policy, tasks, max_concurrency=AT_ONCE):
            episodes.append(episode)
            report((len(scenarios) * experiment.final_episodes + len(episodes)) / total)
        scenarios[name] = {"first_seed": first, **columns_of(episodes)}
    return {"scenarios": scenarios}


def columns_of(episodes: Sequence[Episode]) -> dict[str, list[float]]:
    """Return episodes as columns in the order of their seeds; of the first player, if there are several."""
    ordered = sorted(episodes, key=lambda episode: episode.seed)
    player = next(iter(ordered[0].returns))
    steps = [episode.steps_of(player) for episode in ordered]
    return {
        "returns": [float(episode.returns[player]) for episode in ordered],
        "successes": [int(episode.successes[player]) for episode in ordered],
        "lengths": [len(one) for one in steps],
        "invalid": [sum(not step.valid for step in one) for one in steps],
    }


def control_agent(job: Job, experiment: Experiment, folder: ReproductionFolder, report: Report) -> dict[str, Any]:
    """Return the controls of one agent: a run on the game it was trained on, a base on all games."""
    from research.reproduction.controls import control

    policy = policy_of(job.agent, experiment, folder)
    games = (job.game,) if job.game else experiment.games
    results = []
    for game in games:
        result = control(policy, game, experiment.control_episodes, first_episode=experiment.final_offset)
        results.append(result._asdict())
        report(len(results) / len(games))
    return {"controls": results}


WORK: Mapping[str, Work] = {
    "pretrain": pretrain_base,
    "train": train_run,
    "play": play_agent,
    "control": control_agent,
}
"""By the kind of a job, what does it."""
