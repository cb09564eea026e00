"""Every command with the wrong kind of file: one sentence and exit code 1 or 2, whatever stands under the name."""

import json
import os
import random
from copy import deepcopy
from pathlib import Path

import pytest

from benchmark.cli import COMMANDS, LAB
from tests.benchmark.helpers import read_by_all

ONE_EPISODE = ("--agent", "random", "--scenario", "frozen-lake", "--episodes", "1", "--quiet")
LEARN = ("--scenario", "frozen-lake", "--model", "tiny", "--full", "--examples", "10", "--quiet")
CASES = (
    ("run", *ONE_EPISODE, "--out", "{}"),
    ("run", *ONE_EPISODE, "--config", "{}"),
    ("run", *ONE_EPISODE, "--prices", "{}"),
    ("run", *ONE_EPISODE, "--prompts", "{}"),
    ("run", "--agent", "{}/player.py:Player"),
    ("run", "--scenario", "{}"),
    ("plan", *ONE_EPISODE[:4], "--agent", "greedy", "--detect", "0.1", "--quiet", "--out", "{}"),
    ("resume", "{}"),
    ("resume", "{}", "--repair"),
    ("leaderboard", "{}"),
    ("leaderboard", "{}", "--html", "{}"),
    ("compare", "{}", "{}"),
    ("compare", "random", "greedy", "--in", "{}"),
    ("replay", "{}"),
    ("report", "{}"),
    ("view", "{}", "--no-browser"),
    ("play", "{}"),
    ("serve", "{}"),
    ("list", "{}"),
    ("submit", "{}"),
    ("validate", "{}"),
    ("merge", "{}", "--out", "merged"),
    ("rescore", "{}"),
    ("export", "{}", "--csv", "{}"),
    ("export", "{}", "--sft", "{}"),
    ("run", "--season", "{}"),
    ("schema", "episode", "--out", "{}"),
    ("doctor", "--agent", "{}"),
    ("train", "--config", "{}"),
    ("warmup", "--scenario", "{}"),
    ("warmup", "--scenario", "frozen-lake", "--model", "{}"),
    ("warmup", *LEARN, "--prompts", "{}"),
    ("warmup", *LEARN, "--out", "{}"),
    ("inspect", "{}"),
    ("exploitability", "{}"),
)
FREE_PLACES = {"an empty folder", "missing"}
"""Where something new may be made."""


def make(kind: str, path: Path) -> Path:
    if kind in ("text", "inside a file", "not UTF-8"):
        path.write_bytes(b"\xff\xfe\x00" if kind == "not UTF-8" else b"hello\n")
    elif kind not in ("missing", "a very long name"):
        path.mkdir()
    if kind == "no JSON":
        (path / "manifest.json").write_text("{")
    elif kind == "a folder in place of the manifest":
        (path / "manifest.json").mkdir()
    elif kind == "a pipe in place of the manifest":
        os.mkfifo(path / "manifest.json")
    return {"inside a file": path / "inside", "a very long name": path.parent / ("x" * 300)}.get(kind, path)


KINDS = (
    *("text", "not UTF-8", "inside a file", "missing", "a very long name", "an empty folder", "no JSON"),
    *("a folder in place of the manifest", "a pipe in place of the manifest"),
)


def test_every_command_is_here():
    assert {case[0] for case in CASES} == {*COMMANDS, *LAB}


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_wrong_kind_of_file_is_one_sentence(textbench, workplace, case):
    if case[0] in ("train", "warmup", "inspect"):
        pytest.importorskip("torch")
    for number, kind in enumerate(KINDS):
        if kind in FREE_PLACES and (case[-2:] == ("--out", "{}") or case[:2] == ("season", "new")):
            continue
        path = make(kind, workplace / f"thing{number}")
        done = textbench(*(word.replace("{}", str(path)) for word in case))
        if done.code == 0:  # any folder is good for schemas, and a scripted player reads no prompts
            assert case[0] == "schema" or "--prompts" in case, (kind, done)
            continue
        assert done.code in (1, 2), (kind, done)
        assert (done.out, done.err.count("\n")) == ("", 1), (kind, done)
        assert done.err.startswith(("textbench: ", "error: ")), (kind, done.err)


NASTY = (
    *(None, True, -1, 0, 1.5, 10**20, float("nan"), 1e308, "", "x", "\u202eabc", "a" * 3000, "\n", [], {}, [[]]),
    *({"": ""}, [None], "\ud800", "random", "snake-duel", "player_0", [[0, 10**18], [10**18, 0]]),
)


def places(value, path=()):
    """The path of everything inside a JSON value."""
    for name, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, name)
        yield from places(item, (*path, name))


def bend(value, rng):
    """A copy of a JSON value with something removed, renamed or replaced."""
    *path, last = rng.choice(list(places(value)))
    bent = inner = deepcopy(value)
    for name in path:
        inner = inner[name]
    nasty, how = rng.choice(NASTY), rng.random()
    if how < 0.2:
        del inner[last]
    elif how < 0.3 and isinstance(inner, dict):
        inner[str(nasty)] = inner.pop(last)
    else:
        inner[last] = nasty
    return bent


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 10))])
def test_bent_manifests_and_episodes_are_read_or_refused_in_one_sentence(textbench, small_run, seed):
    rng = random.Random(seed)
    manifest = json.loads((small_run / "manifest.json").read_text())
    lines = (small_run / "episodes.jsonl").read_text().splitlines()
    if rng.random() < 0.5:
        manifest = bend(manifest, rng)
    else:
        number = rng.randrange(len(lines))
        lines[number] = json.dumps(bend(json.loads(lines[number]), rng))
    if rng.random() < 0.3:
        manifest |= {"kind": "textbench-entry", "agent": "random"}
    (small_run / "manifest.json").write_text(json.dumps(manifest))
    (small_run / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    read_by_all(textbench, small_run)
