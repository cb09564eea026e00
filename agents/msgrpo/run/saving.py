"""The folder of a run on disk, and how it is resumed.

A checkpoint is a folder in Hugging Face format that an agent plays at once, plus what training needs to be resumed. It
is written beside its place, flushed to disk and renamed, so that one with its name is whole; ``last`` and ``best``,
symbolic links into ``checkpoints/``, are replaced the same way. ``SHA256SUMS`` is of the form that ``sha256sum -c``
reads; a resume compares every file with it.

A resumed training has its settings from a file in its folder, which a stranger may have written. :func:`check_claims`
refuses what only the user can allow: code, servers, money, downloads, files, trackers.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agents.claims import (
    Claim,
    approve,
    claim_of_fetching,
    claims_of_player,
    claims_refusal,
    content_digest,
    is_harmless,
    is_own_prompts,
    open_claims,
)
from agents.common.files import check_folder, refusal, remove_folder, replacing, replacing_folder, sync
from agents.common.locking import FolderLock
from agents.common.tensors import load_tensors
from agents.common.toml import read_value
from agents.models.local.loading.adapters import save_pretrained
from agents.models.local.loading.card import write_card, write_chat_template
from agents.msgrpo.configuration.config import MSGRPOConfig, training_config_schema
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import CheckpointError, ConfigError, DeadRunError, TrainingDivergedError, refused
from agents.msgrpo.learner.distributed import Processes
from agents.prompt import PromptMap
from agents.wrappers import innermost

# ---------------------------------------------------------------- checkpoints

STATE, CONFIG, SUMS = "trainer_state.pt", "msgrpo.toml", "SHA256SUMS"
POINTERS = ("last", "best")
_NAME = re.compile(r"iteration-(\d{6,})")


def save_checkpoint(
    folder: Path, config: MSGRPOConfig, state: Mapping[str, Any], save_model: Callable[[Path], None]
) -> None:
    """Write a checkpoint, in place of one that is there; ``state`` holds tensors and plain values only."""
    with replacing_folder(folder) as draft:
        save_model(draft)
        (draft / CONFIG).write_text(config.to_toml(), encoding="utf-8")
        # through a file of Python's: torch's own says of a full disk "unexpected pos", and nothing of the reason
        with (draft / STATE).open("wb") as file:
            torch.save(dict(state), file)
        lines = [f"{digest}  {name}\n" for name, digest in sums_of(draft).items()]
        (draft / SUMS).write_text("".join(lines), encoding="utf-8")


def sums_of(folder: Path) -> dict[str, str]:
    """Return the checksum of every file of a checkpoint."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS):
        with path.open("rb") as stream:
            found[path.relative_to(folder).as_posix()] = file_digest(stream, "sha256").hexdigest()
    return found


def check_sums(folder: Path) -> None:
    """Compare every file of a checkpoint with its checksum; checkpoints of older versions have none."""
    if not (folder / SUMS).exists():
        return
    there = sums_of(folder)
    for line in (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        if there.get(name) != digest:
            what = "changed or damaged" if name in there else "removed"
            raise ConfigError(
                f"{folder}: {name!r} was {what} after the checkpoint was written; resume from another checkpoint, or "
                f"from this one as it is: rm {shlex.quote(str(folder / SUMS))}"
            )


def checkpoint_folder(out: Path, iteration: int) -> Path:
    """Return the folder of the checkpoint after so many iterations."""
    return out / "checkpoints" / f"iteration-{iteration:06d}"


def point(out: Path, name: str, folder: Path) -> None:
    """Make ``out/name`` a link to a checkpoint, in one step."""
    link = out / f".{name}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.relative_to(out), target_is_directory=True)
    link.replace(out / name)
    sync(out)


def iterations_in(checkpoint: Path) -> int:
    """Return the iterations done in a checkpoint, by its name; -1 for a folder of another name."""
    found = _NAME.fullmatch(checkpoint.resolve().name)
    return int(found[1]) if found else -1


def iteration_of(out: Path, name: str) -> int | None:
    """Return the iterations done in the checkpoint that ``out/name`` points to; ``None`` if there is none."""
    return iterations_in(out / name) if (out / name / STATE).is_file() else None


def remove_old(out: Path, keep: int) -> None:
    """Remove all but the ``keep`` newest checkpoints and those that ``last`` and ``best`` point to."""
    checkpoints = sorted(path for path in (out / "checkpoints").iterdir() if _NAME.fullmatch(path.name))
    pointed = {(out / name).resolve() for name in POINTERS}
    for folder in checkpoints[:-keep]:
        if folder.resolve() not in pointed:
            remove_folder(folder)


def find_checkpoint(path: str | Path) -> Path:
    """Find the checkpoint that ``--resume PATH`` means: a checkpoint itself, or the last one of a run's folder."""
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
    """Read the training state of a checkpoint, all of whose files are as they were written."""
    check_sums(folder)
    with refused(f"can't read the training state {str(folder / STATE)!r}"):
        state: dict[str, Any] = load_tensors(folder / STATE)
    return state


def report_divergence(
    out: Path | None,
    iteration: int,
    config: MSGRPOConfig,
    reason: Exception,
    rows: Sequence[TokenRow],
    decode: Callable[[Sequence[int]], str],
) -> str:
    """Keep the rows of an update that diverged in ``out``, a line each, and return what happened and what to do."""
    kept = "the batch was not kept, as out is empty"
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"diverged-iteration-{iteration}.jsonl"
        kept = f"the batch is in {path}"
        with replacing(path) as file:
            for row in rows:
                own = row._asdict()
                tokens = {name: own.pop(name) for name in ("prompt", "response", "allowed")}
                file.write(json.dumps({"tokens": tokens, **own, "response": decode(list(row.response))}) + "\n")
    return (
        f"iteration {iteration}: {reason}; the step was not applied and {kept}. Lower learning_rate (now "
        f"{config.learning_rate:g}), set minibatches and update_passes to 1, lower max_grad_norm, or set param_dtype "
        "to float32"
    )


def run_folder(checkpoint: Path) -> Path | None:
    """Return the folder of the run that a checkpoint belongs to; ``None`` for one that was copied out of its run."""
    inside = checkpoint.parent.name == "checkpoints" and iterations_in(checkpoint) >= 0
    return checkpoint.parent.parent if inside else None


# ---------------------------------------------------------------- the last valid state

CHANGED_IN_PLACE = ("optimizer", "methods", "critic", "reference", "torch_rng")
"""The parts of the training state that are changed in place; the others are made anew whenever they are asked for."""
STAGE, _STAGE_BYTES = "stage", 2**26
"""The buffer that a GPU's tensors are copied through."""


class RunState(NamedTuple):
    """The contents of a checkpoint: the state that continues a run, and the model's weights by name."""

    iteration: int
    training: dict[str, Any]
    weights: Mapping[str, Tensor]


class LastValid:
    """Holds the state that a run is saved in if it ends early: that of whole iterations, before anything went wrong.

    Between iterations that is the state as it is. Within an update, and once a run has diverged or collapsed, it is a
    copy from before the update, made if ``copies``. ``capture`` returns the run's state as it is, ``methods`` what the
    methods have learnt, which an iteration changes from its beginning on. Frozen weights aren't copied.
    """

    def __init__(
        self, capture: Callable[[], RunState], methods: Callable[[], dict[str, Any]], model: nn.Module, *, copies: bool
    ) -> None:
        self._capture, self._methods, self._copies = capture, methods, copies
        self._frozen = {_place(each): each.detach() for each in model.parameters() if not each.requires_grad}
        self._learnt_before: dict[str, Any] | None = None  # by the methods, before the iteration that is under way
        self._copy: RunState | None = None
        self._buffers: dict[Any, Tensor] = {}
        self._updating = False

    def begin_iteration(self) -> None:
        self._learnt_before = _copied(self._methods(), {}, {})

    def begin_update(self, *, sound: bool) -> None:
        """Copy the state before the weights change; ``sound``: what they have just played shows nothing wrong."""
        if self._copies and (sound or self._copy is None):
            self._copy = None  # its buffers are written over
            now, known = self._as_before(), dict(self._frozen)
            changed = {name: now.training[name] for name in CHANGED_IN_PLACE} | {"weights": now.weights}
            copied = _copied(changed, known, self._buffers)
            weights = copied.pop("weights")
            self._copy = RunState(now.iteration, now.training | copied, weights)
        self._updating = True

    def end_iteration(self) -> None:
        self._learnt_before, self._updating = None, False

    def state(self, *, spoiled: bool) -> RunState | None:
        """Return the state to save, ``None`` if memory holds no valid one; ``spoiled``: the weights are worthless."""
        return self._copy if spoiled or self._updating else self._as_before()

    def _as_before(self) -> RunState:
        """Return the state as it is, but for what the methods have learnt in the iteration that is under way."""
        now = self._capture()
        if self._learnt_before is None:
            return now
        return now._replace(training=now.training | {"methods": self._learnt_before})


def _copied(value: Any, known: dict[Any, Tensor], buffers: dict[Any, Tensor], path: tuple[Any, ...] = ()) -> Any:
    """Return the same value with its tensors in the computer's memory, but for those that are known by their place.

    A tensor is written into the buffer of its path: two copies at a time would be twice the state.
    """
    if isinstance(value, Mapping):
        return {name: _copied(item, known, buffers, (*path, name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_copied(item, known, buffers, (*path, i)) for i, item in enumerate(value))
    if not isinstance(value, Tensor):
        return value
    if (place := _place(value)) not in known:
        buffer = buffers.get(path)
        if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
            buffer = buffers[path] = torch.empty(value.shape, dtype=value.dtype)
        if value.is_cuda:
            if STAGE not in buffers:
                buffers[STAGE] = torch.empty(_STAGE_BYTES, dtype=torch.uint8, pin_memory=True)
            copy_staged(buffer, value.detach(), buffers[STAGE])
        else:
            buffer.copy_(value.detach())
        known[place] = buffer
    return known[place]


def copy_staged(target: Tensor, source: Tensor, stage: Tensor) -> None:
    """Copy a GPU's tensor through ``stage``, pinned bytes: PyTorch rounds pinned targets up to powers of two."""
    room = stage.view(target.dtype)
    pairs = zip(*(torch.split(each.reshape(-1), len(room)) for each in (target, source)), strict=True)
    for into, part in pairs:
        into.copy_(room[: len(part)].copy_(part))


def _place(tensor: Tensor) -> tuple[torch.device, int, torch.Size]:
    return tensor.device, tensor.data_ptr(), tensor.shape


# ---------------------------------------------------------------- the keeper


class Keeper:
    """Writes the checkpoints of one run; nothing without a folder ``out``.

    ``save_model(folder, weights)`` writes what an agent plays. ``by_command``: the command line can make the run again.
    The next checkpoint is that of the best evaluation if ``best_so_far``.
    """

    def __init__(
        self,
        out: Path | None,
        config: MSGRPOConfig,
        save_model: Callable[[Path, Mapping[str, Tensor]], None],
        processes: Processes,
        last_valid: LastValid,
        *,
        by_command: bool,
    ) -> None:
        self.out, self.config, self.processes, self.last_valid = out, config, processes, last_valid
        self.best_so_far = False
        self._save_model, self._by_command = save_model, by_command
        self._written: set[int] = set()  # iterations whose checkpoints are those of this run as it is

    def resumed(self, folder: Path, best_first: Sequence[int] = ()) -> None:
        """Begin from this checkpoint. Later ones are of another course that the run took, and may be replaced.

        ``best`` becomes the first that is left of ``best_first``, the iterations evaluated up to there, if it is later.
        """
        if self.out is None or run_folder(folder) != self.out.resolve():
            return
        done = iterations_in(folder)
        self._written = {done}
        best = iteration_of(self.out, "best")
        if best is not None and best > done and self.processes.rank == 0:
            places = [checkpoint_folder(self.out, iteration) for iteration in (*best_first, done)]
            point(self.out, "best", next(place for place in places if place.is_dir()))

    def write(self, state: RunState, *, spoiled: bool = False) -> Path | None:
        """Write a checkpoint in the first process, unless it is there; ``spoiled``: what came after it is worthless."""
        if self.out is None or self.processes.rank > 0:
            return None
        out, folder = self.out, checkpoint_folder(self.out, state.iteration)
        try:
            if state.iteration not in self._written:
                save_checkpoint(folder, self.config, state.training, lambda at: self._save_model(at, state.weights))
                self._written.add(state.iteration)
            point(out, "last", folder)
            best = iteration_of(out, "best")
            unknown = not self.config.eval_every and not spoiled  # without evaluations the last one is played
            if best is None or self.best_so_far or unknown or (spoiled and best > state.iteration):
                point(out, "best", folder)
            self.best_so_far = False
            remove_old(out, self.config.keep_checkpoints)
        except OSError as error:
            raise CheckpointError(f"the checkpoint {folder} can't be written: {refusal(error)}") from error
        return folder

    def rescue(self, error: BaseException) -> str:
        """Save the last valid state before a run ends early; return whether it is and how to continue.

        If weights are sharded, all processes have to do this together. They do after Ctrl-C; an error may have come to
        one of them alone, and such a run returns to its last checkpoint.
        """
        if self.out is None:
            return "Nothing was saved, as out is empty"
        problem = ""
        spoiled = isinstance(error, TrainingDivergedError) or (isinstance(error, DeadRunError) and error.spoiled)
        if not isinstance(error, CheckpointError) and (
            isinstance(error, KeyboardInterrupt) or not self.processes.sharded
        ):
            state = self.last_valid.state(spoiled=spoiled)
            try:
                if state is not None:
                    self.write(state, spoiled=spoiled)
            except CheckpointError as full:
                problem = f"And {full}. "
        last = iteration_of(self.out, "last")
        if last is None:
            return f"{problem}Nothing was saved, and there is no earlier checkpoint"
        if isinstance(error, ConfigError):
            return f"{problem}The state after iteration {last} is saved"
        # a run that is resumed as it was does the same again, to the last bit
        rate = error.rate if isinstance(error, TrainingDivergedError) else "learning_rate"
        changes = f" --set {rate}={getattr(self.config, rate) / 10:g}" if spoiled else ""
        how = f"make the trainer again as it was made, then trainer.resume({str(self.out)!r})"
        if self._by_command and self.config.model and self.config.scenarios:
            how = f"python -m agents.msgrpo --resume {shlex.quote(str(self.out))}{changes}"
        return f"{problem}The state after iteration {last} is saved; to go on: {how}"


def save_model(
    model: nn.Module, tokenizer: Any, prompt_map: PromptMap, folder: Path, weights: Mapping[str, Tensor]
) -> None:
    """Write a model with these weights as an agent plays it, with the prompts that it was trained with."""
    save_pretrained(model, folder, state_dict=dict(weights))
    tokenizer.save_pretrained(folder)
    write_card(folder, modes=[prompt_map.mode], texts=prompt_map.texts)
    write_chat_template(folder, tokenizer)


# ---------------------------------------------------------------- claims

MADE_HERE = ("", "tiny-quick", "tiny-legal")
"""Models that are made and not fetched."""
LOCAL_TRACKERS = ("tensorboard",)
"""Trackers that write into the training's folder; others send their metrics away, with the user's key."""


def claims_of(config: MSGRPOConfig, folder: Path | None = None) -> list[Claim]:
    """Return all claims of a config, in ``folder`` if it is from there."""
    holds = {name: about.get("holds", "") for name, about in training_config_schema()["properties"].items()}
    named = [
        (holds[name], one)
        for name, value in vars(config).items()
        if holds[name] != "data"
        for text in _texts(value)
        for one in innermost(text)
    ]
    spent = f" (in {config.iterations:,} iterations of {config.episodes:,} episodes, and in evaluations)"
    claims = [claim for _, one in named for claim in claims_of_player(one, spent, folder)]
    claims += [_claim(one, "the code") for held, one in named if held != "player" and ":" in one and "://" not in one]
    for source in (config.model, config.tokenizer):
        claims += () if source in MADE_HERE else claim_of_fetching(source)
    if config.prompt_file and not is_own_prompts(config.prompt_file, folder):
        claims.append(_claim(config.prompt_file, "the prompts"))
    claims += [_claim(name, "the tracker") for name in config.trackers if name not in LOCAL_TRACKERS]
    claims += [_claim(f"engine_options.{name}={value}") for name, value in config.engine_options.items()]
    claims += [
        _claim(f"around_options.{name}={value}")
        for name, value in config.around_options.items()
        if not is_harmless(name, value, folder)
    ]
    return list(dict.fromkeys(claims))


def asked_for(config: MSGRPOConfig) -> str:
    """Return a digest of all that a config asks for, wherever its folder lies."""
    return content_digest({**vars(config), "out": ""})


def _claim(value: str, what: str = "") -> Claim:
    return Claim("--allow", value, f"{what} {value}".lstrip())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def said_by(overrides: Iterable[str]) -> list[str]:
    """Return the texts that ``--set KEY=VALUE`` names: all of it, its value, and the texts in that."""
    said = []
    for override in overrides:
        name, _, text = override.partition("=")
        said += [override, text.strip(), name.strip(), *_texts(read_value(text.strip()))]
    return said


def check_claims(
    checkpoint: str,
    folder: Path,
    saved: MSGRPOConfig,
    config: MSGRPOConfig,
    named: MSGRPOConfig | None,
    allowed: Iterable[str],
) -> None:
    """Refuse to resume a run's folder, with the settings ``saved``, that names what its user hasn't.

    ``checkpoint`` is what ``--resume`` says, and ``config`` has the settings to resume it with. Those of a file that
    the command line names (``named``) are the user's own, and so is what ``--allow`` allows.
    """
    own = [] if named is None else claims_of(named)
    claims = claims_of(config, folder)
    if missing := open_claims(folder, claims, [*own, *map(_claim, allowed)], asked_for(saved)):
        command = f"python -m agents.msgrpo --resume {shlex.quote(checkpoint)}"
        raise ConfigError(claims_refusal(folder, missing, command))
    approve(folder, claims, asked_for(config))
