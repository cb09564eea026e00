"""Links in a training's folder from elsewhere: going on with it writes, removes and reads nothing outside of it."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.common.locking import LOCK_NAME
from agents.msgrpo import ConfigError, MSGRPOTrainer, main
from agents.msgrpo.errors import CheckpointError
from agents.msgrpo.run.reporting import KNOWN
from agents.msgrpo.run.saving import CONFIG, POINTERS, STATE, SUMS, report_divergence
from tests.agents.msgrpo import runs
from tests.links import OUTSIDE, TARGETS, drafts_of, planted, whats_mine

SHORT = replace(
    runs.SHORT, iterations=2, minibatches=2, checkpoint_every=1, keep_checkpoints=1, samples_every=1, out="theirs",
    **runs.ALONE,
)  # fmt: skip
WRITTEN = ("metrics.jsonl", "samples.txt", "diverged-iteration-3.jsonl", KNOWN, LOCK_NAME, "checkpoints", "tensorboard")
PLACE = "checkpoints/iteration-000002"
NAMES = [*WRITTEN, *POINTERS, *(f".{name}.new" for name in POINTERS)]
NAMES += [*(draft for name in ("metrics.jsonl", KNOWN) for draft in drafts_of(name))]
NAMES += [f"checkpoints/iteration-00000{number}" for number in (1, 2, 3)]
NAMES += [f"checkpoints/{draft}" for draft in drafts_of("iteration-000003")]
NAMES += [f"{PLACE}/{name}" for name in (STATE, CONFIG, SUMS, "model.safetensors", "tokenizer.json")]


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def begun(make_trainer):
    make_trainer(replace(SHORT, out="whole")).train()
    return Path("whole")


Maker = Callable[..., MSGRPOTrainer]


def resume(make_trainer: Maker, folder: Path, **settings: Any) -> str:
    """Go on for an iteration, which removes an older checkpoint; the sentence that refuses it, if it does."""
    trainer = make_trainer(replace(SHORT, iterations=3, out=str(folder), **settings))
    try:
        trainer.resume(folder)
        trainer.train()
    except (ConfigError, CheckpointError, OSError) as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore:.*line 1 is damaged and left out")
@pytest.mark.parametrize(
    ("names", "target"),
    [
        (["samples.txt", "checkpoints", f"checkpoints/iteration-000001/{STATE}"], TARGETS[0]),
        *(pytest.param(NAMES, target, marks=pytest.mark.slow) for target in TARGETS),
    ],
)
def test_a_training_goes_on_through_no_link(make_trainer, begun, names, target):
    assert not resume(make_trainer, Path(shutil.copytree(begun, "unharmed", symlinks=True)))
    refused = 0
    for folder, _ in planted(begun, names, (target,)):
        refused += bool(resume(make_trainer, folder))
    assert refused >= len(names) // 2


@pytest.mark.parametrize("name", POINTERS)
def test_a_stranger_chooses_no_other_run_to_go_on_with(make_trainer, begun, name, capsys):
    """A ``last`` that leads into a training of the user's would go on with that one, in its folder."""
    theirs = Path(shutil.copytree(begun, "theirs", symlinks=True))
    before = {path: path.stat().st_mtime_ns for path in sorted(begun.rglob("*"))}
    (theirs / name).unlink()
    (theirs / name).symlink_to((begun / PLACE).absolute())
    for named in (theirs, theirs / name):
        assert main(["--resume", str(named), "--set", "iterations=9", "--quiet"]) == 2
        said = capsys.readouterr().err
        assert re.fullmatch(
            rf"error: can't resume '.*': can't use theirs/{name}: it is a link out of theirs, .*\n", said
        )
    assert {path: path.stat().st_mtime_ns for path in sorted(begun.rglob("*"))} == before


def test_a_new_training_writes_through_no_link(make_trainer):
    Path("empty").mkdir()
    trained = []
    for folder, what in planted(Path("empty"), ["metrics.jsonl", "samples.txt", "checkpoints", "last"], TARGETS[:2]):
        with suppress(ConfigError, OSError):
            make_trainer(replace(SHORT, iterations=1, out=str(folder))).train()
            trained.append(what)
    assert trained == ["last -> diary"]  # a second name of the diary, which a link then replaces


def test_the_batch_of_a_diverged_update_replaces_a_link(workplace):
    mine, name = whats_mine(), "diverged-iteration-3.jsonl"
    for number, (link, make) in enumerate(
        [*((each, os.symlink) for each in (name, *drafts_of(name))), (name, os.link)]
    ):
        out = workplace / f"out{number}"
        out.mkdir()
        make((OUTSIDE / "diary").absolute(), out / link)
        report_divergence(out, 3, SHORT, ValueError("NaN"), [], str)
        assert ((out / name).is_symlink(), (out / name).read_text()) == (False, "")
    assert whats_mine() == mine
