import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from agents.common import files
from agents.common.files import (
    check_folder,
    check_writable,
    draft_of,
    member,
    open_for_appending,
    remove_folder,
    replacing,
    replacing_folder,
    restore,
)
from agents.common.locking import FolderLock
from tests.faults import every_kill


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "manifest.json"
    file.write_text("old")
    with suppress(KeyboardInterrupt), replacing(file) as stream:
        stream.write("half of the n")
        raise KeyboardInterrupt
    assert file.read_text() == "old"
    with replacing(file) as stream:
        stream.write("new")
    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_pipe_is_refused_and_a_link_replaced_itself(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a device or a pipe; accepted: a file"), replacing(pipe):
        pass
    link.symlink_to(pipe)
    with replacing(link) as stream:
        stream.write("new")
    assert (pipe.is_fifo(), link.is_symlink(), link.read_text()) == (True, False, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_full_disk_behind_a_library_s_error_is_told_as_such(tmp_path):
    def torch_does_it(folder):
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise RuntimeError("unexpected pos 576 vs 534")  # noqa: B904

    def safetensors_does_it(folder):
        raise ValueError("Error while serializing: I/O error: No space left on device (os error 28)")

    for write in (torch_does_it, safetensors_does_it):
        with pytest.raises(OSError, match="No space left on device"), replacing_folder(tmp_path / "model") as draft:
            write(draft)
        with pytest.raises(OSError, match="No space left on device"), replacing(tmp_path / "file") as stream:
            write(stream)
    with pytest.raises(RuntimeError, match="a bug"), replacing_folder(tmp_path / "model"):
        raise RuntimeError("a bug")
    assert not list(tmp_path.iterdir())
    for _ in range(2):  # a new folder, and one that takes its place
        with replacing_folder(tmp_path / "model") as draft:
            (draft / "weights").write_bytes(b"whole")
        assert contents(tmp_path) == {"model/weights": b"whole"}


def test_what_can_be_written_is_found_out_without_leaving_anything(tmp_path):
    check_writable(tmp_path / "new" / "folder")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(OSError):
            check_writable(place)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


OLD = {f"{name}/{part}": b"old" for name in "ab" for part in "12"}
NEW = {"a/1": b"new", "a/3": b"new", "c": b"new"}


def filled(folder, content):
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_a_kill_at_any_call_leaves_the_old_folder_or_the_new_one(tmp_path, monkeypatch, exchanges):
    place = tmp_path / "checkpoints"
    if not exchanges:
        monkeypatch.setattr(files, "_exchanged", lambda first, second: False)  # as on a file system that can't
    elif not files._exchanged(Path(mkdtemp(dir=tmp_path)), Path(mkdtemp(dir=tmp_path))):
        pytest.skip("this file system exchanges no folders")
    filled(place / "model", OLD)

    def write_new():
        with replacing_folder(place / "model") as draft:
            filled(draft, NEW)

    found = []
    for _ in every_kill(place, write_new):
        if not exchanges:
            restore(place)  # as whoever opens it next
        found.append(contents(place / "model"))
        assert found[-1] in (OLD, NEW)
        FolderLock(tmp_path).release()
        assert [path.name for path in place.iterdir()] == ["model"]
        assert contents(place / "model") == found[-1]
        shutil.rmtree(place)
        filled(place / "model", OLD)
    assert (found[0], found[-1]) == (OLD, NEW)
    assert len(found) > 10


def test_a_kill_while_a_folder_is_removed_leaves_nothing_under_its_name(tmp_path):
    filled(tmp_path / "model", OLD)
    kills = 0
    for _ in every_kill(tmp_path, lambda: remove_folder(tmp_path / "model")):
        kills += 1
        there = contents(tmp_path / "model")
        assert there in ({}, OLD)
        assert (tmp_path / "model").exists() == (there == OLD)
        restore(tmp_path)
        filled(tmp_path / "model", OLD)
    assert kills > 4


def test_drafts_have_names_of_chance_and_follow_no_link(tmp_path, monkeypatch):
    with replacing(tmp_path / "file"):
        (draft,) = tmp_path.iterdir()
    with replacing(tmp_path / "file"):
        (another,) = set(tmp_path.iterdir()) - {tmp_path / "file"}
        assert draft_of(another) == "file"
        assert another != draft
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(files.secrets, "token_hex", lambda count: "0" * 2 * count)  # a stranger guesses it
    (tmp_path / f".file.{'0' * 16}.draft").symlink_to(victim)
    with pytest.raises(FileExistsError), replacing(tmp_path / "file") as stream:
        stream.write("new")
    assert victim.read_text() == "mine"


def test_only_drafts_of_ours_are_cleared_away(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    filled(outside, OLD)
    folder.mkdir()
    ours = f".file.{'a' * 16}.draft"
    (folder / ours).write_text("half")
    (folder / f".model.{'b' * 16}.draft").mkdir()
    theirs = [".file.123", f".file.{'a' * 15}.draft", f".file.{'g' * 16}.draft", f"file.{'a' * 16}.draft"]
    for name in theirs:
        (folder / name).write_text("mine")
    link = folder / f".other.{'c' * 16}.draft"
    link.symlink_to(outside)
    inner = folder / "locked"
    inner.mkdir()
    (inner / ".lock").touch()
    (inner / ours).write_text("another process writes it")
    restore(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*theirs, link.name, "locked"])
    link.unlink()
    (folder / ours).write_text("half")
    FolderLock(folder).release()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*theirs, ".lock", "locked"])
    assert (inner / ours).exists()
    assert contents(outside) == OLD


def test_a_folder_out_of_which_a_link_leads_is_refused(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (folder / "deep/down").mkdir(parents=True)
    (folder / "last").symlink_to("deep/down")  # as a training's own
    check_folder(folder)
    check_folder(folder / "not there")
    (tmp_path / "named").symlink_to(folder)
    check_folder(tmp_path / "named")  # the user has named this link
    link = folder / "deep/down/link"
    for target in (outside, "../../../not-there", "../../../folder2"):
        link.symlink_to(target)
        with pytest.raises(OSError, match=r"it is a link out of .*; remove it") as error:
            check_folder(tmp_path / "named")
        assert error.value.filename == str(tmp_path / "named/deep/down/link")
        link.unlink()
    os.mkfifo(link)
    for refuses in (check_folder, FolderLock):
        with pytest.raises(OSError, match="it is a device or a pipe"):
            refuses(folder)
    assert not (folder / ".lock").exists()


def test_only_a_folders_own_files_are_appended_to(tmp_path):
    victim, file = tmp_path / "victim", tmp_path / "file"
    victim.write_text("mine")
    for make, said in (
        (lambda: file.symlink_to(victim), "it is a link; remove it"),
        (lambda: file.symlink_to(tmp_path / "none"), "it is a link; remove it"),
        (lambda: os.link(victim, file), "it has a second name, whose content would change too: cp "),
        (lambda: os.mkfifo(file), "it is a device or a pipe"),
    ):
        make()
        with pytest.raises(OSError, match=said) as error:
            open_for_appending(file)
        if "cp" in said:
            assert os.system(str(error.value.strerror).partition(": ")[2]) == 0  # the command that it advises
            os.close(open_for_appending(file))
        file.unlink()
    assert victim.read_text() == "mine"
    assert not (tmp_path / "none").exists()
    for text in ("one", "two"):
        with os.fdopen(open_for_appending(file), "a") as stream:
            stream.write(text)
    assert file.read_text() == "onetwo"


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "a\\b"])
def test_a_member_is_directly_in_its_folder(tmp_path, name):
    with pytest.raises(OSError, match="its name isn't one of a file in this folder"):
        member(tmp_path, name)
    assert member(tmp_path, "a..b") == tmp_path / "a..b"
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="it is a link"):
        member(tmp_path, "link")
