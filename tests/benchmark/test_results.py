"""What Python gets of results: tables that print, comparisons and data frames."""

import json
import pickle
import sys
from pathlib import Path

import pytest

import benchmark
from benchmark.show.draw import to_html
from benchmark.show.table import text_table
from tests.benchmark.helpers import refused

ENTRIES = Path(__file__).parents[2] / "leaderboards"


@pytest.fixture
def small(small_run):
    return benchmark.read_results(small_run, quiet=True)


def test_the_leaderboard_prints_as_at_the_terminal(small, textbench, capsys):
    shown = textbench("leaderboard", "small").out
    leaderboard = small.leaderboard()
    leaderboard.print()
    assert capsys.readouterr().out == shown
    full = textbench("leaderboard", "small", "--stats").out
    assert len(full) > 3 * len(shown)
    leaderboard.print(stats=True)
    assert capsys.readouterr().out == full
    assert str(leaderboard) == repr(leaderboard) == full.rstrip("\n")
    assert leaderboard.to_markdown() == textbench("leaderboard", "small", "--markdown").out
    assert next(row["agent"] for row in leaderboard.scores if row["scenario"] == "frozen-lake") == "greedy"
    assert {row["agent"] for row in leaderboard.overall} == {"random", "greedy"}
    assert "<table>" in small._repr_html_() == leaderboard._repr_html_()


def test_html_holds_no_markup_of_names_or_reasons():
    page = to_html([text_table("<b>title", ("<agent", "n"), (("<script>alert(1)</script>", "\x1b[31m1"),), ("a & b",))])
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;title" in page
    assert "\\u001b[31m1" in page
    assert "a &amp; b" in page


def test_a_comparison_is_the_commands(small, textbench):
    comparison = small.compare("greedy", "random")
    assert comparison.document == json.loads(textbench("compare", "greedy", "random", "--in", "small", "--json").out)
    rows = {row["scenario"]: row for row in comparison.rows}
    assert rows["frozen-lake"]["difference"]["value"] > 0
    assert small.compare("random", "greedy").rows[0]["difference"]["value"] < 0
    assert [row["scenario"] for row in small.compare(scenarios=["frozen-lake"]).rows] == ["frozen-lake"]
    assert small.scenarios == ("frozen-lake", "frozen-lake-slippery")
    assert str(comparison).rstrip() == textbench("compare", "greedy", "random", "--in", "small").out.rstrip()
    assert "A = greedy, B = random" in comparison._repr_html_()
    for place in ("no/where", "small/manifest.json"):
        said = textbench("compare", place, "greedy", "--in", "small").err
        assert f"{place} is neither a run's folder nor an agent of these results" in said
    for agents, scenarios, said in (
        (("greedy",), (), "comparing takes two agents, there is greedy; in these results: random, greedy"),
        (("greedy", "greedy"), (), "comparing takes different agents, got 'greedy' twice"),
        (("greedy", "random"), ("snak",), "no scenario in these results named 'snak'"),
    ):
        with pytest.raises(benchmark.UsageError, match=said):
            small.compare(*agents, scenarios=scenarios)


def test_folders_and_agents_as_people_give_them(small):
    results = benchmark.read_results(ENTRIES / "planner", ENTRIES / "greedy")
    assert results.agents == ("planner", "greedy")
    assert len(results.folders) == 2
    assert repr(results).startswith("<Results: planner, greedy on frozen-lake")
    with pytest.raises(benchmark.UsageError, match="there is no nowhere"):
        benchmark.read_results("nowhere")
    with pytest.raises(benchmark.UsageError, match=r"read_results\('runs/a', 'runs/b'\), got \['small'\]"):
        benchmark.read_results(["small"])  # type: ignore[arg-type]
    assert benchmark.read_results("small", agents="random", quiet=True).agents == ("random",)


def test_they_are_read_on_wherever_the_program_goes(workplace, monkeypatch):
    results = benchmark.evaluate("planner", scenarios=["bandit", "snake"], episodes=2, out="run", quiet=True)
    rates = {row["scenario"]: row["success_rate"] for row in results.leaderboard().scores}
    assert (rates["bandit"], rates["snake"]["value"]) == (None, 1), "the bandit knows no success"
    monkeypatch.chdir("/")
    assert len(results.to_pandas()) == 4
    again = pickle.loads(pickle.dumps(results))
    assert str(again.leaderboard()) == str(results.leaderboard())
    (results.folders[0] / "episodes.jsonl").unlink()
    with pytest.raises(benchmark.BenchmarkError, match=r"episodes\.jsonl"):
        results.document()
    with pytest.raises(TypeError, match=r"evaluate\(\.\.\., out=FOLDER\)"):
        pickle.dumps(benchmark.evaluate("random", scenarios="snake", episodes=1, quiet=True))


def test_a_folder_that_is_named_twice_is_read_once(small, textbench):
    Path("link").symlink_to("small")
    shown = textbench("leaderboard", "small").out
    for again in ("small", "./link", Path("small").resolve(), "."):  # the last is a folder of folders
        assert textbench("leaderboard", "small", again).out == shown
    Path("circle").symlink_to("circle")
    for command in (("leaderboard", "circle"), ("merge", "circle", "--out", "both")):
        assert "there is no circle" in textbench(*command).err


def test_a_folder_of_runs_has_no_run_elsewhere(small, textbench):
    """A link in it would put a run of the reader's into the tables and the page that are made of it."""
    Path("theirs").mkdir()
    Path("theirs/a").symlink_to(Path("small").absolute())
    Path("theirs/b").symlink_to("a")
    for command in (("leaderboard", "theirs", "--html", "page.html"), ("export", "theirs", "--csv", "-")):
        refused(textbench(*command), "can't read theirs/a: it is a link out of theirs, to ")
    assert not Path("page.html").exists()
    assert textbench("leaderboard", "theirs/a").code == 0, "a link that the user names is meant"


def test_without_pandas_there_is_advice(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(benchmark.UsageError, match=r"data frames need pandas: pip install .*\[pandas\]"):
        small.to_pandas()
    with pytest.raises(benchmark.UsageError, match="no table of results named 'epsodes'; did you mean 'episodes'"):
        small.to_pandas("epsodes")  # type: ignore[arg-type]


def test_data_frames(small, textbench):
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    episodes = small.to_pandas()
    assert len(episodes) == 12
    written = textbench("export", "small", "--csv", "-").out.splitlines()
    assert list(episodes.columns) == written[0].split(",")
    assert episodes.to_csv(index=False).splitlines()[0] == written[0]
    assert str(episodes["seed"].dtype) == "Int64"
    assert episodes["success"].sum() == sum(line.split(",")[7] == "true" for line in written[1:])
    means = episodes.groupby(["agent", "scenario"])["return"].mean()
    scores = small.to_pandas("scores").set_index(["agent", "scenario"])
    assert scores["mean_return"].sort_index().tolist() == pytest.approx(means.sort_index().tolist())
    assert (scores["mean_return_low"] <= scores["mean_return"]).all()
    assert scores.loc[("greedy", "frozen-lake"), "reference_value"] == 1.0
    steps = small.to_pandas("steps")
    assert len(steps) == episodes["length"].sum()
    assert set(steps["action"]) <= {"up", "down", "left", "right"}
    differences = small.compare("greedy", "random").to_pandas()
    assert list(differences["difference_low"] <= differences["difference"]) == [True, True]
    # steps tell which table they were played at
    played = benchmark.evaluate(["planner", "random", "greedy"], scenarios="kuhn-poker", episodes=1, quiet=True)
    which = ["scenario", "agent", "player", "opponents", "seed"]
    sums = played.to_pandas("steps").groupby(which)["reward"].sum()
    returns = played.to_pandas().set_index(which)["return"]
    assert len(returns) == 12
    assert sums.sort_index().tolist() == pytest.approx(returns.sort_index().tolist())
