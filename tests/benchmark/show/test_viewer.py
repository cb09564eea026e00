"""What a person at a terminal sees: the live table, the keys of a replay, the page's address."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from agents.episode import Episode, Step
from agents.turn import Turn
from benchmark.play.progress import Display, LiveTable, Meter, choose_display
from benchmark.runs.plan import Matchup
from benchmark.runs.record import recorded
from benchmark.runs.replay import replay
from benchmark.show.viewer import Screen, Showing, view
from tests.benchmark.helpers import lines_of, text_without_checksums, write_lines
from tests.terminal import LEFT, PAGE_DOWN, RIGHT, ROOT, TEXTBENCH, Terminal
from textgames.scenarios import Scenario


def a_meter():
    totals = {Matchup("snake", ("a",)): 10, Matchup("frozen-lake", ("b",)): 10}
    meter = Meter(totals, {"b": {"input": 1.0, "output": 2.0}}, {"b": [1000, 0]})
    meter.tallies["snake", ("a",)].done = 4
    for scenario, agent, value, error in (("snake", "a", 1.5, None), ("frozen-lake", "b", 0.0, "down")):
        me = {"player_0": agent}
        meter.count_episode(Episode(scenario, 0, None, me, (), {"player_0": value}, {}, True, False, error))
    meter.count_tokens("b", 1_000_000, 500_000)
    return meter


def test_the_live_table_shows_each_agent_and_scenario_and_nothing_stays_but_the_summary(capsys):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=140, height=30)
    with LiveTable(a_meter(), console) as display:
        display.update()
        display._live.refresh()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert re.search(r"snake\s+a\s+.*5/10\s+\+1\.500", text)
    assert re.search(r"frozen-lake\s+b\s+.*1/10\s+1", text)
    summary = "5/20 episodes · 1 unscored · 1,001,000 + 500,000 tokens · 2.0010 USD · "
    assert text.splitlines()[-1].startswith(summary)
    # no terminal: a line now and then; nothing if it is to be quiet
    with choose_display(a_meter(), quiet=False) as lines:
        lines._next = 0
        lines.update()
        lines.update()
    assert capsys.readouterr().err.count(summary) == 2
    assert type(choose_display(a_meter(), quiet=True)) is Display


def test_more_rows_than_the_terminal_has_show_the_unfinished_first():
    totals = {Matchup(f"s{i:02}", ("a",)): 2 for i in range(40)}
    meter = Meter(totals, {})
    for matchup in list(totals)[:39]:
        meter.tallies[matchup].done = 2
    assert [matchup.scenario for matchup, _ in meter.rows(6)] == ["s39"]


# ---------------------------------------------------------------- replays

SIZES = [(80, 24), (60, 20), (200, 60), (40, 12)]


def an_episode(size=4, response="<action>right</action>", agent="a", rounds=2, reasoning=""):
    """An episode on a lake of holes below a row of ice, played here."""
    desc = ["S" + "F" * (size - 2) + "G", *["F" + "H" * (size - 1)] * (size - 1)]
    scenario = Scenario("lake", "TextFrozenLake-v0", {"desc": desc}, 50, 0)
    steps = tuple(
        Step(k, "player_0", "", Turn(response, reasoning=reasoning * (k == 0)), "", True, None, 0.0)
        for k in range(rounds)
    )
    played = Episode(scenario.name, 0, None, {"player_0": agent}, steps, {}, {}, False, False)
    return Showing.of(" (episode 1 of 1)", recorded(replay(played, scenario).episode), scenario)


def pages_of(showing, index, width, height):
    """The screens of one step from top to bottom, each as lines of text; every screen fits the terminal."""
    console = Console(file=io.StringIO(), width=width, height=height)
    screen = Screen(console, view(showing, index), width, height)
    pages = []
    for scroll in (*range(0, screen.furthest, screen.page), screen.furthest):
        lines = [line.plain for line in screen.lines(scroll)]
        assert len(lines) == height
        assert all(cell_len(line) <= width for line in lines)
        pages.append(lines)
    return pages


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize(
    "showing",
    [
        an_episode(size=40, rounds=1),
        an_episode(agent="long name " * 60),
        an_episode(response="\x1b[2J\u202e\t" + "字" * 500 + " <action>right</action> end_of_it"),
        an_episode(response=" ".join(f"word{number}" for number in range(2000))),
    ],
    ids=["a board that is too large", "a name that is too long", "wide and control characters", "a long response"],
)
def test_nothing_is_cut_off_without_a_way_to_read_it(showing, width, height):
    pages = pages_of(showing, 0, width, height)
    everything = "".join(map("".join, pages))
    assert "\x1b" not in everything
    assert "\u202e" not in everything
    step = showing.record.steps[0]
    for text in (showing.title, showing.replayed.board(step.state), step.turn.response, "Goal: ("):
        # folding moves blanks and line ends about; the characters that can be seen are all there, in order
        letters = iter(re.sub(r"\s", "", everything))
        assert all(letter in letters for letter in re.sub(r"[\s\x1b\u202e]", "", text))
    assert f"reward+{step.reward:g}" in re.sub(r"\s", "", everything)
    for lines in pages:
        screen = " ".join(" ".join(lines).split())
        assert all(hint in screen for hint in ("n next", "p back", "[ ] episode", "j k PgDn PgUp scroll", "q quit"))
        if len(showing.title) < 60 and showing.replayed.board(step.state).count("\n") < 9 and width >= 60:
            for part in ("lake, seed 0, a", "step 1 of", "return so far 0", "P _ _ G", "_ O O O"):
                assert part in screen  # while a response is scrolled, all the rest stands still


def test_a_replay_shows_and_sorts_by_the_value_lost(textbench):
    """On its own start an action may lose all that is to be had, and the best action is named."""
    agents = ("--agent", "planner", "--agent", "random", "--scenario", "frozen-lake", "--scenario", "snake")
    assert textbench("run", *agents, "--episodes", 4, "--out", "run", "--quiet").code == 0
    shown = [textbench("replay", "run", "--worst", "--plain", "--episode", number).out for number in range(1, 9)]
    assert all("frozen-lake, seed" in text and "of 8)" in text for text in shown)  # snake has no exact values
    lost = [float(re.search(r"return \S+(?:, success)?, value lost (\S+)$", text, re.M)[1]) for text in shown]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] == 1 > lost[-1] == 0
    for text, total in zip(shown, lost, strict=True):
        steps = re.findall(r"^action (\w+), valid .* value lost (\S+?)(?:, best: (.+))?$", text, re.M)
        assert sum(float(one) for _, one, _ in steps) == pytest.approx(total, abs=1e-3)
        assert all((one == "0") is (best == "") and action not in best.split(" or ") for action, one, best in steps)
    only = textbench("replay", "run", "--worst", "--plain", "--agent", "planner").out
    assert "value lost 0" in only
    assert "episode 1 of 4" in only
    done = textbench("replay", "run", "--worst", "--scenario", "snake")
    assert done.code == 2
    assert "--worst orders episodes by the value lost, and snake has no exact values of moves" in done.err


def test_a_step_says_what_happened_and_the_end_says_why():
    assert "bumped into the edge" in view(an_episode(response="left", rounds=1), 0).head[-1].plain
    won = an_episode(rounds=3)
    assert view(won, 2).head[-1].plain == "action right, valid   reached the goal   reward +1   return so far 1"
    end = "end: after 3 rounds the episode ended by the rules: reached the goal"
    assert [line.plain for line in view(won, 3).head[1:]] == [end]
    assert view(won, 3).scrolling[0].plain == "a: return 1, success"
    # reasoning as a server gave it apart from the response is dimmed; a step without any has no such heading
    showing = an_episode(reasoning="Right is \x1b[2Jice,\nand the goal is there.")
    heading, thought, _, response, *_ = view(showing, 0).scrolling
    assert (heading.plain, response.plain) == ("reasoning", "response")
    assert (thought.plain.endswith("ice,\nand the goal is there."), thought.style) == (True, "dim")
    assert "\x1b" not in "".join(map("".join, pages_of(showing, 0, 80, 24)))
    assert view(showing, 1).scrolling[0].plain == "response"
    # an episode that can't be played again is shown all the same
    record = replace(showing.record, steps=(*showing.record.steps, replace(showing.record.steps[0], index=7)))
    broken = Showing.of("", record, Scenario("lake", "TextFrozenLake-v0", {}, 50, 0))
    assert "the responses don't fit the game" in broken.warning
    screen = " ".join(pages_of(broken, 0, 80, 24)[0])
    assert all(said in screen for said in ("<action>right</action>", "the responses don't fit the game"))


def replaying(folder, *arguments, columns=80, lines=24):
    return Terminal([*TEXTBENCH, "replay", str(folder), *arguments], columns, lines)


@pytest.fixture
def long_winded(small_run):
    """The run, with a response of 300 words in the first episode of greedy on frozen-lake."""
    records = lines_of(small_run)
    first = min((one for one in records if one["agents"] == {"player_0": "greedy"}), key=lambda one: one["seed"])
    step = first["steps"][0]
    step["response"] = " ".join([*(f"word{number}" for number in range(300)), step["response"]])
    write_lines(small_run, records)
    return small_run


@pytest.mark.slow
def test_a_replay_is_stepped_through_and_scrolled_with_keys(long_winded):
    """In a real pseudo-terminal of 80 columns and 24 lines, with every key."""
    with replaying(long_winded, "--agent", "greedy", "--scenario", "frozen-lake") as terminal:
        terminal.wait_for("step 1 of")
        terminal.wait_for("q quit")
        screen = terminal.screen
        assert len(screen) == 24
        assert max(map(len, screen)) <= 80
        assert "frozen-lake, seed 10000, greedy (episode 1 of 3)" in screen[0]
        assert re.search(r"action \w+, valid   reward \+0   return so far 0", screen[2])
        assert "word0 " in terminal.text
        assert "word299" not in terminal.text
        assert "word299" in terminal.press(4 * PAGE_DOWN, "word299")
        terminal.press("G", "end: after")
        assert "the episode ended by the rules: reached the goal" in " ".join(terminal.text.split())
        terminal.press("w", "step 1 of")  # greedy lost nothing here
        terminal.press("G", "end: after")
        terminal.press("g", "word0 ")
        terminal.press("j", "lines 2 to")
        terminal.press("k", "lines 1 to")
        for key, wanted in (("n", "step 2 of"), ("p", "step 1 of"), (RIGHT, "step 2 of"), (LEFT, "step 1 of")):
            terminal.press(key, wanted)
        for key, wanted in (("]", "episode 2 of 3"), ("]]]", "episode 3 of 3"), ("[", "episode 2 of 3")):
            terminal.press(key, wanted)
        terminal.press("nn", "step 3 of")  # two keys in one piece are two steps
        terminal.resize(60, 20)
        terminal.press("", "q quit")  # drawn anew without a key
        assert len(terminal.screen) == 20
        assert max(map(len, terminal.screen)) <= 60
        terminal.resize(7, 2)
        terminal.press("n", "frozen")  # the part that fits; no error
        terminal.press("q", "")
        assert terminal.ends_with() == 0
        assert terminal.was_put_back()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_replay_puts_the_terminal_back(small_run, number):
    with replaying(small_run) as terminal:
        terminal.wait_for("q quit")
        terminal.process.send_signal(number)
        assert "Traceback" not in terminal.wait_for("textbench: interrupted")
        assert terminal.ends_with() == 130
        assert terminal.was_put_back()


@pytest.mark.slow
def test_a_terminal_that_is_too_small_is_one_sentence(small_run):
    with replaying(small_run, columns=39, lines=12) as terminal:
        text = terminal.wait_for("--plain")
        assert terminal.ends_with() == 2
    assert text.startswith("textbench: the terminal has 39 columns and 12 lines; stepping")
    assert "Traceback" not in text


def test_a_replay_opens_on_the_first_scenario_agent_and_seed(textbench, small_run):
    """Episodes are written as they finish; they are shown in the order of the run's scenarios and agents."""
    lines = (small_run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (small_run / "episodes.jsonl").write_bytes(b"".join(reversed(lines)))
    for number, title in (
        (4, "frozen-lake, seed 10000, greedy ("),
        (9, "frozen-lake-slippery, seed 20002, random ("),
    ):
        assert title in textbench("replay", small_run, "--plain", "--episode", number).out
    assert (
        textbench("replay", small_run, "--plain").out == textbench("replay", small_run, "--plain", "--episode", 1).out
    )


def test_mistakes_about_a_replay_or_an_export_are_one_sentence(textbench, small_run):
    empty, stranger = (Path(shutil.copytree(small_run, name)) for name in ("empty", "stranger"))
    (empty / "episodes.jsonl").write_text("")
    text = text_without_checksums(small_run).replace('"scenario":"frozen-lake"', '"scenario":"froz"')
    (stranger / "episodes.jsonl").write_text(text)
    Path("nothing").mkdir()
    for command, sentence in (
        (("replay", "nothing"), "nothing isn't a textbench run"),
        (("replay", stranger), "its scenario 'froz' isn't in the manifest"),
        (("export", stranger, "--csv", "-", "--steps"), "its scenario 'froz' isn't in the manifest"),
        (("export", empty, "--csv", "x.csv"), "empty has no finished episode\n"),
    ):
        done = textbench(*command)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert sentence in done.err
    assert not Path("x.csv").exists()  # said before anything is written


@pytest.mark.slow
def test_view_serves_the_page_to_this_machine_until_ctrl_c(small_run):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmark.cli", "view", str(small_run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"frozen-lake" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()
