"""Doing one job of the experiment, in whatever process: a warm start, a training, the fresh episodes of one player."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents import Episode, EpisodeTask, Policy, Prompt, PromptMap, TurnRequest, rollout
from research.jobs.work import Report, Work
from research.reproduction.pretrained.jobs import RUN, PretrainedFolder, PretrainedJob, model_needs
from research.reproduction.pretrained.settings import MODEL, Player, Pretrained, seen
from research.reproduction.work import columns_of, run_training
from textgames import SCENARIOS

HELD_OUT = 100  # decisions that the loss of a warm start is measured on

TO_THE_END = {"eval_protocol": "random", "min_valid_share": 0.0}
"""Evaluations are by the protocol of the fresh episodes, and no run is stopped for invalid responses: a model that
answers nothing is a result, too."""

_SHOWN_SEED = 7_777  # of the layouts of the decisions that stand in a prompt, among the training seeds


def warm_start(job: PretrainedJob, experiment: Pretrained, folder: PretrainedFolder, report: Report) -> dict[str, Any]:
    """Imitate the teachers, and leave a model that plays and can be trained on."""
    from agents.models import card_of
    from agents.msgrpo import layout_digest, prompts_of, save_model
    from agents.msgrpo.warmup import demonstrate, imitate

    start, place = experiment.starts[job.about], folder.path / job.name
    checkpoint = place / "warmup.checkpoint"
    examples = start.examples
    config = experiment.imitation_config(job.about, job.seed)
    model, tokenizer = load(experiment.model, config)
    size = sum(each.numel() for each in model.parameters())
    prompts = prompts_of(config, card_of(model))
    noting: Any = _Noting(prompts)  # all that is asked of a prompt map here is its mode and a call
    games: Any = [seen(name, start.view) if start.view else name for name in start.scenarios]
    about: dict[str, Any] = {"explore": start.explore, "seed": config.seed}
    decisions = demonstrate(games, start.teachers, examples, noting, **about)
    held_out = demonstrate(games, start.teachers, min(HELD_OUT, examples), prompts, **about, part=1)
    learnt = imitate(
        model,
        tokenizer,
        decisions,
        config,
        held_out=held_out,
        on_progress=lambda progress: report(progress.step / progress.steps),
        checkpoint=checkpoint,
    )
    to = folder.model_of(job.name)
    to.mkdir(exist_ok=True)
    save_model(learnt.model, tokenizer, prompts, to, learnt.model.state_dict())
    checkpoint.unlink(missing_ok=True)
    return {
        "seconds": learnt.seconds,
        "processor_seconds": learnt.cpu_seconds,
        "base_parameters": size,
        "trained_parameters": sum(each.numel() for each in learnt.model.parameters() if each.requires_grad),
        "examples": examples,
        "losses": list(learnt.losses),
        "held_out": [learnt.held_out_before, learnt.held_out],
        "tokens": round(learnt.tokens_alone * config.update_passes * examples),
        "tokens_computed": round(learnt.tokens_computed * config.update_passes * examples),
        "layouts": sorted({layout_digest(observation) for observation in noting.observations}),
    }


class _Noting:
    """A prompt map that keeps every observation that it puts into a prompt."""

    def __init__(self, prompts: PromptMap) -> None:
        self.prompts, self.mode = prompts, prompts.mode
        self.observations: list[str] = []

    def __call__(self, request: TurnRequest) -> Prompt:
        self.observations.append(request.observation)
        return self.prompts(request)


def load(source: str, config: Any) -> tuple[Any, Any]:
    """Return the model to be trained, and its tokenizer."""
    from agents.models import load_model

    return load_model(source, dtype=config.param_dtype, device=config.device)


def train(job: PretrainedJob, experiment: Pretrained, folder: PretrainedFolder, report: Report) -> dict[str, Any]:
    """Train one run of an arm, from its last checkpoint if it has one."""
    from agents.msgrpo import MSGRPOConfig, load_state
    from research.reproduction.pretrained.trl import train_by_trl

    arm = experiment.arms[job.about]
    settings = experiment.training_settings(job.about, job.seed)
    config = MSGRPOConfig.from_mapping(settings)
    needs = model_needs(experiment, arm.start, job.seed)
    source = str(folder.model_of(needs[0])) if needs else experiment.model
    out = folder.path / job.name / RUN
    if arm.trainer == "trl":
        (like,) = model_needs(experiment, arm.like, job.seed)
        result = train_by_trl(out, config, *load(source, config), folder.result(like), experiment, job.about, report)
    else:
        game = experiment.game_of(job.about)
        result = run_training(out, TO_THE_END | settings, game, lambda: load(source, config), report)
        result["layouts"] = load_state((out / "last").resolve())["seen_layouts"]
    began = needs[0] if needs else ""
    earlier = folder.result(began)["layouts"] if began else []
    return {**result, "began": began, "layouts": sorted({*earlier, *result["layouts"]})}


def play(job: PretrainedJob, experiment: Pretrained, folder: PretrainedFolder, report: Report) -> dict[str, Any]:
    """Play the fresh episodes of one scenario, and tell for each whether training had drawn its layout."""
    from agents.msgrpo import layout_of

    player = experiment.everyone[job.about]
    first = SCENARIOS[job.scenario].seed(experiment.first_episode)
    count = player.episodes or experiment.episodes
    shown = seen(job.scenario, player.view)
    tasks = [EpisodeTask.of(shown, first + k, protocol=player.protocol) for k in range(count)]
    policy = policy_of(player, job, experiment, folder)
    processor = time.process_time()
    episodes: list[Episode] = []
    for episode in rollout(policy, tasks, max_concurrency=experiment.at_once):
        episodes.append(episode)
        report(len(episodes) / count)
    drawn = set(folder.result(job.needs[0])["layouts"]) if job.needs else set()
    ordered = sorted(episodes, key=lambda episode: episode.seed)
    return {
        "first_seed": first,
        "play_processor_seconds": time.process_time() - processor,
        **columns_of(ordered),
        "unseen": [int(layout_of(episode) not in drawn) for episode in ordered],
        "tokens": {
            name: sum(len(getattr(step.turn, f"{name}_ids") or ()) for one in ordered for step in one.steps)
            for name in ("prompt", "response")
        },
    }


def policy_of(player: Player, job: PretrainedJob, experiment: Pretrained, folder: PretrainedFolder) -> Policy:
    """Return the player with its options: a model of this experiment, the pretrained one, or any agent."""
    from agents import load_agent
    from agents.models import find_model

    source = experiment.model if player.agent == MODEL else player.agent
    source = str(folder.model_of(job.needs[0])) if job.needs else source
    spec = f"hf:{source}" if Path(source).is_dir() else source
    options: dict[str, Any] = {}
    if find_model(spec) is not None:
        options = {name: getattr(experiment, name) for name in ("temperature", "dtype", "max_tokens")}
        if player.agent == MODEL:
            options["mode"] = experiment.mode
        if player.shown:
            options["system"] = examples_for(job.scenario, player.shown, options | dict(player.options))
    return load_agent(spec, **{**options, **player.options})


def examples_for(scenario: str, count: int, options: dict[str, Any]) -> str:
    """Return a system message with decisions of the planner, each with what it saw and the whole answer."""
    from agents.msgrpo.warmup import demonstrate

    noting: Any = _Noting(PromptMap(options.get("mode", "direct")))
    decisions = demonstrate([scenario], ["planner"], count, noting, seed=_SHOWN_SEED)
    texts = [
        f"Example {number}:\n{observation}\nA good answer:\n{decision.response}"
        for number, (observation, decision) in enumerate(zip(noting.observations, decisions, strict=False), 1)
    ]
    return "\n\n".join(texts)


WORK: Mapping[str, Work] = {"start": warm_start, "train": train, "play": play}
"""By the kind of a job, what does it."""
