"""The adapters that the package ships, from a finished part of the experiment.

The rule is that of all models that ship, fixed before any run: seed 0 with the weights of its last iteration, neither
the best run nor the best iteration, so that a shipped model shows what to expect.
"""

from pathlib import Path

from benchmark.errors import UsageError
from benchmark.reproduce.pretrained.jobs import PretrainedFolder
from benchmark.reproduce.pretrained.settings import Pretrained


def ship(experiment: Pretrained, folder: PretrainedFolder, place: Path) -> list[Path]:
    """Write an adapter for every entry of ``ships`` whose training is done; returns their folders in ``place``.

    Raises:
        UsageError: none of these trainings is done, or a model can't be made smaller as its entry says.
    """
    from agents.adapters.shrinking import shrink

    written = []
    for name, shipped in experiment.ships.items():
        run = f"train/{shipped.arm}/0"
        if not folder.is_done(run):
            continue
        scenarios = experiment.scenarios_of(shipped.arm)
        try:
            made = shrink(
                folder.model_of(run), place / name, rank=shipped.rank, base=experiment.model, scenarios=scenarios
            )
        except ValueError as error:
            raise UsageError(f"ships.{name}: {error}") from error
        (made.folder / "README.md").write_text(_card(experiment, name, made.rank, made.error), encoding="utf-8")
        written.append(made.folder)
    if not written:
        trainings = ", ".join(shipped.arm for shipped in experiment.ships.values()) or "no training"
        raise UsageError(f"{folder.path} has no finished training that ships ({trainings}, seed 0)")
    return written


def _card(experiment: Pretrained, name: str, rank: int, error: float) -> str:
    arm = experiment.ships[name].arm
    scenarios = ", ".join(experiment.scenarios_of(arm))
    return (
        f"# {name}\n\n"
        f"What `{experiment.model}` learnt on {scenarios}: a LoRA adapter of rank {rank} in half precision, in which "
        f"the warm start and MS-GRPO are one. By the norm of the weights' change, {error:.1%} of it is left out.\n\n"
        f"It is the last iteration of seed 0 of `arms.{arm}` of `textbench reproduce --config smollm2`; "
        "docs/reproduction/pretrained.md has what it reaches. It plays by its name and is asked as `textbench.json` "
        "says.\n"
    )
