"""Files of rows: what real trainers wrote, the notebook's, Parquet, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmark.cli import main
from research.credit import checker
from research.credit.tests.checker.test_small_trainers import grpo, trained

DOCS = Path(__file__).parents[4] / "docs" / "research" / "credit"


@pytest.mark.parametrize(
    ("example", "code", "said"),
    [
        ("trl-two-steps", 1, "compared as a sample of its own, so that the deviation has each return repeated"),
        ("verl-steps", 1, "compared as a sample of its own, so that a longer episode counts more often"),
        ("verl-grpo", 0, "passed +formula +msgrpo;"),
        ("verl-rloo", 0, "passed +formula +rloo;"),
        ("verl-gae", 0, "passed +formula +GAE over the rows' values with discount 0.99 and lambda 0.9, times"),
        ("skyrl-grpo", 0, "passed +formula +msgrpo;"),
        ("skyrl-rloo", 0, "passed +formula +rloo;"),
        ("skyrl-gae", 0, "passed +formula +GAE over the rows' values with discount 1 and lambda 1, times"),
        ("skyrl-steps", 0, "passed +formula +msgrpo;"),
        ("skyrl-steps-paid", 1, "those of the last turn's reward: what earlier turns were paid is left out"),
    ],
)
def test_what_real_trainers_wrote(example, code, said, capsys):
    """The files were made by TRL 1.16, verl 0.9 and SkyRL 0.3."""
    assert main(["check-credit", str(Path(checker.__file__).parent / "examples" / f"{example}.jsonl")]) == code
    assert re.search(said, capsys.readouterr().out)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((DOCS / "check-example.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    shown = capsys.readouterr().out
    assert re.search(r"passed +formula +msgrpo", shown)
    assert "a longer episode counts more often" in shown
    assert (tmp_path / "check.svg").read_bytes().count(b"<use") == (DOCS / "check.svg").read_bytes().count(b"<use")


def test_parquet_is_read_as_json_lines_are(tmp_path, capsys):
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rows = trained(grpo)
    names = {name: None for row in rows for name in row}
    parquet.write_table(pa.Table.from_pylist([{**names, **row} for row in rows]), tmp_path / "rows.parquet")
    assert main(["check-credit", str(tmp_path / "rows.parquet")]) == 0
    assert re.search(r"formula +msgrpo", capsys.readouterr().out)


REFUSED = {
    "[" * 100_000: "row 1 isn't JSON",
    "[1]": "a list isn't a row",
    '{"group": 0, "episode": 0, "turn": 0, "tokens": 1000000000000}': "less than or equal to 1048576",
    '{"group": 0, "episode": 0, "turn": 0, "rewards": 1}': "the fields are group, episode",
    '{"group": 0, "episode": 0, "turn": 0, "reward": NaN}': "reward: Input should be a finite number",
    '{"group": 0, "episode": 0, "turn": 0, "tokens": 2, "mask": [true]}': "mask has 1 values for 2 tokens",
    '{"group": 0, "episode": 0, "turn": 0, "kind": "prompt"}': "1 rows and no response",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_row_is_refused_in_a_sentence(text, tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text(text)
    assert main(["check-credit", str(tmp_path / "rows.jsonl")]) == 2
    assert REFUSED[text] in capsys.readouterr().err


def test_unknown_names_are_refused(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text('{"group": 0, "episode": 0, "turn": 0, "advantage": 0}')
    for options in (("--method", "rlo"), ("--normalizer", "tokens")):
        assert main(["check-credit", str(tmp_path / "rows.jsonl"), *options]) == 2
        assert "did you mean" in capsys.readouterr().err
