import pytest

from agents.files import replacing, replacing_folder


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
