"""What several tests of the benchmark look at, and how they change a run's folder."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agents.episode import Episode, Step
from benchmark.runs.folder import RunFolder
from benchmark.runs.record import canonical_lines, opened_line


def counted(folder) -> bytes:
    """Everything in a run that counts, in canonical form."""
    return b"".join(canonical_lines(RunFolder.open(Path(folder)).records()))


def records_in(folder) -> list[Episode]:
    return list(RunFolder.open(Path(folder)).records())


def steps_in(folder) -> list[Step]:
    return [step for record in records_in(folder) for step in record.steps]


def text_without_checksums(folder) -> str:
    """The lines of a run as they were before checksums, to be changed by hand."""
    lines = (Path(folder) / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join(map(opened_line, lines)).decode()


def lines_of(folder) -> list:
    return [json.loads(line) for line in (Path(folder) / "episodes.jsonl").read_text().splitlines()]


def write_lines(folder, records) -> None:
    (Path(folder) / "episodes.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def change_manifest(folder, change) -> dict:
    """Change a manifest in place; returns it."""
    file = Path(folder) / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))
    return manifest


ROOT = Path(__file__).parents[2]
PLAYERS = Path(__file__).parent / "players_for_tests.py"


READING = (
    ("leaderboard", "{}", "--stats"),
    ("leaderboard", "{}", "--html", "page.html"),
    ("compare", "{}"),
    ("report", "{}", "--out", "report.md"),
    ("replay", "{}", "--plain"),
    ("export", "{}", "--csv", "rows.csv"),
    ("export", "{}", "--sft", "rows.jsonl"),
    ("submit", "{}", "--agent", "random", "--out", "entries"),
    ("validate", "{}"),
    ("merge", "{}", "--out", "merged"),
    ("rescore", "{}", "--reading", "strict"),
    ("resume", "{}", "--quiet"),
    ("resume", "{}", "--quiet", "--repair"),
)


def read_by_all(textbench, folder):
    """Check what every reading command says of a folder: one sentence, or nothing wrong."""
    said = []
    for command in READING:
        shutil.rmtree("merged", ignore_errors=True)
        done = textbench(*(word.replace("{}", str(folder)) for word in command))
        assert done.code in (0, 1, 2), (command, done)
        assert "Traceback" not in done.err, (command, done)
        if done.code == 2:
            assert done.err.count("\n") == 1, (command, done.err)
        said.append(done.err)
    return said


def named(agents) -> list[str]:
    """The words of a command that name these agents."""
    return [word for agent in agents for word in ("--agent", agent)]


def refused(done, *said) -> None:
    """Check that a command was refused in one sentence, which says all of this."""
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert all(one in done.err for one in said), done


def play_and_submit(folder, reference_cache, names, *run, about=()) -> Path:
    """Play a run with these words of a command, and submit these of its agents; returns the folder of the entries."""
    from benchmark.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(reference_cache))
        assert main(["run", *run, "--out", str(folder / "run"), "--quiet"]) == 0
    for name in names:
        assert main(["submit", str(folder / "run"), "--agent", name, "--out", str(folder / "entries"), *about]) == 0
    return folder / "entries"


def everything_written(folder) -> str:
    return "".join(file.read_text(errors="replace") for file in Path(folder).rglob("*") if file.is_file())


class Reader(HTMLParser):
    """Collects the elements of a page, and the text of its script and style elements, as an HTML parser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw.append((self._inside, data))
        else:
            self.text.append(data)
