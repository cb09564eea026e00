"""The arithmetic of recipe_cost.py beside the comments of configs/ and beside the memory of a small training."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from agents import EpisodeTask
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, prompts_of, prompts_of_random_play

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "research/perf"))

from gpu_checks.machine import Memory  # noqa: E402
from gpu_checks.models import SMALL, random_model, word_tokenizer  # noqa: E402
from gpu_checks.recipes import Watched, load_of  # noqa: E402
from recipe_cost import Shape, checkpoint_disk, figures, host_memory, peaks  # noqa: E402
from training import resident  # noqa: E402

SHAPE = Shape(layers=4, hidden=512, intermediate=2048, heads=8, kv_heads=2, vocabulary=8192)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("qwen*.toml")), ids=lambda path: path.stem)
def test_a_recipes_comment_has_its_figures(path: Path) -> None:
    """research/perf/recipe_cost.py prints them."""
    text = path.read_text()
    lines = figures(path, "rtx4090" if "rtx4090: " in text else "h100")
    assert "".join(f"#   {line}\n" for line in lines) in text
    assert not any("more than" in line for line in lines)


@pytest.mark.parametrize(
    "lora_rank", [pytest.param(0, marks=pytest.mark.slow), pytest.param(64, marks=pytest.mark.nightly)]
)
def test_a_small_training_takes_what_is_computed(
    lora_rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")  # what is freed goes back to the system at once
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        found = process.submit(measure, lora_rank, str(tmp_path)).result()
    print({name: [round(x / 2**20, 1) for x in pair] for name, pair in found.items()})
    for name, (measured, computed) in found.items():
        # activations are a formula for transformers' layers; the rest is exact but for pages and names
        assert measured == pytest.approx(computed, rel=0.25 if name == "update" else 0.05), name


def measure(lora_rank: int, out: str) -> dict[str, tuple[float, float]]:
    """In a process of its own: return bytes that were measured and that are computed."""
    torch.set_num_threads(1)
    config = MSGRPOConfig(
        scenarios=("frozen-lake",), groups=1, group_size=2, episodes_drawn=2, max_response_tokens=4, dtype="float32",
        device="cpu", invalid_action="random", lora_rank=lora_rank, lora_targets=("all-linear",) if lora_rank else
        MSGRPOConfig().lora_targets, gradient_checkpointing=True, micro_batch_tokens=512, tree_tokens=512, out=out,
    )  # fmt: skip
    tasks = [EpisodeTask.of("frozen-lake", seed) for seed in range(2)]
    tokenizer = word_tokenizer([next(prompts_of_random_play(task, prompts_of(config)))[1] for task in tasks])
    small = random_model(SMALL, torch.float32, torch.device("cpu"))
    MSGRPOTrainer(small, tokenizer, config=replace(config, out=f"{out}/small"), quiet=True).iterate()  # imports
    memory = Memory(torch.device("cpu"))
    model = random_model(SHAPE, torch.float32, torch.device("cpu"))
    trainer = MSGRPOTrainer(model, tokenizer, config=config, quiet=True)
    watched = Watched(trainer, memory, torch.device("cpu"))
    assert not watched.iterate()["skipped"]
    assert all(weight.grad is None for weight in model.parameters())  # the rollout has their memory
    held = resident("VmRSS")
    memory.reset()
    trainer.last_valid.begin_iteration()
    trainer.last_valid.begin_update(sound=True)  # the first copy of the optimiser's moments
    grown, most = resident("VmRSS") - held, resident("VmHWM") - held
    kept = trainer.last_valid.state(spoiled=True)
    assert kept is not None
    frozen = {each.data_ptr() for each in model.parameters() if not each.requires_grad}
    copied = {each.data_ptr(): each.nbytes for each in tensors([kept.training, dict(kept.weights)])}
    copied = {place: size for place, size in copied.items() if place not in frozen}
    trainer.last_valid.end_iteration()
    memory.reset()
    before = resident("VmRSS")
    folder = trainer.save()
    written = resident("VmHWM") - before
    assert folder is not None
    disk = sum(file.stat().st_size for file in folder.rglob("*.*"))
    host, load = host_memory(SHAPE, config), load_of(config, watched.mean_prompt)
    return {
        "disk": (disk, checkpoint_disk(SHAPE, config)),
        "rollback: held": (sum(copied.values()), host),
        "rollback: the moments": (grown, host * 2 / 3),
        "rollback: its peak": (most, host * 2 / 3),
        "writing adds nothing": (written + host, host),
        "update": (watched.update_peak["resident"], peaks(SHAPE, config, load)["update"]),
    }


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [each for part in parts for each in tensors(part)]
