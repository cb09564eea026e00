"""An agent as a folder: what its file says is in the run, what is given by name goes before it, and it may be moved."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents.common.toml import to_toml
from benchmark.errors import UsageError
from benchmark.play.claims import AGENT_NAME, approve_agent_folder, with_agent_folders
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import counted, refused

pytestmark = pytest.mark.usefixtures("added_players")
RUN = ("run", "--scenario", "frozen-lake", "--episodes", 2, "--quiet", "--json")


def write(folder, table):
    (folder / AGENT_NAME).write_text("".join(f"{option} = {to_toml(value)}\n" for option, value in table.items()))


def test_it_plays_under_its_own_name_with_its_options_and_what_is_given_goes_before_them(textbench, workplace):
    Path("players/mine").mkdir(parents=True)
    write(Path("players/mine"), {"spec": "random", "seed": 3})
    for agent, name, seed, more in (
        ("players/mine", "mine", 3, ()),
        ("other=players/mine", "other", 4, ("--set", "other.seed=4")),
    ):
        assert textbench(*RUN, "--agent", agent, *more, "--out", name).code == 0
        manifest = RunFolder.open(Path(name)).manifest
        assert (manifest["agents"][0]["name"], manifest["agents"][0]["spec"]) == (name, "random")
        assert manifest["settings"]["agent_options"] == {name: {"seed": seed}}
    assert textbench("resume", "mine", "--episodes", 3, "--quiet").code == 0
    assert counted("mine").count(b"\n") == 3


@pytest.mark.parametrize(
    ("table", "there"),
    [
        ({"spec": "hf:weights", "prompts": "words.toml"}, ("hf:two/weights", {"prompts": "two/words.toml"})),
        ({"spec": "tiny", "prompts": "without-clock"}, ("tiny", {"prompts": "without-clock"})),
        ({"spec": "script:own.py", "seconds": 2.0}, ("script:two/own.py", {"seconds": 2.0})),
    ],
)
def test_its_own_files_are_found_wherever_it_is_moved_and_need_no_leave(textbench, workplace, table, there):
    path = workplace / "one"
    (path / "weights").mkdir(parents=True)
    (path / "words.toml").write_text('system = "Be quick."\n')
    (path / "own.py").write_text("def act(observation, legal):\n    return legal[0]\n")
    write(path, table)
    path.rename("two")
    options = with_agent_folders(RunOptions(agents=("two",)))
    assert (options.agents, options.agent_options) == ((f"two={there[0]}",), {"two": there[1]})


@pytest.mark.parametrize(
    ("spec", "other"), [("told(tiny, one)", "tiny"), ("many(either(tiny-lake, one))", "tiny-lake")]
)
def test_an_option_of_a_folder_that_would_reach_another_player_is_refused(textbench, workplace, spec, other):
    tables = {"one": {"spec": "tiny", "temperature": 0.1}, "two": {"spec": "tiny"}}
    tables["pair"] = {"spec": "many(random)", "times": 2}
    for name, table in tables.items():
        Path(name).mkdir()
        write(Path(name), table)
    refused(
        textbench(*RUN, "--agent", f"r={spec}", "--out", "a"),
        f"textbench: {spec}: one/agent.toml has temperature = 0.1, which would hold for {other} too, as options do for "
        "all agents inside of one: give it to each of them, or say what is to hold for all with "
        "--set r.temperature=...\n",
    )
    assert not Path("a").exists()
    said = with_agent_folders(RunOptions(agents=(f"r={spec}",), sets=("r.temperature=0.5",)))
    assert said.by_agent["r"]["temperature"] == 0.1, "what is said goes before it, as ever"
    write(Path("two"), tables["one"])
    for fine in ("either(one, random)", "either(one, two)", "many(one)"):
        assert with_agent_folders(RunOptions(agents=(f"r={fine}",))).by_agent == {"r": {"temperature": 0.1}}
    approve_agent_folder(Path("pair"), tables["pair"])  # and that of a wrapper isn't that of one around it
    with pytest.raises(UsageError, match="has times = 2, which would hold for many too"):
        with_agent_folders(RunOptions(agents=("r=many(pair)",)))


HERE = "http://127.0.0.1:9/v1"


def test_a_folder_of_anybody_brings_no_code_and_no_server_that_nobody_has_named(textbench, workplace):
    Path("x").mkdir()
    Path("evil.py").write_text("from pathlib import Path\n\nPath('harm').touch()\n")
    write(Path("x"), {"spec": "evil.py:Agent"})
    done = textbench(*RUN, "--agent", "x")
    assert done.err == (
        "textbench: x names the code evil.py:Agent, which you haven't; if you trust this folder, say so: "
        "--allow evil.py:Agent\n"
    )
    assert not Path("harm").exists()
    write(Path("x"), {"spec": "openai:m", "base_url": HERE, "key_variable": "SECRET"})
    done = textbench(*RUN, "--agent", "you=x")
    assert done.code == 2
    assert done.err.endswith(
        "if you trust this folder, say so: --allow openai:m --set you.base_url=http://127.0.0.1:9/v1 "
        "--set you.key_variable=SECRET\n"
    )
    allowed = RunOptions(agents=("x",), allow=("openai:m",))
    with pytest.raises(UsageError, match="names the key_variable SECRET, which you haven't"):
        with_agent_folders(replace(allowed, sets=(f"x.base_url={HERE}",)))
    named = with_agent_folders(replace(allowed, sets=(f"x.base_url={HERE}", "x.key_variable=SECRET")))
    assert named.agents == ("x=openai:m",)
    assert with_agent_folders(RunOptions(agents=("x",))) == replace(named, sets=(), allow=()), "it is asked for once"
    write(Path("x"), {"spec": "openai:m", "base_url": HERE, "key_variable": "SECRET", "max_tokens": 9999})
    with pytest.raises(UsageError, match="names the paid model openai:m, the base_url"):
        with_agent_folders(RunOptions(agents=("x",)))
    approve_agent_folder(Path("x"), {"spec": "openai:m", "base_url": HERE, "key_variable": "SECRET"})
    assert with_agent_folders(RunOptions(agents=("x",))).agents == ("x=openai:m",)


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ({"spec": "many(openai:gpt-5-pro)"}, "--allow openai:gpt-5-pro"),
        ({"spec": "hf:someones/model", "revision": "main"}, "--allow someones/model"),
        ({"spec": "hf:weights"}, "--allow someones/base"),
        ({"spec": "tiny", "adapter": "someones/adapter"}, "--set x.adapter=someones/adapter"),
        ({"spec": "tiny", "prompts": "linked.toml"}, "--set x.prompts=linked.toml"),
        ({"spec": "many(script:linked.toml)"}, "--allow script:x/linked.toml"),
        # by which whoever wrote the program would know the seeds
        ({"spec": "script:own.py", "key": "well-known"}, "--set x.key=well-known"),
    ],
)
def test_a_folder_spends_nothing_fetches_nothing_and_reads_nothing_outside_of_it(textbench, workplace, table, advice):
    Path("secret.toml").write_text('system = "the secret"\n')
    weights = Path("x/weights")
    weights.mkdir(parents=True)
    (weights / "adapter_config.json").write_text('{"base_model_name_or_path": "someones/base"}')
    Path("x/own.py").write_text("def act(observation, legal):\n    return legal[0]\n")
    Path("x/linked.toml").symlink_to(Path("secret.toml").absolute())
    write(Path("x"), table)
    done = textbench(*RUN, "--agent", "x")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.endswith(f"if you trust this folder, say so: {advice}\n")
    assert "the secret" not in done.err


def test_what_is_wrong_with_one_is_one_sentence(textbench, workplace):
    Path("x").mkdir()
    for text, said in {
        "spec = 3": 'needs spec = "..."',
        'spec = "tinny"': "did you mean 'tiny'",
        'spec = "random"\nsed = 1': "no option of the agent 'x' (random) named 'sed'; did you mean 'seed'",
    }.items():
        Path("x/agent.toml").write_text(text)
        refused(textbench(*RUN, "--agent", "x"), said)
