"""Preferences between single steps: the agent's own answers in one state, ranked by what their actions are worth.

Direct preference optimisation on step-level preferences (Zhai et al., arXiv 2409.09345, who rank by values that a tree
search estimates; here they are exact, or a step value that is learnt from the same play), by TRL's trainer (Rafailov et
al., arXiv 2305.18290).
``sft`` adds the likelihood of the better answers to the loss, as RPO does (Pang et al., arXiv 2404.19733): else it may
fall with that of the worse ones.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import ceil
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from warnings import catch_warnings, simplefilter

from agents import Message, Prompt, SearchPlayer
from benchmark import UsageError
from benchmark.play import AgentTable
from benchmark.score import read_columns
from benchmark.show import Source, preferences
from research.improve.methods.learning import config_of, learnt, own_play, said_as_usage, value_in
from research.improve.methods.predicting import ranker_of
from research.improve.task import ImprovementTask
from textgames import missing_packages

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig

STATE = "dpo"
"""The prefix of the folder of TRL's checkpoints, which lies beside that of the model."""

NO_PAIRS = "no two answers to one prompt are worth differently, so there is nothing to prefer"

BATCH = 16  # pairs of an optimiser step
LOGITS = 2**26  # numbers at a time; TRL keeps them of all tokens of a sequence, in several copies
STEPS_BETWEEN_CHECKPOINTS = 50


Rows = dict[str, list[list[int]]]


class Pair(NamedTuple):
    """Two answers to one prompt, the first worth more."""

    prompt: Prompt
    chosen: str
    rejected: str


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
    rank_by: Literal["exact", "value"] = "exact",
    value: str | None = None,
) -> AgentTable:
    """Train the agent's model on preferences between its own answers.

    Args:
        task: the agent has a local model, and its games are solved or ``rank_by`` is ``value``.
        episodes: training seeds that the agent plays, of each scenario.
        attempts: how often it plays each of them, with other samples; two answers to one prompt are compared.
        temperature: of the agent's answers in this play.
        beta: of DPO: how much it costs to leave the first model.
        sft: the weight of the likelihood of the better answers in the loss; 0 is DPO alone, which may lose the form of
            answers on the way.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest.
        passes: how often the model goes through the pairs.
        rank_by: ``exact`` values, or a learned ``value``.
        value: the folder of a learned value; without it one is learnt from this play.
    """
    check_installed("preferences")
    if rank_by not in ("exact", "value") or (value and rank_by != "value"):
        raise UsageError(f"rank_by is exact, or value with or without value=DIR, got {rank_by!r} and {value!r}")
    ranker = value_in(value) if value else None
    config = config_of(task, episodes, rank=rank, learning_rate=learning_rate, passes=passes)
    player = {**task.agent, "temperature": temperature}
    folders = own_play(task, player, episodes, attempts)
    if rank_by == "value" and ranker is None:
        ranker = ranker_of(task, folders)
    pairs = pairs_of(folders, ranker)
    if not pairs:
        task.say(NO_PAIRS)
        return task.agent
    task.say(f"{len(pairs):,} pairs of answers")
    return preferring(task, config, pairs, beta, sft)


class RankedBy(Source):
    """Recorded decisions whose actions a player values in the place of the game's own solver."""

    def __init__(self, folders: Sequence[Path], ranker: SearchPlayer) -> None:
        super().__init__(read_columns(folders), lenient=True)
        self._ranker = ranker

    def solver(self, scenario: str) -> SearchPlayer:
        return self._ranker


def pairs_of(folders: Sequence[Path], ranker: SearchPlayer | None = None) -> list[Pair]:
    """Return every answer that is worth less than another to the same prompt, beside the best of these.

    They are worth what a ``ranker`` says; without one the game's solver.
    """
    return sorted(map(pair_of, worth_less(folders, ranker)))  # folders have episodes in the order in which they ended


def worth_less(folders: Sequence[Path], ranker: SearchPlayer | None = None) -> list[dict[str, Any]]:
    """Return the lines of these pairs, with their scenarios, seeds and values."""
    source = Source(read_columns(folders), lenient=True) if ranker is None else RankedBy(folders, ranker)
    return [*preferences(source, own=True)]


def pair_of(line: Mapping[str, Any]) -> Pair:
    """Return the prompt and the two answers of a line."""
    prompt = tuple(Message(**one) for one in line["prompt"])
    return Pair(prompt, *(line[name][0]["content"] for name in Pair._fields[1:]))


def check_installed(method: str) -> None:
    """Raise a UsageError for a method that learns from preferences if what trains is missing."""
    if (missing := missing_packages("trl", "datasets", extra="trl")) is not None:
        raise UsageError(f"the method {method} needs {missing}")


def preferring(
    task: ImprovementTask, config: "MSGRPOConfig", pairs: Sequence[Pair], beta: float, sft: float
) -> AgentTable:
    """Train on the pairs, and return the better one of the task's agent and the agent with these weights."""
    with task.meter.spending("training"):
        prefer(config, pairs, beta, sft)
    return learnt(task, task.agent)


def prefer(config: "MSGRPOConfig", pairs: Sequence[Pair], beta: float, sft: float) -> None:
    """Write the folder ``config.out`` of the model that prefers the better answers; resumes its last checkpoint."""
    folder = Path(config.out)
    state = folder.with_name(f"{STATE}-{folder.name}")
    if folder.exists() and not state.exists():
        return
    with said_as_usage(), catch_warnings():
        simplefilter("ignore", FutureWarning)  # TRL asks transformers by names that are being retired
        _train(config, pairs, folder, state, beta, sft)
    rmtree(state)


def _train(config: "MSGRPOConfig", pairs: Sequence[Pair], folder: Path, state: Path, beta: float, sft: float) -> None:
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback, set_seed
    from transformers.trainer_utils import get_last_checkpoint
    from transformers.utils.logging import disable_progress_bar
    from trl import DPOConfig, DPOTrainer

    from agents.models import save_pretrained
    from agents.msgrpo import load, save_model
    from agents.msgrpo.learner import autocast_dtype, prepare_model
    from agents.msgrpo.warmup import prompts_taught

    class OnOurTokens(DPOTrainer):  # type: ignore[misc]
        """TRL's trainer on the tokens that the model meets in play, which its own reading of texts needn't give."""

        def _prepare_dataset(self, dataset: Any, *others: Any, **more: Any) -> Any:
            return dataset

        def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
            save_pretrained(self.accelerator.unwrap_model(self.model), output_dir or self.args.output_dir)

    disable_progress_bar()  # type: ignore[no-untyped-call]
    model, tokenizer = load(config)
    prompt_map = prompts_taught(config, model)
    reference = None if config.lora_rank else deepcopy(model)  # of an adapter it is the model without it
    model = prepare_model(model, tokenizer, config)
    set_seed(config.seed)
    rows = _rows(model, tokenizer, pairs)
    at_once = _at_once(rows, len(tokenizer))
    steps = config.update_passes * ceil(len(pairs) / BATCH)
    settings = DPOConfig(
        output_dir=str(state), beta=beta, learning_rate=config.learning_rate, num_train_epochs=config.update_passes,
        per_device_train_batch_size=at_once, gradient_accumulation_steps=BATCH // at_once,
        lr_scheduler_type="linear", warmup_steps=min(10, steps // 10), seed=config.seed, max_length=None,
        loss_type=["sigmoid", "sft"] if sft else ["sigmoid"], loss_weights=[1.0, sft] if sft else None,
        use_cpu=not torch.cuda.is_available(), bf16=autocast_dtype(config) is not None,
        gradient_checkpointing=config.gradient_checkpointing, save_strategy="steps",
        save_steps=STEPS_BETWEEN_CHECKPOINTS, save_total_limit=1, report_to="none", logging_steps=10**6,
        disable_tqdm=True,
    )  # fmt: skip
    data = Dataset.from_dict(rows)
    trainer = OnOurTokens(model, reference, args=settings, processing_class=tokenizer, train_dataset=data)
    trainer.remove_callback(PrinterCallback)  # standard output is the result's
    state.mkdir(parents=True, exist_ok=True)
    last = get_last_checkpoint(str(state))  # type: ignore[no-untyped-call]
    trainer.train(resume_from_checkpoint=last)
    trained = trainer.accelerator.unwrap_model(trainer.model)
    if "ref" in getattr(trained, "peft_config", {}):
        trained.delete_adapter("ref")
    folder.mkdir(exist_ok=True)
    save_model(trained.eval(), tokenizer, prompt_map, folder, trained.state_dict())


def _rows(model: Any, tokenizer: Any, pairs: Sequence[Pair]) -> Rows:
    """Return the tokens of all pairs, a column for each part."""
    from agents.models import TransformersModel

    reader = TransformersModel(model, tokenizer)
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]

    def said(response: str) -> list[int]:
        return [*tokenizer(response, add_special_tokens=False)["input_ids"], *end]

    return {
        "prompt_ids": [list(ids) for ids in reader.encode([pair.prompt for pair in pairs])],
        "chosen_ids": [said(pair.chosen) for pair in pairs],
        "rejected_ids": [said(pair.rejected) for pair in pairs],
    }


def _at_once(rows: Rows, words: int) -> int:
    """Return how many pairs are computed at a time, so that their logits fit: a divisor of :data:`BATCH`."""
    longest = max(len(prompt) + max(map(len, answers)) for prompt, *answers in zip(*rows.values(), strict=True))
    fitting = [count for count in range(1, BATCH + 1) if BATCH % count == 0 and 2 * count * longest * words <= LOGITS]
    return max(fitting, default=1)
