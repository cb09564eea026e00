"""A bit that flips in a checkpoint is noticed by the resume, in whichever file it is."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agents.common.locking import FolderLock
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.saving import (
    STATE,
    SUMS,
    check_sums,
    checkpoint_folder,
    find_checkpoint,
    load_state,
    point,
    remove_old,
    save_checkpoint,
)
from tests.agents.msgrpo import runs
from tests.faults import every_kill

SHORT = replace(runs.SHORT, iterations=1, checkpoint_every=1, **runs.ALONE)


@pytest.mark.parametrize("rank", [0, 2], ids=["weights", "adapter"])
def test_a_flipped_bit_is_noticed_in_every_file(make_trainer, tmp_path, rank):
    config = replace(SHORT, out=str(tmp_path / "out"), lora_rank=rank)
    make_trainer(config).train()
    folder = (tmp_path / "out/last").resolve()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    assert {STATE, "adapter_model.safetensors" if rank else "model.safetensors"} <= {file.name for file in files}
    trainer = make_trainer(replace(config, iterations=2), resume=folder)
    for file in files:
        sound = file.read_bytes()
        for place in {0, len(sound) // 2}:
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
            with pytest.raises(
                ConfigError, match=f"'{file.name}' was changed or damaged after the checkpoint was"
            ) as e:
                trainer.resume(folder)
            assert f"rm {folder / SUMS}" in str(e.value)
        file.unlink()
        if file.name != STATE:  # without which it is no checkpoint
            with pytest.raises(ConfigError, match=f"'{file.name}' was removed after"):
                trainer.resume(folder)
        file.write_bytes(sound)
    trainer.resume(folder)
    (folder / "notes.txt").write_text("a file of mine is no damage")
    trainer.resume(folder)
    told = subprocess.run(["sha256sum", "-c", SUMS], cwd=folder, capture_output=True, text=True)
    assert (told.returncode, told.stdout.count(": OK")) == (0, len(files))


def test_checksums_that_are_damaged_are_a_sentence_and_older_versions_have_none(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path / "out"))
    trainer = make_trainer(config)
    trainer.train()
    sums = tmp_path / "out/last" / SUMS
    for text in ("\x00\xff", "no such line", f"{'0' * 64}  ../../../etc/passwd", f"{'0' * 64}  /dev/zero"):
        sums.write_bytes(text.encode("latin-1"))
        with pytest.raises(ConfigError, match=r"was removed after the checkpoint was written; resume from another"):
            trainer.resume(tmp_path / "out")
    sums.unlink()
    trainer = make_trainer(replace(config, iterations=2), resume=tmp_path / "out")
    assert len(trainer.train()) == 2


def test_a_checkpoint_that_was_moved_aside_when_its_process_was_killed_is_put_back(make_trainer, tmp_path):
    """As on a file system that can't exchange two folders; a draft of a process that still trains is left alone."""
    config = replace(SHORT, out=str(tmp_path / "out"))
    make_trainer(config).train()
    place = (tmp_path / "out/last").resolve()
    place.rename(place.with_name(f".{place.name}.{'a' * 16}.old"))
    draft = place.with_name(f".iteration-000002.{'b' * 16}.draft")
    draft.mkdir()
    with FolderLock(tmp_path / "out"):
        assert place.is_dir()  # the lock put it back, and cleared the draft away
        draft.mkdir()
        assert find_checkpoint(tmp_path / "out") == place
        assert draft.is_dir()
    place.rename(place.with_name(f".{place.name}.{'a' * 16}.old"))
    trainer = make_trainer(replace(config, iterations=2), resume=tmp_path / "out")
    assert len(trainer.train()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_a_kill_at_any_call_leaves_last_at_a_whole_checkpoint(tmp_path, monkeypatch, exchanges):
    """While a checkpoint that is there is written anew, ``last`` is set to it and the one before is removed."""
    if not exchanges:
        monkeypatch.setattr("agents.common.files._exchanged", lambda first, second: False)
    out, begun = tmp_path / "out", tmp_path / "begun"

    def save(out: Path, iteration: int, content: bytes) -> None:
        folder = checkpoint_folder(out, iteration)
        save_checkpoint(folder, SHORT, {"iteration": iteration}, lambda place: file_in(place, content))
        point(out, "last", folder)
        remove_old(out, 1)

    def file_in(folder: Path, content: bytes) -> None:
        (folder / "weights").write_bytes(content)

    save(begun, 2, b"old")
    save_checkpoint(checkpoint_folder(begun, 1), SHORT, {"iteration": 1}, lambda place: file_in(place, b"older"))
    found = set()
    shutil.copytree(begun, out, symlinks=True)
    for _ in every_kill(out, lambda: save(out, 2, b"new")):
        checkpoint = find_checkpoint(out)
        assert load_state(checkpoint) == {"iteration": 2}
        found.add((checkpoint / "weights").read_bytes())
        FolderLock(out).release()
        assert {path.name for path in (out / "checkpoints").iterdir()} <= {"iteration-000001", "iteration-000002"}
        for each in (out / "checkpoints").iterdir():
            check_sums(each)
        shutil.rmtree(out)
        shutil.copytree(begun, out, symlinks=True)
    assert found == {b"old", b"new"}
