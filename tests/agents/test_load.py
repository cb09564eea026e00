"""From a spec to a player, and what people are told when there is none."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import agents
from agents import LanguageAgentPolicy, load_agent
from agents.load import runs_program
from agents.turn import Policy, is_served
from agents.wrappers import questions, wrappers
from tests.agents.baselines.own_game import Undealt
from tests.agents.helpers import install
from textgames.environments.solo import TextGameEnv

SERVER = {"base_url": "http://127.0.0.1:9/v1"}

USER_MODULE = """
from agents import Turn

class Mine:
    name = "mine"
    def __init__(self, temperature=1.0, needed_nothing=None):
        self.temperature = temperature
    def act(self, requests):
        return [Turn("up") for _ in requests]

Mine.ready = Mine(3.0)
def factory(**options):
    return Mine(options["max_tokens"])
class Demanding(Mine):
    def __init__(self, board): ...
number = 3
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    (tmp_path / "my_players.py").write_text(USER_MODULE)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_players", None)


@pytest.mark.parametrize("spec", ["random", "greedy", "planner", "human"])
def test_baselines_ignore_the_options_of_models(spec):
    policy = load_agent(spec, timeout=3.0, max_retries=2, temperature=0.0, base_url="http://x", mode=None)
    assert isinstance(policy, Policy)
    assert policy.name == spec
    assert load_agent("random", seed=4).seed == 4


def test_a_served_model_takes_all_its_options(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    prompts = tmp_path / "p.toml"
    prompts.write_text('system = "Play."\n[response]\nshout = "NOW"')
    sampling = {"temperature": 0.0, "top_p": None, "max_tokens": 9, "stop": ("X",)}
    asking = {"mode": "shout", "history": 3, "prompts": prompts, "cache": tmp_path / "cache"}
    policy = load_agent("openai:some/model:v1", **SERVER, **sampling, **asking, timeout=5.0, send_seed=True)
    assert is_served(policy)
    assert (policy.name, policy.model.name) == ("openai:some/model:v1", "some/model:v1")
    assert policy.decoding == agents.Decoding(0.0, 1.0, 9, ("X",))
    assert (policy.prompt_map.mode, policy.prompt_map.history_turns) == ("shout", 3)
    assert policy.prompt_map.texts.system == "Play."
    assert policy.model.settings["send_seed"] is True
    assert (tmp_path / "cache").exists()
    prompt_map, decoding = agents.PromptMap("direct"), agents.Decoding(max_tokens=3)
    ready = load_agent("openai:m", **SERVER, prompt_map=prompt_map, decoding=decoding, name="nick")
    assert (ready.prompt_map is prompt_map, ready.decoding is decoding, ready.name) == (True, True, "nick")
    assert load_agent("openai:m", **SERVER, system="Win.").prompt_map.texts.system == "Win."


def test_a_missing_package_is_said_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "agents.models.local.transformers", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[local\]"):
        load_agent("hf:some/model")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("plannner", r"unknown agent 'plannner' \(did you mean 'planner'\?\); textbench list has all of them"),
        ("random:x", "random has no 'x'; the player random that ships stands alone: write random"),
        ("./nothing-here", r"unknown agent './nothing-here' \(there is no such folder\)"),
        ("tests", "unknown agent 'tests' \\(a folder without agent.toml.*did you mean hf:tests"),
        ("opnai:gpt", "unknown agent 'opnai:gpt'.*no module 'opnai' can be imported"),
        ("nowhere.py:Mine", "there is no file 'nowhere.py'"),
        ("embedded:big", r"no embedded model 'big' \(tiny, .*tiny-snake are\); play your own with hf:"),
        ("agents.turn:Trn", r"agents.turn has no 'Trn' \(did you mean 'Turn'\?\)"),
    ],
)
def test_unknown_agents(spec, said):
    with pytest.raises(ValueError, match=said):
        load_agent(spec)
    with pytest.raises(TypeError, match=r"no agent has an option 'temprature' \(did you mean 'temperature'\?\)"):
        load_agent("random", temprature=0.1)


def test_user_agents(user_module):
    made = {"my_players:Mine": 0.25, "my_players:Mine.ready": 3.0, "my_players:factory": 7, "my_players.py:Mine": 0.25}
    for spec, temperature in made.items():
        policy = load_agent(spec, temperature=0.25, max_tokens=7, timeout=3.0)
        assert policy.temperature == temperature
        assert policy.act(["obs"])[0].response == "up"
    with pytest.raises(TypeError, match="'my_players:number' is a int and no policy: a policy has a name and act"):
        load_agent("my_players:number")
    with pytest.raises(TypeError, match="can't be made from options alone: missing a required argument: 'board'"):
        load_agent("my_players:Demanding")


def test_a_user_module_that_misses_something_says_what(tmp_path, monkeypatch):
    (tmp_path / "half_done.py").write_text("import surely_not_installed")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        load_agent("half_done:Mine")
    assert sys.path == path


def test_agents_of_installed_packages(user_module, tmp_path, monkeypatch):
    install(tmp_path, "[textbench.agents]\nchampion = my_players:Mine\nbroken = my_players:Nobody\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_agent("champion").name == "mine"
    with pytest.raises(ValueError, match=r"the registered agent 'broken' \(my_players:Nobody\) can't be imported"):
        load_agent("broken")
    with pytest.raises(ValueError, match="did you mean 'champion'"):
        load_agent("champoin")


def test_players_around_others_and_baselines_of_installed_packages(added_players, tmp_path, monkeypatch):
    (tmp_path / "moves.txt").write_text("up")
    around = load_agent(f"many(either(script:{tmp_path / 'moves.txt'}, random))", times=2, key="secret")
    assert (around.name, around.settings) == ("many(either(script:moves.txt, random))", {"times": 2})
    assert around.act(["obs"])[0].response == "up"
    assert questions("many(told(random, tiny))", {"times": 3}) == {"random": 3, "tiny": 3}
    assert questions("told(many(random), tiny)", {"times": 3}) == {"random": 3, "tiny": 1}
    assert [runs_program(spec) for spec in ("script:x", "many(script:x)", "many(random)")] == [True, True, False]
    with pytest.raises(ValueError, match=r"'told\(random\)' is not of the form told\(AGENT, AGENT\)"):
        load_agent("told(random)")
    agents = "[textbench.agents]\nheavy = heavy_module:Heavy\n"
    install(tmp_path, f"[textbench.wrappers]\nhalf = half_made:HALF\n{agents}")
    (tmp_path / "heavy_module.py").write_text("raise RuntimeError('there is no driver')")
    monkeypatch.syspath_prepend(tmp_path)
    # what is broken or heavy in a package concerns its own agents alone
    assert load_agent("random", seed=3).name == "random"
    with pytest.raises(ValueError, match=r"the wrapper half \(half_made:HALF\) can't be imported: No module"):
        load_agent("half(random)")
    assert wrappers()["half"].description.startswith("can't be imported")


def test_a_player_around_others_that_no_package_has_says_what_to_install(monkeypatch):
    monkeypatch.setattr("agents.wrappers.loaded", lambda *_: {})
    monkeypatch.setattr("agents.load.research_advice", lambda: "; more come with textbench-research: pip install it")
    for spec in ("search(random)", "router(random, openai:m)"):
        with pytest.raises(ValueError, match="no player around others is installed; more come with textbench-research"):
            load_agent(spec)
    with pytest.raises(ValueError, match=r"there are random, .*; more come with textbench-research"):
        load_agent("no_such_program:x.py")


@pytest.mark.slow
def test_every_public_name_is_there_and_neither_they_nor_lists_of_agents_import_anything_heavy():
    for name in agents.__all__:
        assert hasattr(agents, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = agents.nothing
    code = (
        "import sys; from agents import *; import agents.loop.rollout, agents.load; agents.load_agent('random')\n"
        "print('benchmark' in sys.modules)\n"
        "from benchmark.play.agents.catalogue import agent_kinds; agent_kinds(), agents.load.known_options()\n"
        "print([m for m in ('torch', 'transformers', 'openai', 'aiohttp', 'rich', 'vllm') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n[]\n"
    assert LanguageAgentPolicy.__module__ == "agents.policy"


def test_copies_of_an_environment_share_the_player_inside():
    inside = agents.opponent("planner")
    assert copy.deepcopy(inside)._answer is inside._answer  # specs are copied deeply, and models are large


def test_a_player_inside_is_named_as_everywhere():
    named, made = (
        gym.make("TextNim-v0", seat="player_1", opponents=who) for who in ("planner", agents.opponent("planner"))
    )
    for seed in range(3):
        assert named.reset(seed=seed) == made.reset(seed=seed)
        assert named.step("take 1 from 1") == made.step("take 1 from 1")
    for who in ("planner", {"player_0": "planner"}):
        batch = gym.make_vec("TextNim-v0", 2, vectorization_mode="vector_entry_point", seat="player_1", opponents=who)
        assert batch.reset(seed=0)[0][0] == named.reset(seed=0)[0]
    assert named.spec is not None
    for again in (pickle.loads(pickle.dumps(named)), pickle.loads(pickle.dumps(made)), named.spec.make()):
        assert again.reset(seed=3) == named.reset(seed=3)


def test_a_player_that_there_is_not_or_that_cannot_play_is_refused_when_the_environment_is_made():
    for who, told in (({"player_1": "plannerr"}, "planner"), ("planner", "greedy and planner can't play Undealt")):
        with pytest.raises(ValueError, match=told):
            TextGameEnv(Undealt, max_steps=3, opponents=who)


# ---------------------------------------------------------------- the programs of docs/players.md, as they stand there

PLAYERS = Path(__file__).parents[2] / "docs/players.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PLAYERS.read_text(), re.MULTILINE | re.DOTALL)
ASK_TOSS = "from agents import TurnRequest\nprint(TossSearch(None).plan(TurnRequest('Call it.')).action)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "more", "printed"),
    [(0, "", "<action>right</action>!!!\n"), (1, "", "40000 {'player_0': "), (2, ASK_TOSS, "tails\n")],
    ids=["a provider", "a rollout", "a search player"],
)
def test_programs_run_and_print_what_they_should(number, more, printed, tmp_path):
    assert len(PROGRAMS) == 3
    command = [sys.executable, "-W", "error", "-c", PROGRAMS[number] + more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
