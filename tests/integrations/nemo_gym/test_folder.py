"""The command that writes a server's folder, which needs no NeMo Gym."""

import json
import sys

import pytest
import yaml

from textbench.integrations.nemo_gym.__main__ import main


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["nemo_gym", *words])
        return main(), capsys.readouterr().err

    return run


def test_a_folder_is_written_again_but_not_over_other_files(command, tmp_path):
    folder = tmp_path / "servers" / "games"
    for starts in (2, 6):
        assert command("frozen-lake(size=6)", "--out", "servers/games", "--starts", str(starts)) == (0, "")
        rows = [json.loads(line) for line in (folder / "data" / "train.jsonl").read_text().splitlines()]
        assert [row["layout_seed"] for row in rows] == list(range(starts))
    config = yaml.safe_load((folder / "configs" / "games.yaml").read_text())
    assert config["games"]["resources_servers"]["games"]["scenario"] == rows[0]["scenario"] == "frozen-lake(size=6)"
    (folder / "notes.txt").write_text("mine")
    code, said = command("frozen-lake", "--out", "servers/games")
    assert (code, said.count("\n"), "it has 'notes.txt', which isn't of this command" in said) == (2, 1, True)
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("lake", "--out", "textbench"), "unknown scenario 'lake'"),
        (("frozen-lake", "--out", "My-Games"), "small letters, digits and _, got 'My-Games'"),
        (("frozen-lake", "--out", "file"), "it is a file or a link; accepted: a folder"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(command, tmp_path, words, sentence):
    (tmp_path / "file").touch()
    code, said = command(*words)
    assert (code, said.count("\n"), sentence in said) == (2, 1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
