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
    """Train until the run has what ``like``, another one's result, has; resumes the last checkpoint in ``out``."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # TRL says that a rollout function may change
    from datasets import concatenate_datasets
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from agents.models import card_of
    from agents.msgrpo import layout_of, prompts_of, save_model
    from agents.msgrpo.learner import prepare_model, product_dtype
    from textbench.integrations.trl import StepRollouts, episode_return, start_dataset

    prompts = prompts_of(config, card_of(model))
    model = prepare_model(model, tokenizer, config)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    rollouts = StepRollouts(
        prompt_map=prompts,
        steps_per_episode=experiment.steps_per_episode,
        seed=config.seed,
        format_penalty=config.format_penalty,
    )
    by_seconds = experiment.arms[arm].equal == "seconds"  # how many iterations they buy isn't known before
    iterations = _ENDLESS if by_seconds else len(like["history"])
    seconds = like["training_processor_seconds"] if by_seconds else float("inf")
    last = max(out.glob("checkpoint-*"), key=_step_of, default=None)
    spent: dict[str, Any] = {"history": [], "layouts": [], "seconds": 0.0, "processor": 0.0}
    if last is not None:
        spent = json.loads((out / f"spent.{_step_of(last)}.json").read_text(encoding="utf-8"))
    since = time.perf_counter(), time.process_time()

    class Follower(TrainerCallback):
        """Keeps what iterations gave and took, and ends the run when it has spent what it may."""

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> Any:
            nonlocal since
            now = time.perf_counter(), time.process_time()
            for name, then, at in zip(("seconds", "processor"), since, now, strict=True):
                spent[name] += at - then
            since = now
            parts = [(episode, player) for episode in rollouts.episodes for player in episode.returns]
            spent["layouts"] = sorted({*spent["layouts"], *map(layout_of, rollouts.episodes)})
            success, returned = (
                sum(getattr(episode, told)[player] for episode, player in parts) / len(parts)
                for told in ("successes", "returns")
            )
            spent["history"].append({"iteration": state.global_step, "success": success, "return": returned})
            if state.global_step % SAVE_EVERY == 0:  # before its checkpoint is
                out.mkdir(parents=True, exist_ok=True)
                write_atomically(out / f"spent.{state.global_step}.json", json.dumps(spent))
            done = max(state.global_step / iterations, spent["processor"] / seconds)
            control.should_training_stop = done >= 1
            report(min(1.0, done))
            return control

    names = experiment.scenarios_of(arm)
    samples = config.episodes * experiment.steps_per_episode
    batch = min(experiment.micro_batch, samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # TRL's own calls of what transformers has renamed
        arguments = GRPOConfig(
            output_dir=str(out), max_steps=iterations, per_device_train_batch_size=batch,
            gradient_accumulation_steps=samples // batch,
            num_generations=config.group_size * experiment.steps_per_episode,
            max_completion_length=config.max_response_tokens, learning_rate=config.learning_rate,
            lr_scheduler_type="constant" if by_seconds else config.schedule, weight_decay=config.weight_decay,
            max_grad_norm=config.max_grad_norm, temperature=config.temperature, seed=config.seed, logging_steps=1,
            save_strategy="steps", save_steps=SAVE_EVERY, save_total_limit=2, report_to="none", disable_tqdm=True,
            use_cpu=next(model.parameters()).device.type == "cpu", bf16=product_dtype(config) == "bfloat16",
        )  # fmt: skip
        trainer = GRPOTrainer(
            model,
            args=arguments,
            train_dataset=concatenate_datasets([start_dataset(name, STARTS // len(names)) for name in names]),
            processing_class=tokenizer,
            rollout_func=rollouts,
            reward_funcs=episode_return,
            callbacks=[Follower()],
        )
        trainer.remove_callback(PrinterCallback)
        since = time.perf_counter(), time.process_time()
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    place = out / "last"
    place.mkdir(exist_ok=True)
    save_model(model, tokenizer, prompts, place, model.state_dict())
    return {
        "seconds": spent["seconds"],
        "settings": {name: getattr(config, name) for name in ("groups", "group_size", "learning_rate", "seed")},
        "evaluations": [],
        "history": spent["history"],
        "training_seconds": spent["seconds"],
        "training_processor_seconds": spent["processor"],
        "tokens": {},
        "layouts": spent["layouts"],
    }


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.partition("-")[2])
