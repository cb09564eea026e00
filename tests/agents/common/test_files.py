import os
from pathlib import Path

import pytest

from agents.common.files import check_writable, refusal, replacing, replacing_folder


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "manifest.json"
    file.write_text("old")

    def interrupted():
        with replacing(file) as stream:
            stream.write("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "old"
    with replacing(file) as stream:
        stream.write("new")
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
    assert file.read_text() == "new"


def test_a_pipe_is_refused_and_a_link_replaced_itself(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a device or a pipe, and what is accepted is a file"), replacing(pipe):
        pass
    link.symlink_to(pipe)
    with replacing(link) as stream:
        stream.write("new")
    assert (pipe.is_fifo(), link.is_symlink(), link.read_text()) == (True, False, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "model"

    def failing():
        with replacing_folder(folder) as draft:
            (draft / "weights").write_bytes(b"half")
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        failing()
    assert not folder.exists()
    with replacing_folder(folder) as draft:
        assert not list(draft.iterdir())  # what the failed attempt left is gone
        (draft / "weights").write_bytes(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (folder / "weights").read_bytes() == b"whole"


def test_a_refusal_is_a_sentence():
    with pytest.raises(OSError) as error:
        Path("/proc/textbench/none").read_text()
    assert refusal(error.value) == "can't use /proc/textbench/none: No such file or directory"
    assert refusal(OSError(28, "No space left on device")) == "the operating system refused: No space left on device"
    assert refusal(TimeoutError()) == "TimeoutError"


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


def test_what_can_be_written_is_found_out_without_leaving_anything(tmp_path):
    check_writable(tmp_path / "new" / "folder")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(OSError):
            check_writable(place)
