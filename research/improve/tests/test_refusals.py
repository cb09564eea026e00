"""What an improver can't do is one sentence, said before anything is played, and leaves the folder free."""

from pathlib import Path

import pytest

from agents.common.locking import LOCK_NAME

DEAD = ("--base-url", "http://127.0.0.1:9/v1")  # where nothing answers
SECONDS = "seconds is a number above 0 and up to 3600, got -1"

CASES = (
    ("imitate planner frozen-lake", (), "the weights of 'planner' can't be trained here"),
    ("imitate tiny frozen-lake", ("--mode", "dirct"), "did you mean 'direct'"),
    ("imitate tiny frozen-lake", ("--set", "teacher=tiny"), "the teacher 'tiny' is a language model"),
    ("imitate tiny frozen-lake", ("--set", "examples"), "--set takes OPTION=VALUE, got 'examples'"),
    ("imitate hf:tinny frozen-lake", ("--set", "examples=2"), "tinny"),
    ("world-model tiny tic-tac-toe frozen-lake", (), "tic-tac-toe has several players"),
    ("world-model tiny frozen-lake", ("--mode", "direct"), "which would hold for its model of the world, too"),
    ("program planner tic-tac-toe", (), "'planner' has no language model to ask"),
    ("program openai:m frozen-lake", (*DEAD, "--set", "seconds=-1"), SECONDS),
    ("code-model openai:good tic-tac-toe", DEAD, "one player unless search=text, got tic-tac-toe"),
    ("code-model openai:good frozen-lake", ("--set", "search=fan"), "search is one of chain, tree, text, got 'fan'"),
    ("library openai:m frozen-lake", (*DEAD, "--prompts", "all"), "is asked in several wordings: name one of them"),
    ("library openai:m frozen-lake", ("--base-url", "http://me:hunter2@localhost:1/v1"), "holds a secret"),
    (
        "offline openai:m frozen-lake snake",
        (*DEAD, "--set", "method=context"),
        "are of one scenario, got",
    ),
    ("internalise tiny frozen-lake", (), "document = None tells nothing: name a text file that says how to play"),
    ("mixed tiny frozen-lake", ("--set", "easy=2"), "the option easy of mixed is above 0 and at most 1, got 2"),
    ("lspo tiny frozen-lake", (), "lspo is for speeches in Werewolf, got frozen-lake: name werewolf-5 or werewolf-7"),
)


@pytest.mark.parametrize(("what", "more", "said"), CASES)
def test_what_can_not_be_done_is_one_sentence_and_leaves_the_folder_free(textbench, workplace, what, more, said):
    method, agent, *scenarios = what.split()
    if method in ("lspo", "mixed"):
        pytest.importorskip("trl")
    done = textbench("improve", method, "--agent", agent, "--scenario", *scenarios, "--out", "o", "--quiet", *more)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert said in done.err
    assert "hunter2" not in done.err
    assert {path.name for path in Path("o").glob("*")} <= {LOCK_NAME}
