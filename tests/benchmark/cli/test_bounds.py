"""Folders that would fill the memory or take all time there is: each is refused in one sentence, and at once."""

import json
import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from agents.common import reading
from agents.models.cache import ResponseCache, ResponseCacheError
from benchmark.runs.manifest import MOST_ROUNDS, MOST_SCENARIOS
from tests.benchmark.helpers import READING, change_manifest, read_by_all, refused

SECONDS = 60  # for everything of a test, the import of transformers included: without bounds it would be hours


class NotDone(BaseException):
    """What nothing catches."""


@pytest.fixture(autouse=True)
def watchdog():
    """Ends a test that doesn't end."""

    def bark(*_):
        raise NotDone(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def with_horizon(manifest, horizon):
    for scenario in manifest["scenarios"].values():
        scenario["horizon"] = horizon


def with_settings(manifest, **settings):
    for card in manifest["agents"]:
        card["settings"] |= settings


TOO_MUCH = {
    "rounds": (lambda m: with_horizon(m, 10**6), f"horizon must be less than or equal to {MOST_ROUNDS}, got 1000000"),
    "scenarios": (
        lambda m: m["scenarios"].update({f"s{n}": m["scenarios"]["frozen-lake"] for n in range(MOST_SCENARIOS)}),
        f"at most {MOST_SCENARIOS} items, got 2,002",
    ),
    "episodes": (
        lambda m: [row.update(seeds=[[10_000, 10**7 + 9_999]]) for row in m["matchups"]],
        "plans 40,000,000 episodes; at most 20,000,000 are read",
    ),
    "a matchup's seeds": (
        lambda m: m["matchups"][0].update(seeds=[[10_000, 10**8]]),
        "more than 10,000,000 seeds of one matchup",
    ),
    "other seats than the game has": (
        lambda m: m["matchups"][0].update(agents=["random", "greedy"]),
        "a matchup of 2 in 'frozen-lake'",
    ),
    "an agent without a card": (
        lambda m: m["matchups"][0].update(agents=["who"]),
        "has matchups of 'who' and no card of it",
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_a_manifest_of_too_much_is_refused_by_its_number(textbench, small_run, case):
    change, said = TOO_MUCH[case]
    change_manifest(small_run, change)
    for command in ("leaderboard", "resume"):
        refused(textbench(command, small_run), said)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: (m["agents"].append({**m["agents"][0], "name": "a0"}), with_settings(m, others=None)),
        lambda m: with_settings(m, prompt_map={"texts": [1]}),
        lambda m: with_settings(m, prompt_map=3, advised="tiny"),
        lambda m: with_settings(m, advised={"others": ["x"]}),
    ],
    ids=["an agent that plays nothing", "prompts without a mode", "a wrapper that is a text", "odd players inside"],
)
def test_an_odd_card_gives_no_traceback(textbench, small_run, change):
    change_manifest(small_run, change)
    read_by_all(textbench, small_run)


def test_many_rounds_are_read_and_scored_without_a_scale(textbench, small_run):
    change_manifest(small_run, lambda m: with_horizon(m, 1_001))
    done = textbench("leaderboard", small_run)
    assert done.code == 0
    assert "no normalised scores, which are computed for episodes of at most 1,000 rounds; these have up to 1,001" in (
        done.err
    )


def hostile(file: Path, kind: str) -> None:
    if file.exists():
        file.unlink()
    if kind == "a folder":
        file.mkdir()
    elif kind == "a pipe":
        os.mkfifo(file)
    elif kind == "20 GB":
        with file.open("wb") as stream:
            stream.truncate(20 * 10**9)
    else:
        file.write_bytes(
            {"nothing": b"", "not UTF-8": b"\xff\xfe{", "deep": b"[" * 100_000, "zeros": bytes(1000)}[kind]
        )


KINDS = ("a folder", "a pipe", "20 GB", "nothing", "not UTF-8", "deep", "zeros")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in ("manifest.json", "episodes.jsonl") for kind in KINDS),
        *(("answers.jsonl", kind) for kind in ("a folder", "a pipe", "20 GB", "not UTF-8")),
        *(("prompts.toml", kind) for kind in ("a folder", "a pipe", "20 GB")),
    ],
)
@pytest.mark.slow
def test_no_file_of_a_run_gives_a_traceback(textbench, small_run, monkeypatch, name, kind):
    monkeypatch.setattr(reading, "MOST_LINE", 2**20)  # or each command would read 64 MB of zeros
    hostile(small_run / name, kind)
    done = read_by_all(textbench, small_run)
    if (name, kind) == ("manifest.json", "20 GB"):
        assert all("it has 20,000,000,000 bytes, and at most 33,554,432 are read" in one for one in done)
    if (name, kind) == ("episodes.jsonl", "20 GB"):
        assert sum("it has more than 1,048,576 bytes" in one for one in done) == len(READING) - 1  # a run is no entry


def test_a_long_line_is_refused_by_the_check_of_an_entry(textbench, small_run, monkeypatch):
    from benchmark.entries import validation

    monkeypatch.setattr(validation, "manifest_problems", lambda *_: ())  # or it would be refused before
    monkeypatch.setattr(reading, "MOST_LINE", 2**20)
    entry = small_run.rename("random")
    change_manifest(entry, lambda m: m.update(kind="textbench-entry", agent="random"))
    hostile(entry / "episodes.jsonl", "20 GB")
    done = textbench("validate", entry)
    assert (done.code, "a line isn't an episode: it has more than 1,048,576 bytes" in done.err) == (1, True)


DEEP, LONG = "x = " + "[" * 100_000, f"x = {'1' * 10_000}"


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--config", "{}"),
        ("run", "--agent", "random", "--prices", "{}"),
        ("run", "--agent", "tiny", "--scenario", "frozen-lake", "--prompts", "{}"),
        ("run", "--agent", "own"),
        ("train", "--config", "{}"),
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_no_file_of_settings_gives_a_traceback(textbench, command):
    pytest.importorskip("torch")
    for number, content in enumerate(("a folder", "a pipe", "20 GB", "not UTF-8", DEEP, LONG)):
        file, folder = Path(f"{number}.toml"), Path(f"{number}")
        folder.mkdir()
        for one in (file, folder / "agent.toml"):
            hostile(one, content) if content in KINDS else one.write_text(content)
        words = (str(folder) if word == "own" else word.replace("{}", file.name) for word in command)
        done = textbench(*words)
        assert (done.code, done.err.count("\n"), done.out) == (2, 1, ""), (content[:20], done)


# ---------------------------------------------------------------- models


@pytest.fixture
def model(workplace):
    pytest.importorskip("torch")
    import agents.tiny

    shutil.copytree(Path(agents.tiny.__file__).parent / "weights" / "tiny", "model")
    return Path("model")


def play(textbench, agent="hf:./model"):
    shutil.rmtree("out", ignore_errors=True)
    return textbench("run", "--agent", agent, "--scenario", "frozen-lake", "--episodes", 1, "--quiet", "--out", "out")


CONFIGS = {
    "num_hidden_layers": (10**7, -1, "x"),
    "max_position_embeddings": (10**12,),
    "hidden_size": (10**6,),
    "num_attention_heads": (0,),
    "rope_parameters": (5, {"rope_theta": 0, "rope_type": "default"}),
    "hidden_act": ("nope",),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_no_configuration_of_a_model_gives_a_traceback(textbench, model, name):
    config = json.loads((model / "config.json").read_text())
    for value in CONFIGS[name]:
        (model / "config.json").write_text(json.dumps({**config, name: value}))
        done = play(textbench)
        assert (done.code, done.out) == (2, ""), (value, done)
        assert done.err.splitlines()[-1].startswith("textbench: agent 'hf:./model': "), (value, done.err)
        if value == 10**7:
            assert "num_hidden_layers is 10,000,000; accepted is a whole number from 1 to 1,000" in done.err


LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
TEMPLATES = {
    "loops in loops": LOOP,
    "a power": "{{ 9 ** 9 ** 9 }}",
    "a long text": "{{ 'a' * 10000000000000 }}",
    "nothing": "",
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_no_chat_template_takes_all_time(textbench, model, monkeypatch, case):
    from agents.models.local import templates

    monkeypatch.setattr(templates, "TEMPLATE_SECONDS", 0.3)
    (model / "chat_template.jinja").write_text(TEMPLATES[case])
    done = play(textbench)
    refused(done, "the chat template of", "can't be used")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of peft's, about transformers
def test_no_pattern_of_an_adapter_takes_all_time(textbench, model, monkeypatch):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    from agents.models.local.loading import adapters

    monkeypatch.setattr(adapters, "PATTERN_SECONDS", 2.0)
    base = AutoModelForCausalLM.from_pretrained(model)
    config = peft.LoraConfig(r=2, target_modules=r".*\.layers\.\d+\.self_attn\.(q|v)_proj")
    peft.get_peft_model(base, config).save_pretrained("adapter")
    shutil.copy(model / "textbench.json", "adapter/textbench.json")
    settings = json.loads(Path("adapter/adapter_config.json").read_text()) | {"base_model_name_or_path": "model"}
    Path("adapter/adapter_config.json").write_text(json.dumps(settings))
    assert play(textbench, "hf:./adapter").code == 0
    Path("adapter/adapter_config.json").write_text(json.dumps({**settings, "target_modules": r"(([a-z._0-9]+)+)+!"}))
    done = play(textbench, "hf:./adapter")
    refused(done, "its patterns take more than 2 seconds to be compared")


# ---------------------------------------------------------------- the response cache

TABLE = "CREATE TABLE responses (key TEXT PRIMARY KEY, completion TEXT) WITHOUT ROWID"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS completion FROM c"


@pytest.mark.parametrize(
    "statements",
    [
        (f"CREATE VIEW responses AS {ENDLESS}",),
        (TABLE, "CREATE TRIGGER t AFTER INSERT ON responses BEGIN DELETE FROM responses; END"),
        ("CREATE TABLE responses (key TEXT, completion TEXT, more TEXT DEFAULT (hex(zeroblob(500000000))))",),
    ],
    ids=["a view without end", "a trigger", "another form"],
)
def test_a_cache_is_one_table(workplace, statements):
    connection = sqlite3.connect("cache.db")
    for statement in (f"PRAGMA application_id = {0x74627263}", *statements):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(ResponseCacheError, match="it has other tables than the one of a cache"):
        ResponseCache("cache.db")
    os.mkfifo("pipe")
    with pytest.raises(ResponseCacheError, match="it isn't a file"):
        ResponseCache("pipe")
