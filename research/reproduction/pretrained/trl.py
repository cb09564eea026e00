"""The baseline of the field: TRL's GRPOTrainer with the package's adapter, as long as a run of MS-GRPO was.

It begins at the same warm start with the same groups, rate, adapter and temperature, and learns from
``steps_per_episode`` steps of every episode (:class:`textbench.integrations.trl.StepRollouts`). It is equal to a run in
the number of its episodes, or in the seconds of the processor.
"""

import json
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.runs import write_atomically
from research.jobs.work import Report

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig
    from research.reproduction.pretrained.settings import Pretrained

SAVE_EVERY = 5  # iterations between checkpoints: what a kill loses at most
STARTS = 10_000  # layouts in the dataset: all that training may draw
_SPENT = "spent.json"
_ENDLESS = 10**6  # iterations: the seconds end the run


def train_by_trl(
    out: Path,
    config: "MSGRPOConfig",
    model: Any,
    tokenizer: Any,
    like: dict[str, Any],
    experiment: "Pretrained",
    arm: str,
    report: Report,
) -> dict[str, Any]:
    """Train until the run has what another one had.

    Args:
        out: the folder of the run, whose last checkpoint is gone on from.
        config: the settings, of which TRL's trainer takes those that it knows.
        model, tokenizer: what it begins from.
        like: the result of the run that it is to equal.
        experiment, arm: whose run it is.
        report: told the share that is done.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # TRL says that a rollout function may change
    from agents.models import card_of
    from agents.msgrpo import prompts_of, save_model
    from agents.msgrpo.learner import prepare_model
    from textbench.integrations.trl import StepRollouts

    prompts = prompts_of(config, card_of(model))
    model = prepare_model(model, tokenizer, config)
    rollouts = StepRollouts(
        prompt_map=prompts,
        steps_per_episode=experiment.steps_per_episode,
        seed=config.seed,
        format_penalty=config.format_penalty,
    )
    iterations, seconds = len(like["history"]), float("inf")
    if experiment.arms[arm].equal == "seconds":  # how many iterations they buy isn't known before
        iterations, seconds = _ENDLESS, like["training_processor_seconds"]
    spent = _Spent(out / _SPENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # TRL's own calls of what transformers has renamed
        trainer = _trainer(out, model, tokenizer, rollouts, config, experiment, arm, iterations)
    trainer.add_callback(_follower(rollouts, spent, iterations, seconds, report))
    last = max(out.glob("checkpoint-*"), key=lambda folder: int(folder.name.partition("-")[2]), default=None)
    spent.go_on(-1 if last is None else int(last.name.partition("-")[2]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    place = out / "last"
    place.mkdir(exist_ok=True)
    save_model(model, tokenizer, prompts, place, model.state_dict())
    return {
        "seconds": spent.seconds,
        "settings": {name: getattr(config, name) for name in ("groups", "group_size", "learning_rate", "seed")},
        "evaluations": [],
        "history": spent.history,
        "training_seconds": spent.seconds,
        "training_processor_seconds": spent.processor,
        "tokens": {},
        "layouts": sorted(spent.layouts),
    }


class _Spent:
    """What a run has spent and seen, kept beside each of its checkpoints."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.history: list[dict[str, Any]] = []
        self.layouts: set[str] = set()
        self.seconds = self.processor = 0.0
        self._since = (time.perf_counter(), time.process_time())

    def go_on(self, step: int) -> None:
        """Take over what was kept with the checkpoint after so many iterations."""
        if step >= 0:
            kept = json.loads(self.file.with_suffix(f".{step}.json").read_text(encoding="utf-8"))
            self.history, self.layouts = kept["history"], set(kept["layouts"])
            self.seconds, self.processor = kept["seconds"], kept["processor"]
        self._since = (time.perf_counter(), time.process_time())

    def count(self) -> None:
        """Add the time since this was last called."""
        now = (time.perf_counter(), time.process_time())
        self.seconds += now[0] - self._since[0]
        self.processor += now[1] - self._since[1]
        self._since = now

    def keep(self, step: int) -> None:
        """Write it, before the checkpoint of that iteration is written."""
        kept = {"history": self.history, "layouts": sorted(self.layouts)}
        kept |= {"seconds": self.seconds, "processor": self.processor}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file.with_suffix(f".{step}.json"), json.dumps(kept))


def _trainer(
    out: Path,
    model: Any,
    tokenizer: Any,
    rollouts: Any,
    config: "MSGRPOConfig",
    experiment: "Pretrained",
    arm: str,
    iterations: int,
) -> Any:
    from datasets import concatenate_datasets
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    from agents.msgrpo.learner import product_dtype
    from textbench.integrations.trl import episode_return, start_dataset

    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    names = experiment.scenarios_of(arm)
    dataset = concatenate_datasets([start_dataset(name, STARTS // len(names)) for name in names])
    samples = config.episodes * experiment.steps_per_episode
    batch = min(experiment.micro_batch, samples)
    arguments = GRPOConfig(
        output_dir=str(out),
        max_steps=iterations,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=samples // batch,
        num_generations=config.group_size * experiment.steps_per_episode,
        max_completion_length=config.max_response_tokens,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant" if iterations == _ENDLESS else config.schedule,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        temperature=config.temperature,
        seed=config.seed,
        logging_steps=1,
        save_strategy="steps",
        save_steps=SAVE_EVERY,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        use_cpu=next(model.parameters()).device.type == "cpu",
        bf16=product_dtype(config) == "bfloat16",
    )
    trainer = GRPOTrainer(
        model,
        args=arguments,
        train_dataset=dataset,
        processing_class=tokenizer,
        rollout_func=rollouts,
        reward_funcs=episode_return,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _follower(rollouts: Any, spent: _Spent, iterations: int, seconds: float, report: Report) -> Any:
    """Keeps what an iteration gave, and ends the run when it has spent what it may."""
    from transformers import TrainerCallback

    from agents.msgrpo import layout_of

    class Follower(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> Any:
            spent.count()
            played = rollouts.episodes
            spent.layouts.update(layout_of(episode) for episode in played)
            parts = [(episode, player) for episode in played for player in episode.returns]
            spent.history.append(
                {
                    "iteration": state.global_step,
                    "success": sum(episode.successes[player] for episode, player in parts) / len(parts),
                    "return": sum(episode.returns[player] for episode, player in parts) / len(parts),
                }
            )
            done = max(state.global_step / iterations, spent.processor / seconds)
            if state.global_step % SAVE_EVERY == 0:
                spent.keep(state.global_step)
            control.should_training_stop = done >= 1
            report(min(1.0, done))
            return control

    return Follower()
