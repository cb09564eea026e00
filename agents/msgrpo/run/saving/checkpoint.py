"""Checkpoints: a folder in Hugging Face format that an agent plays at once, plus what training needs to go on.

A checkpoint is written beside its place, flushed to disk and renamed, so one that has its name is whole. ``last`` and
``best`` are symbolic links into ``checkpoints/`` and are replaced the same way. ``SHA256SUMS`` in a checkpoint is of
the form that ``sha256sum -c`` reads. A save makes it and a resume compares every file with it, which takes one to
three seconds for a gigabyte each.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import torch

from agents.common.files import check_folder, refusal, remove_folder, replacing, replacing_folder, sync
from agents.common.locking import FolderLock
from agents.common.tensors import load_tensors
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.rows import TrainingRow

STATE, CONFIG, SUMS = "trainer_state.pt", "msgrpo.toml", "SHA256SUMS"
POINTERS = ("last", "best")
_NAME = re.compile(r"iteration-(\d{6,})")


def save_checkpoint(
    folder: Path, config: MSGRPOConfig, state: Mapping[str, Any], save_model: Callable[[Path], None]
) -> None:
    """Write a checkpoint; one that is there is replaced.

    ``state`` holds tensors and plain values only, so that it can be loaded without running code.

    Raises:
        OSError: the disk is full, or can't be written.
    """
    with replacing_folder(folder) as draft:
        save_model(draft)
        (draft / CONFIG).write_text(config.to_toml(), encoding="utf-8")
        # through a file of Python's: torch's own says of a full disk "unexpected pos", and nothing of the reason
        with (draft / STATE).open("wb") as file:
            torch.save(dict(state), file)
        lines = [f"{_sum(file)}  {file.relative_to(draft).as_posix()}\n" for file in _files_in(draft)]
        (draft / SUMS).write_text("".join(lines), encoding="utf-8")


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def check_sums(folder: Path) -> None:
    """Compare every file of a checkpoint with its checksum; checkpoints of older versions have none.

    Raises:
        ConfigError: a file is missing or has changed.
    """
    if not (folder / SUMS).exists():
        return
    there = {file.relative_to(folder).as_posix(): file for file in _files_in(folder)}
    for line in (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        if name not in there or _sum(there[name]) != digest:
            what = "changed or damaged" if name in there else "removed"
            raise ConfigError(
                f"{folder}: {name!r} was {what} after the checkpoint was written; resume from another checkpoint, or "
                f"from this one as it is: rm {shlex.quote(str(folder / SUMS))}"
            )


def checkpoint_folder(out: Path, iteration: int) -> Path:
    """The folder of the checkpoint that is made after so many iterations."""
    return out / "checkpoints" / f"iteration-{iteration:06d}"


def point(out: Path, name: str, folder: Path) -> None:
    """Make ``out/name`` a link to a checkpoint, in one step."""
    link = out / f".{name}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.relative_to(out), target_is_directory=True)
    link.replace(out / name)
    sync(out)


def iterations_in(checkpoint: Path) -> int:
    """The iterations done in a checkpoint, by its name; -1 for a folder of another name."""
    found = _NAME.fullmatch(checkpoint.resolve().name)
    return int(found[1]) if found else -1


def iteration_of(out: Path, name: str) -> int | None:
    """The iterations done in the checkpoint that ``out/name`` points to; ``None`` where there is none."""
    return iterations_in(out / name) if (out / name / STATE).is_file() else None


def remove_old(out: Path, keep: int) -> None:
    """Remove all but the ``keep`` newest checkpoints and those that ``last`` and ``best`` point to."""
    checkpoints = sorted(path for path in (out / "checkpoints").iterdir() if _NAME.fullmatch(path.name))
    pointed = {(out / name).resolve() for name in POINTERS}
    for folder in checkpoints[:-keep]:
        if folder.resolve() not in pointed:
            remove_folder(folder)


def find_checkpoint(path: str | Path) -> Path:
    """Find the checkpoint that ``--resume PATH`` means: a checkpoint itself, or the last one of a run's folder.

    Raises:
        ConfigError: there is none, or a link leads out of the folder.
    """
    folder = Path(path).expanduser()
    run = folder.parent if folder.name in POINTERS and folder.is_symlink() else folder
    try:
        check_folder(run)
        if (run / "last").is_symlink() and not (run / "last").exists():
            FolderLock(run, ConfigError).release()  # which puts back what a killed process had moved aside
        for candidate in (folder, folder / "last"):
            if (candidate / STATE).is_file():
                check_folder(run_folder(candidate.resolve()) or candidate)
                return candidate.resolve()
    except OSError as error:
        raise ConfigError(f"can't resume {str(path)!r}: {refusal(error)}") from None
    raise ConfigError(
        f"nothing to resume in {str(path)!r}: accepted is a run's folder (with last/) or a checkpoint (with {STATE})"
    )


def load_state(folder: Path) -> dict[str, Any]:
    """Read the training state of a checkpoint, all of whose files are as they were written.

    Raises:
        ConfigError: the file can't be read as one, or :func:`check_sums`.
    """
    check_sums(folder)
    try:
        state: dict[str, Any] = load_tensors(folder / STATE)
    except ValueError as error:
        raise ConfigError(f"can't read the training state {str(folder / STATE)!r}: {error}") from error
    return state


def check_same_prompts(folder: Path, state: Mapping[str, Any], prompts: Any) -> None:
    """A run goes on with the prompts that it was begun with; ``prompts`` are those that aren't the config's.

    Raises:
        ConfigError: it was trained with others.
    """
    if state.get("own_prompts") != prompts:
        raise ConfigError(
            f"{folder} was trained with other prompts: resume it from Python with the same "
            "MSGRPOTrainer(prompt_map=...) that began it"
        )


def report_divergence(
    out: Path | None,
    iteration: int,
    config: MSGRPOConfig,
    reason: str,
    rows: Sequence[TrainingRow],
    decode: Callable[[Sequence[int]], str],
) -> str:
    """Keep the batch of an update that diverged in ``out``, and say what to do."""
    kept = "the batch was not kept, as out is empty"
    if out is not None:
        kept = f"the batch is in {keep_batch(out, iteration, rows, decode)}"
    return (
        f"iteration {iteration}: {reason}; the step was not applied and {kept}. Lower learning_rate (now "
        f"{config.learning_rate:g}), set minibatches and update_passes to 1, lower max_grad_norm, or set param_dtype "
        "to float32"
    )


def keep_batch(out: Path, iteration: int, rows: Sequence[TrainingRow], decode: Callable[[Sequence[int]], str]) -> Path:
    """Write the rows of an update that diverged to ``out``, a line each, to be looked into; returns the file."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"diverged-iteration-{iteration}.jsonl"
    with replacing(path) as file:
        for row in rows:
            record = row._asdict() | {"tokens": row.tokens._asdict(), "response": decode(list(row.tokens.response))}
            file.write(json.dumps(record) + "\n")
    return path


def run_folder(checkpoint: Path) -> Path | None:
    """The folder of the run that a checkpoint belongs to; ``None`` for one that was copied out of its run."""
    inside = checkpoint.parent.name == "checkpoints" and iterations_in(checkpoint) >= 0
    return checkpoint.parent.parent if inside else None
