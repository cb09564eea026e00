"""``.ci/entries``: what a workflow does with a proposed entry, in a repository of its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def proposal(tmp_path):
    """A repository with one entry at ``base``, and whatever a test then commits."""
    git(tmp_path, "init", "--initial-branch", "main")
    shutil.copytree(ROOT / "leaderboards/random", tmp_path / "leaderboards/random")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "the project")
    git(tmp_path, "tag", "base")
    return tmp_path


def check(folder: Path, *options: str, message: str = "a proposal") -> tuple[int, str]:
    git(folder, "add", ".")
    git(folder, "commit", "--allow-empty", "-m", message)
    command = [sys.executable, str(ROOT / ".ci/entries"), "--repository", str(folder), "--base", "base", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_what_isnt_an_entry_is_refused_and_not_played(proposal):
    shutil.copytree(proposal / "leaderboards/random", proposal / "leaderboards/mine")
    (proposal / "leaderboards/mine/conftest.py").write_text("raise SystemExit('run by the check')")
    (proposal / "setup.py").write_text("")
    (proposal / "leaderboards/random/episodes.jsonl").unlink()
    code, told = check(proposal)
    assert code == 1
    assert "leaderboards/random/episodes.jsonl is removed" in told
    refused = [line.split(": ")[1] for line in told.splitlines() if line.startswith("refused")]
    assert refused == ["leaderboards/mine/conftest.py", "setup.py", "leaderboards/random/episodes.jsonl"]
    assert "valid" not in told


def remove(entry: Path) -> None:
    shutil.rmtree(entry)


def overwrite(entry: Path) -> None:
    (entry / "episodes.jsonl").write_text("{}\n")


def exchange_for_a_link(entry: Path) -> None:
    (entry / "manifest.json").unlink()
    (entry / "manifest.json").symlink_to("episodes.jsonl")


def move(entry: Path) -> None:
    entry.rename(entry.with_name("mine"))


@pytest.mark.parametrize("how", [remove, overwrite, exchange_for_a_link, move])
def test_an_entry_of_another_is_kept(proposal, how):
    how(proposal / "leaderboards/random")
    for options in (("--kept",), ()):
        code, told = check(proposal, *options)
        assert code == 1
        assert "refused: leaderboards/random/" in told
        assert "Replaces-Entry: random" in told
    code, told = check(proposal, "--kept", message="a lie\n\nReplaces-Entry: greedy")
    assert code == 1
    assert check(proposal, "--kept", message="mine\n\nReplaces-Entry: random") == (0, "every entry is kept\n")


def test_whatever_else_changes_entries_are_kept(proposal):
    shutil.copytree(proposal / "leaderboards/random", proposal / "leaderboards/mine")
    (proposal / "leaderboards/README.md").write_text("# page\n")
    (proposal / "setup.py").write_text("")
    assert check(proposal, "--kept") == (0, "every entry is kept\n")


def test_a_link_is_no_file_of_an_entry(proposal):
    entry = proposal / "leaderboards/mine"
    entry.mkdir()
    shutil.copy(proposal / "leaderboards/random/manifest.json", entry)
    (entry / "episodes.jsonl").symlink_to("/etc/passwd")
    code, told = check(proposal)
    assert code == 1
    assert "leaderboards/mine/episodes.jsonl: isn't a file" in told


def test_a_suites_entries_and_page_are_in_its_own_folder(proposal):
    """An entry in there needs the suite's scenarios; a commit that replaces it names the suite and the agent."""
    suite = proposal / "leaderboards/planning"
    for folder in (suite, suite / "deeper"):
        shutil.copytree(proposal / "leaderboards/random", folder / "random")
        (folder / "README.md").write_text("# page\n")
    refused = [line.split(": ")[1] for line in check(proposal)[1].splitlines()]
    assert refused == [
        f"leaderboards/planning/deeper/{name}"
        for name in ("README.md", "random/episodes.jsonl", "random/manifest.json")
    ]
    shutil.rmtree(suite / "deeper")
    code, told = check(proposal)
    assert code == 1
    assert "refused: leaderboards/planning/random: manifest.json: scenario 'frozen-lake-big' is missing" in told
    git(proposal, "tag", "-f", "base")
    (suite / "random/manifest.json").write_text("{}")
    assert "Replaces-Entry: planning/random" in check(proposal, "--kept", message="mine\n\nReplaces-Entry: random")[1]
    assert check(proposal, "--kept", message="mine\n\nReplaces-Entry: planning/random")[0] == 0


@pytest.mark.slow
def test_a_changed_claim_is_named(proposal):
    manifest = proposal / "leaderboards/random/manifest.json"
    claims = json.loads(manifest.read_text())
    claims["scenarios"]["frozen-lake"]["kwargs"]["size"] = 3
    manifest.write_text(json.dumps(claims))
    code, told = check(proposal, message="mine\n\nReplaces-Entry: random")
    assert code == 1
    assert "leaderboards/random/manifest.json replaces what another change brought" in told
    assert "refused: leaderboards/random: manifest.json: scenarios.frozen-lake.kwargs.size is 3" in told


@pytest.mark.slow
def test_a_new_entry_is_played_again(proposal):
    shutil.copytree(ROOT / "leaderboards/greedy", proposal / "leaderboards/greedy")
    code, told = check(proposal)
    assert (code, told.partition(",")[0]) == (0, "leaderboards/greedy: valid")


def test_the_workflow_runs_the_projects_own_check():
    workflow = yaml.safe_load((ROOT / ".github/workflows/entries.yml").read_text())
    job = workflow["jobs"]["replay"]
    assert workflow["permissions"] == {"contents": "read"}
    first, second = (step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/checkout"))
    assert first["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert "ref" not in second  # the merge, whose first parent is the base
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [
        "pip install -c project/constraints.txt ./project",
        "python project/.ci/entries --repository proposal --base HEAD^1",
    ]
    assert (ROOT / ".ci/entries").stat().st_mode & 0o100
