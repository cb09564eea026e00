"""Every command that takes a folder, on folders whose texts name code: nothing of it is imported, nothing of it runs.

The commands are those of the tables of :mod:`benchmark.cli`; the working directory is the hostile folder's parent and
stands on ``sys.path``, as under ``python -m``.
"""

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

import pytest

from agents.common.settings import Parser
from benchmark.cli import COMMANDS, LAB, TRAIN, settings_of
from tests.benchmark.cli.test_wrong_files import CASES as WITH_WRONG_FILES
from tests.benchmark.cli.test_wrong_files import LEARN

MARK = "from pathlib import Path\nPath({marker!r}).touch()\n"
PLUGIN = """
from agents.baselines.random import RandomPlayer
from textgames import register
from textgames.frozen_lake import FrozenLake
class Player(RandomPlayer):
    pass
class Game(FrozenLake):
    pass
register("Game-v0", Game, max_steps=8)
"""
ONE_EPISODE = ("--scenario", "frozen-lake", "--episodes", "1", "--quiet")

CASES = (
    # where a user names a file of code it is meant, and a page is served below on a port that is taken
    *(case for case in WITH_WRONG_FILES if not any("{}/" in word for word in case) and case[0] != "view"),
    ("run", "--agent", "{}", *ONE_EPISODE),
    ("run", "--agent", "hf:{}", *ONE_EPISODE),
    ("run", "--agent", "many({})", *ONE_EPISODE),
    ("run", "--season", "{}", "--agent", "random", "--quiet"),
    ("plan", "--agent", "{}", "--agent", "random", "--scenario", "frozen-lake", "--detect", "0.1", "--quiet"),
    ("play", "frozen-lake", "--against", "{}"),
    ("submit", "{}", "--agent", "random", "--out", "made"),
    ("submit", "{run}", "--agent", "random", "--out", "{}"),
    ("submit", "{run}", "--agent", "random", "--out", "made", "--season", "{}"),
    ("validate", "{}", "--season", "{}"),
    ("validate", "{run}", "--season", "{}"),
    ("merge", "{run}", "--out", "{}"),
    ("export", "{run}", "--eval-results", "{}", "--benchmark", "a/b"),
    ("export", "{run}", "--every-eval-ever", "{}", "--organization", "a"),
    ("warmup", *LEARN, "--teacher", "{}", "--eval-episodes", "0", "--out", "made"),
    ("serve", "kuhn-poker", "--against", "{}", "--port", "{port}"),
    ("view", "{}", "--no-browser", "--port", "{port}"),
    ("train", "--resume", "{}"),
    ("train", "--resume", "{}/last"),
)
BY_THE_USER = {"--allow"}
"""Options with which the user names code, which is imported on purpose."""
OF_FOLDERS = {"DIR", "RUN", "ENTRY", "SPEC", "AGENT", "A"}
"""What an option or argument is called in ``--help`` that may be a folder."""


def arguments(command: str) -> Iterator[tuple[str, Parser]]:
    """Each command with its parser: ``season check`` is one."""
    kind = settings_of(command)
    kinds = {command: kind} if isinstance(kind, type) else {f"{command} {step}": one for step, one in kind.items()}
    yield from ((name, Parser(one, name)) for name, one in kinds.items())


def parsed(parser: Parser, words: tuple[str, ...]) -> dict[str, object]:
    """The arguments by name; none of a command line that the parser itself refuses."""
    try:
        return vars(parser.parse_args([word.replace("{port}", "1") for word in words]))
    except SystemExit:
        return {}


def untried(name: str, cases: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Each argument of a command that may be a folder and isn't one in any case, with the command."""
    for command, parser in arguments(name):
        words = command.split()
        given = [parsed(parser, case[len(words) :]) for case in cases if [*case[: len(words)]] == words]
        taken = {key for case in given for key, value in case.items() if "{}" in str(value)}
        assert given, f"{command} isn't tried"
        for action in parser._actions:
            flag = (action.option_strings or [action.dest])[0]
            if action.metavar in OF_FOLDERS and action.dest not in taken and flag not in BY_THE_USER:
                yield command, flag


def test_every_command_and_every_argument_that_takes_a_folder_is_here():
    missing = [one for name in {*COMMANDS, *LAB} - {TRAIN} for one in untried(name, CASES)]
    assert missing == []
    assert TRAIN in {case[0] for case in CASES}


# ---- folders ---------------------------------------------------------------------------------------------------------


def write(folder: Path, name: str, data: object) -> bytes:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
    return (folder / name).read_bytes()


def run(folder: Path, own: Path, kind: str = "textbench-run", **settings: object) -> dict:
    shutil.copytree(own, folder, dirs_exist_ok=True)
    manifest = json.loads((own / "manifest.json").read_text())
    manifest["kind"] = kind
    if kind == "textbench-entry":
        manifest["agent"] = "random"
        manifest["agents"] = [card for card in manifest["agents"] if card["name"] == "random"]
    manifest["settings"].update(settings)
    write(folder, "manifest.json", manifest)
    return manifest


def with_game(folder: Path, own: Path, kind: str, **scenario: object) -> None:
    manifest = run(folder, own, kind)
    manifest["scenarios"]["frozen-lake"].update(scenario)
    write(folder, "manifest.json", manifest)


def training(folder: Path, *lines: str) -> None:
    checkpoint = Path("checkpoints/iteration-000001")
    write(folder / checkpoint, "trainer_state.pt", "")
    write(folder / checkpoint, "msgrpo.toml", "\n".join(['model = "tiny"', *lines]))
    (folder / "last").symlink_to(checkpoint)


def model(folder: Path) -> None:
    """A model of a kind that transformers doesn't know, and which brings its own code."""
    code = dict.fromkeys(("AutoConfig", "AutoModelForCausalLM"), "plugin.Player")
    write(folder, "config.json", {"model_type": "own", "auto_map": {**code, "AutoTokenizer": ["plugin.Player", None]}})
    tokenizer = {"tokenizer_class": "Player", "auto_map": {"AutoTokenizer": ["plugin.Player", None]}}
    write(folder, "tokenizer_config.json", tokenizer)


def agent(folder: Path, spec: str, *lines: str) -> None:
    write(folder, "agent.toml", "\n".join([f"spec = {json.dumps(spec)}", *lines]))


def improvement(folder: Path) -> None:
    asked = {"method": "imitate", "options": {}, "agent": {"spec": player(folder)}, "scenarios": [game(folder)]}
    write(folder, "improvement.json", {"improvement": {**asked, "budget": {}, "seed": 0}})


def game(folder: Path) -> str:
    return f"{folder.name}.plugin:Game-v0"


def player(folder: Path) -> str:
    return f"{folder.name}.plugin:Player"


TRUSTING = {"random": {"trust_remote_code": True}}
RUNS = (
    lambda it, own: with_game(it, own, "textbench-run", env_id=game(it)),
    lambda it, own: with_game(it, own, "textbench-entry", env_id=game(it)),
    lambda it, own: with_game(it, own, "textbench-run", kwargs={"game": player(it)}),
    lambda it, own: run(it, own, agents=[f"random={player(it)}", f"greedy={it.name}/plugin.py:Player"]),
    lambda it, own: run(it, own, scenarios=[game(it)]),
    lambda it, own: run(it, own, agents=[f"random=hf:{it.name}", "greedy"], agent_options=TRUSTING),
)
AGENTS = (
    lambda it: agent(it, player(it)),
    lambda it: agent(it, f"{it.name}/plugin.py:Player"),
    lambda it: agent(it, "many(plugin.py:Player)"),
    lambda it: agent(it, f"hf:{it.name}", "trust_remote_code = true"),
)
TRAININGS = (
    lambda it: training(it, f'scenarios = ["{game(it)}"]'),
    lambda it: training(it, *LAKE, f'credit = "{player(it)}"'),
    lambda it: training(it, f'eval_opponent = "{player(it)}"'),
    lambda it: training(it, *LAKE, f'around = "told(hf:{it.name}, learner)"', TRUST),
    # modules that are called like a provider of models
    lambda it: training(it, 'scenarios = ["hf:Game-v0"]'),
    lambda it: training(it, 'credit = "hf:Player"', *LAKE),
    lambda it: training(it, 'engine = "hf:Player"', *LAKE),
)
LAKE, TRUST = ('scenarios = ["frozen-lake"]',), "[rollout]\naround_options = {trust_remote_code = true}"
FOLDERS = [*range(max(map(len, (RUNS, AGENTS, TRAININGS))))]
"""Each is a run, an agent, a training, an improvement and a model: a command reads what it wants."""


@pytest.fixture
def place(textbench, workplace, added_players, small_run, monkeypatch):
    """An empty working directory, on the path of imports; what was imported from it is forgotten."""
    here = workplace / "here"
    here.mkdir()
    shutil.copytree(small_run, here / "own")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(workplace / "cache"))
    monkeypatch.setattr("sys.stdin", StringIO())  # no terminal, and nothing to wait for
    yield here
    for module in imported(here):
        sys.modules.pop(module, None)


def imported(place: Path) -> list[str]:
    """The modules, by their names, whose file or folder lies in the place, or that transformers copied from there."""
    found = []
    for name, module in [*sys.modules.items()]:
        inside = getattr(getattr(module, "__spec__", None), "submodule_search_locations", None)
        files = [getattr(module, "__file__", None), *(inside or ())]
        if any(str(file).startswith(f"{place}{os.sep}") for file in files) or name.startswith("transformers_modules."):
            found.append(name)
    return found


def make(number: int, place: Path) -> Path:
    """A hostile folder in the place, each of whose modules leaves a trace when it is imported."""
    folder = place / ("autumn" if number < 4 else "hf")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    RUNS[number % len(RUNS)](folder, place / "own")
    for kinds in (AGENTS, TRAININGS):
        kinds[number % len(kinds)](folder)
    improvement(folder)
    model(folder)
    mark = MARK.format(marker=str(place / "MARKER"))
    write(folder, "__init__.py", mark + PLUGIN)
    write(folder, "plugin.py", mark + PLUGIN)
    return folder


FIRST = {case[0]: case for case in reversed(CASES) if "--model" not in case}


def slow_or_not(case: tuple[str, ...]) -> object:
    """The case as a parameter; the default tests have the first one of each command, and load no model for it."""
    marks = () if FIRST[case[0]] == case else pytest.mark.slow
    return pytest.param(case, id=" ".join(case), marks=marks)


@pytest.mark.parametrize("case", [slow_or_not(case) for case in CASES])
def test_no_command_imports_what_a_folder_names(textbench, place, case):
    if case[0] in ("train", "warmup", "inspect", "exploitability"):
        pytest.importorskip("torch")
    with socket.socket() as taken:  # so that what serves ends as soon as it would serve
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for number in FOLDERS:
            folder = make(number, place)
            shutil.rmtree(place / "made", ignore_errors=True)
            words = [
                word.replace("{}", folder.name).replace("{run}", "own").replace("{port}", str(taken.getsockname()[1]))
                for word in case
            ]
            done = textbench(*words)
            assert done.code in (0, 1, 2), (number, done)
            assert not (place / "MARKER").exists(), (number, done)
            assert imported(place) == [], (number, done)
            assert (place / "own/manifest.json").is_file(), (number, done)
            shutil.rmtree(folder)
