"""textbench report: a Markdown and an HTML file with verdict, tables, costs, costliest decisions and commands."""

import json
import re
import shlex
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import benchmark
from benchmark.runs.folder import RunFolder
from tests.benchmark.cli.test_terminal_text import CONTROL, EVIL
from tests.benchmark.helpers import Reader, change_manifest, counted, lines_of, write_lines
from textgames.scenarios import SCENARIOS

HOSTILE = (
    f"{EVIL} <script>alert(1)</script> </td></table> [x](javascript:alert(1)) ![x](http://evil.example/i.png) | `a` "
)
HOSTILE += "<img src=x onerror=alert(1)> [y]: http://evil.example\n\n# A heading\n```\n"
TAGS = {
    *("html", "meta", "style", "title", "h1", "h2", "p", "pre", "br"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"style", "lang", "charset", "name", "content", "http-equiv"}


def sections(text):
    """{heading: its text} of a Markdown report."""
    return dict(part.split("\n", 1) for part in text.split("\n## ")[1:])


def rows(text):
    """The rows of the Markdown tables in a text, as {title: cell}."""
    tables = [
        [line.strip("| ").split(" | ") for line in block.splitlines()]
        for block in re.findall(r"(?:^\|.*\n?)+", text, re.M)
    ]
    return [dict(zip(titles, row, strict=True)) for titles, _, *found in tables for row in found]


def test_a_report_tells_who_is_better_what_it_cost_and_which_moves_cost_most(textbench):
    games = ("frozen-lake", "tic-tac-toe", "kuhn-poker")
    run = ["--agent", "planner", "--agent", "random", *(word for name in games for word in ("--scenario", name))]
    assert textbench("run", *run, "--episodes", 6, "--seed-offset", 3, "--out", "run", "--quiet").code == 0
    done = textbench("report", "run")
    assert (done.code, done.out.split()) == (0, ["report.md", "report.html"])
    text, page = (Path(f"report.{form}").read_text() for form in ("md", "html"))
    told = sections(text)
    first = " ".join(textbench("compare", "run").out.split("A = ")[0].split())
    assert " ".join(told["Verdict"].split()).replace("\\", "") == first
    assert "| 1 | planner |" in told["Scores"]
    assert {row["agent"]: row["episodes"] for row in rows(told["Costs"])} == {"planner": "30", "random": "30"}

    assert "Lost nothing: planner." in told["Costliest decisions"]
    assert "is not known in kuhn-poker: no exact solver" in told["Costliest decisions"]
    found = rows(told["Costliest decisions"])
    assert [row["scenario"] for row in found] == ["frozen-lake"] * 5 + ["tic-tac-toe against planner"] * 5
    lost = [float(row["value lost"]) for row in found]
    assert lost == [*sorted(lost[:5], reverse=True), *sorted(lost[5:], reverse=True)]
    for row in found:
        assert row["executed"] != row["best"]
        assert f"<action>{row['executed']}" in row["what it answered"].replace("\\", "")
        assert ("Holes:" if row["scenario"] == "frozen-lake" else "It is your turn") in row["what it read"]
    worst = textbench("replay", "run", "--worst", "--agent", "random", "--scenario", "frozen-lake", "--plain").out
    assert f"value lost {lost[0]:g}, best: {found[0]['best']}" in worst

    settings = rows(told["Settings"])
    first_seed = SCENARIOS["frozen-lake"].first_seed + 3
    assert f"{first_seed} to {first_seed + 5}" in {row.get("seeds") for row in settings}
    assert {"planner", "random"} <= {row.get("spec") for row in settings}
    again, *others = told["Commands"].split("```sh\n")[1].split("```")[0].strip().splitlines()
    assert textbench(*shlex.split(again)[1:], "--quiet").code == 0
    assert counted("run") == counted("run-again")
    assert [textbench(*shlex.split(command)[1:]).code for command in others] == [0] * 4

    seen = Reader(page)
    shown = "".join(seen.text)
    assert not {tag for tag, _ in seen.tags} - TAGS
    assert first in " ".join(shown.split())
    assert shown.count("of the game's return") == 1
    assert json.dumps(found[0]["best"])[1:-1] in shown


def test_texts_of_strangers_are_text_in_both_forms(textbench, small_run):
    name = HOSTILE[:99].replace("\n", "")

    def forge(manifest):
        manifest["agents"][0].update(name=name, spec=HOSTILE, settings={"x": HOSTILE})
        for row in manifest["matchups"]:
            row["agents"] = [name if agent == "random" else agent for agent in row["agents"]]

    change_manifest(small_run, forge)
    records = lines_of(small_run)
    for record in records:
        record["metrics"] = {player: {HOSTILE[len(EVIL) :][:99]: 1.0} for player in record["agents"]}
        if record["agents"] == {"player_0": "random"}:
            record["agents"] = {"player_0": name}
            for step in record["steps"]:
                step["response"] = HOSTILE + step["response"]
    write_lines(small_run, records)
    assert textbench("report", small_run, "--out", ".").code == 0
    text, page = (Path(f"report.{form}").read_text() for form in ("md", "html"))
    assert not CONTROL.search(text + page)
    assert text.count("EVIL") > 10 < page.count("EVIL")
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    tokens = [inner for token in parsed for inner in (token, *(token.children or ()))]
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline", "html_block"}
    assert [token.tag for token in tokens if token.type == "fence"] == ["code"]
    assert "A heading" not in [token.content for token in tokens if token.type == "inline"]
    seen = Reader(page)
    shown = "".join(seen.text)
    assert not {tag for tag, _ in seen.tags} - TAGS
    assert {key for _, attributes in seen.tags for key in attributes} <= ATTRIBUTES
    assert "<script>alert(1)</script>" in shown


def retell(folder):
    """Change all episodes but the first to those of an older version's game, which can't be played again."""
    records = lines_of(folder)
    for record in records[1:]:
        record["observations_digest"] = "0" * len(record["observations_digest"])
    write_lines(folder, records)


def cut(folder):
    lines = (folder / "episodes.jsonl").read_bytes().splitlines(True)
    (folder / "episodes.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:40])


def empty(folder):
    (folder / "episodes.jsonl").write_bytes(b"")


def mute(folder):
    records = lines_of(folder)
    for record in records:
        for step in record["steps"]:
            step |= {"response": "no", "valid": False, "unreadable": "no_tag"}
    write_lines(folder, records)


CASES = {
    "half of a run": ("frozen-lake", cut, ("Not complete: 5 of 6 episodes are played", "planner")),
    "nothing played": ("frozen-lake", empty, ("Not complete: 0 of 6",)),
    "the game has changed": ("frozen-lake", retell, ("It is known in 1 of 6 episodes of frozen-lake",)),
    "several players, exact": ("nim", None, ("No verdict over all", "### random", "value lost")),
    "every answer invalid": ("blackjack", mute, ("(unreadable: no tag)", "100% [")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_report_of_any_run(textbench, case):
    scenario, change, said = CASES[case]
    benchmark.evaluate(["planner", "random"], scenarios=scenario, episodes=3, out="run", quiet=True)
    if change:
        change(Path("run"))
    done = textbench("report", "run", "--out", "it.md")
    assert (done.code, done.err) == (0, "")
    text = Path("it.md").read_text()
    for words in said:
        assert words in text
    assert next(iter(sections(text))) == "Verdict"


def test_mistakes_are_looked_for_in_few_episodes(textbench, monkeypatch):
    """Beyond what the tables are made of: until ten decisions are known that no other episode can exceed."""
    benchmark.evaluate(["random"], scenarios=["frozen-lake"], episodes=60, out="run", quiet=True)
    assert textbench("leaderboard", "run", "--stats").code == 0  # and what it computes is kept
    read, parse = [], RunFolder.parse
    monkeypatch.setattr(RunFolder, "parse", lambda folder, line: read.append(line) or parse(folder, line))
    assert textbench("leaderboard", "run", "--stats").code == 0
    tables, read[:] = len(read), []
    assert textbench("report", "run", "--out", "it.html").code == 0
    assert len(read) - tables in range(1, 20)
    assert "random is the only agent" in Path("it.html").read_text()


def test_mistakes_about_the_file_are_one_sentence(textbench, small_run):
    for out, sentence in (
        ("report.pdf", "got 'report.pdf'"),
        ("no/it.md", "there is no folder no"),
    ):
        done = textbench("report", small_run, "--out", out)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert sentence in done.err
    assert textbench("report", small_run, "--out", f"{small_run}/manifest.json").code == 2
    assert textbench("report", small_run, "--out", "new").out.split() == ["new/report.md", "new/report.html"]
    assert textbench("report", "nothing").code == 2
    several = shlex.join(["textbench", "replay", "--worst", f"{small_run}"])
    assert textbench("report", ".", "--out", "new").code == 0  # a folder of runs
    assert several in Path("new/report.md").read_text().splitlines()
