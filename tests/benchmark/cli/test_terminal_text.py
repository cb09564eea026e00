"""Nothing that a stranger wrote controls the terminal: every input that commands repeat, with a hostile text in it."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agents.baselines.human import HumanPlayer
from agents.common.console import PlainConsole
from agents.common.terminal import PlainStream, plain_streams
from tests.benchmark.helpers import text_without_checksums, write_lines

EVIL = "EVIL\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202egpj\x85\rover\x08\x0b\x7f[bold]x[/bold]\x1b]8;;http://evil.example\x1b\\y"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
IN_A_NAME = EVIL.replace("/", "")


def changed(run: Path, change) -> Path:
    write_lines(run, [change(json.loads(line)) for line in text_without_checksums(run).splitlines()])
    return run


def named(run: Path, name: str, by: str = EVIL) -> Path:
    """The run with another text in place of this one in all of its files."""

    def change(found):
        return json.loads(json.dumps(found).replace(f'"{name}"', json.dumps(by)))

    (run / "manifest.json").write_text(json.dumps(change(json.loads((run / "manifest.json").read_text()))))
    return changed(run, change)


def told(run: Path, **keys) -> Path:
    return changed(run, lambda record: {**record, "steps": [{**step, **keys} for step in record["steps"]]})


def failed(run: Path) -> Path:
    return changed(run, lambda record: {**record, "error": EVIL})


def moved(run: Path) -> Path:
    return run.rename(IN_A_NAME)


def file_of(text: str, name: str = "file.toml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def agent_folder() -> Path:
    Path("own").mkdir()
    (Path("own") / "agent.toml").write_text(f"spec = {toml(EVIL)}\n")
    return Path("own")


def player() -> str:
    Path("player.py").write_text(
        f"class Player:\n    name = 'own'\n    def act(self, requests):\n        raise RuntimeError({EVIL!r})\n"
    )
    return "player.py:Player"


def toml(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")


CASES = {
    "a command": lambda run: [EVIL],
    "an option": lambda run: ["leaderboard", run, f"--{EVIL}"],
    "an agent": lambda run: ["run", "--agent", EVIL],
    "a scenario": lambda run: ["run", "--scenario", EVIL],
    "a setting": lambda run: ["run", "--agent", "random", "--set", f"random.{EVIL}=1"],
    "a folder's name, resumed": lambda run: ["resume", moved(run)],
    "an agent's name in the summary": lambda run: ["leaderboard", named(run, "greedy")],
    "an agent's name in the tables": lambda run: ["leaderboard", named(run, "greedy"), "--stats"],
    "an agent's name in JSON": lambda run: ["leaderboard", named(run, "greedy"), "--json"],
    "an agent's name, replayed": lambda run: ["replay", named(run, "random"), "--plain"],
    "a response": lambda run: ["replay", told(run, response=EVIL), "--plain"],
    "a response in a row": lambda run: ["export", told(run, response=EVIL), "--csv", "-", "--steps"],
    "a record's error": lambda run: ["leaderboard", failed(run), "--stats"],
    "an entry's problem": lambda run: ["validate", named(run, "textbench-run")],
    "a configuration's key": lambda run: ["run", "--config", file_of(f"{toml(EVIL)} = 1\n")],
    "a file of prompts": lambda run: [
        *("run", "--agent", "tiny", "--scenario", "frozen-lake", "--prompts"),
        file_of(f"{toml(EVIL)} = 1\n"),
    ],
    "an agent's folder": lambda run: ["run", "--agent", agent_folder()],
    "a player's traceback": lambda run: [*("run", "--scenario", "frozen-lake", "--episodes", 1, "--agent"), player()],
    "a training's model": lambda run: ["train", "--set", f"model={EVIL}", "--set", "scenarios=frozen-lake"],
}


@pytest.mark.parametrize("case", CASES)
def test_no_command_repeats_control_characters(textbench, small_run, case):
    arguments = CASES[case](small_run)
    done = textbench(*arguments)
    assert "EVIL" in done.out + done.err  # or the input wouldn't be one
    assert CONTROL.findall(done.out + done.err) == []
    if "--json" in arguments:
        assert EVIL in {row["agent"] for row in json.loads(done.out)["scores"]}


def test_modules_tracebacks_warnings_and_logs_are_plain(workplace, capfd, monkeypatch):
    """In processes of their own: what ends a process passes the streams as well."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    programs = (
        f"from agents.msgrpo.__main__ import main; main(['--set', {EVIL + '=1'!r}])",
        f"from benchmark import cli\nEVIL = {EVIL!r}\ncli._run = lambda _: {{}}[EVIL]\ncli.console_main()",
        "from agents.common.terminal import plain_streams\nwith plain_streams():\n"
        f"    import logging; logging.warning({EVIL!r})",
        "from agents.common.terminal import plain_streams\nwith plain_streams():\n"
        f"    import warnings; warnings.warn({EVIL!r})",
    )
    for program in programs:
        subprocess.run([sys.executable, "-c", program], check=False)
        done = capfd.readouterr()
        assert "EVIL" in done.err, program
        assert CONTROL.findall(done.out + done.err) == []


SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_a_console_styles_our_words_and_shows_those_of_others(capsys):
    """Whatever is drawn: a text, a title, a cell, markup; what is left of escape sequences are rich's own colours."""
    stream = io.StringIO()
    console = PlainConsole(file=stream, force_terminal=True, color_system="standard", width=100)
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL, style="red")
    for drawn in (
        EVIL,
        Text(EVIL, style="bold red"),
        table,
        Panel(Text(EVIL), title=EVIL),
        Text.from_markup(f"[link=x]{EVIL}"),
    ):
        console.print(drawn)
    text = stream.getvalue()
    assert SGR.search(text)
    assert CONTROL.findall(SGR.sub("", text)) == []
    assert "[bold]x[/bold]" in SGR.sub("", text)
    HumanPlayer(io.StringIO("right\n"), console).act([EVIL])
    assert CONTROL.findall(SGR.sub("", stream.getvalue())) == []


def test_a_live_display_lets_nothing_past_it(monkeypatch):
    """Rich puts streams of its own in place of ours while it redraws, and reads escape sequences in what is printed."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    with plain_streams(), Live("ours", console=PlainConsole(stderr=True, force_terminal=True), refresh_per_second=1):
        print(EVIL, file=sys.stderr)
    assert "EVIL" in stream.getvalue()
    moves = re.compile(r"\x1b\[(\?25[hl]|\d*[AKm]|[0-9;]*m)|\r(?=\x1b\[|$)|\r\n")
    assert CONTROL.findall(moves.sub("", stream.getvalue())) == []


def test_bars_of_libraries_redraw_their_line_and_no_other():
    tqdm = pytest.importorskip("tqdm").tqdm
    plain, unchanged = io.StringIO(), io.StringIO()
    for stream in (PlainStream(plain), unchanged):
        for _ in tqdm(range(2), "outer", file=stream, mininterval=0, bar_format="{desc}{n}"):
            for _ in tqdm(range(2), "inner", file=stream, mininterval=0, leave=False, bar_format="{desc}{n}"):
                pass
    assert plain.getvalue() == unchanged.getvalue()
    assert "\x1b[A" in plain.getvalue()
    stream = PlainStream(plain := io.StringIO())
    print("said", "\rover", "\x1b[A", file=stream)
    assert plain.getvalue() == "said \\rover \\u001b[A\n"


def test_texts_of_all_scripts_are_as_they_were_and_json_that_passes_means_the_same(capsys):
    text = "naïve 你好\u3000世界 می\u200cخواهم 👩\u200d💻 1\u00a0000 \t|\n"
    said = {"x": EVIL + "\U000e0041\ud800\\"}
    with plain_streams():
        sys.stdout.write(text)
        print(json.dumps(said, ensure_ascii=False))
    out = capsys.readouterr().out
    assert out.startswith(text)
    assert CONTROL.findall(out.removeprefix(text)) == []
    assert json.loads(out.removeprefix(text)) == said


@pytest.mark.parametrize("begin", ["=", "@", "\t"])
def test_no_cell_of_a_csv_file_is_a_formula(textbench, small_run, begin):
    """As in the page's download: an apostrophe before texts, while numbers stay numbers."""
    response = f'{begin}HYPERLINK("http://evil.example")'
    textbench("export", told(small_run, response=response, reward=-0.5), "--csv", "rows.csv", "--steps")
    with open("rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["response"] for row in rows} == {f"'{response}"}
    assert {row["reward"] for row in rows} == {"-0.5"}
    assert not [cell for row in rows for cell in row.values() if cell[:1] in set("=+@\t\r")]


def test_there_is_no_other_console():
    root = Path(__file__).parents[3]
    files = [file for name in ("agents", "benchmark", "research", "textbench") for file in (root / name).rglob("*.py")]
    made = [file.relative_to(root) for file in files if re.search(r"(?<!\w)Console\(|\(Console\)", file.read_text())]
    assert made == [Path("agents/common/console.py")]
