"""Agents behind a real local server: faults, keys, money, interruption."""

import base64
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmark.results import read_results
from benchmark.runs.folder import RunFolder
from tests.agents.openai_server import OpenAIServer, random_move
from tests.benchmark.helpers import counted, everything_written, records_in, refused

KEY = "sk-planted-0123456789abcdef"
PASSWORD = "planted-password-987"
LAKE = ("--scenario", "frozen-lake", "--quiet")


def test_no_key_gets_anywhere(textbench, behind, workplace, monkeypatch):
    """A server that quotes the key it refuses, with credentials in the variable, in the address and in the query."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(api_key="another") as server:
        url = server.base_url.replace("://", f"://user:{PASSWORD}@") + f"?signature={KEY}-query"
        done = behind(SimpleNamespace(base_url=url), "--episodes", 2, "--json")
        doctor = textbench("doctor", "--agent", "openai:m", "--base-url", url)
        resumed = textbench("resume", "r", "--base-url", url)
        page = textbench("leaderboard", "r", "--html", "page.html")
        shown = textbench("replay", "r", "--plain")
    assert (done.code, doctor.code, resumed.code, page.code) == (1, 1, 1, 0)
    assert "status 401" in done.out
    assert "status 401" in doctor.out
    printed = "".join(part for step in (done, doctor, resumed, page, shown) for part in step[1:])
    for secret in ("planted", KEY[3:], PASSWORD):
        assert secret not in printed
        assert secret not in everything_written(workplace)
    assert RunFolder.open(Path("r")).manifest["settings"]["base_url"] == server.base_url


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["echo", "echo-error"])
def test_credentials_that_a_server_repeats_get_into_no_file(textbench, workplace, monkeypatch, fault):
    """Into no episode, cache, entry, export and page, in no form; a server decodes what it was sent and encodes it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for user in ("", f"planted-user-1:{PASSWORD}@"):
        with OpenAIServer(faults={fault: 1.0}) as server:
            url = server.base_url.replace("://", f"://{user}")
            options = ("--base-url", url, "--temperature", 0, "--cache", "cache.db", "--out", "r", "--json")
            done = textbench("run", "--agent", "openai:m", *LAKE, *options, "--episodes", 2)
        printed = done.out + done.err
        for command in (("leaderboard", "r", "--html", "p.html"), ("replay", "r", "--plain"), ("leaderboard", "r")):
            printed += "".join(textbench(*command)[1:])
        assert done.code == (0 if fault == "echo" else 1), printed
        text = printed + everything_written(workplace)
        assert text.count("[redacted]") > 2
        for secret in (KEY, PASSWORD, "planted-user-1", f"planted-user-1:{PASSWORD}"):
            assert secret not in text
            assert base64.b64encode(secret.encode()).decode().rstrip("=")[:-1] not in text
        shutil.rmtree("r")
        for file in workplace.glob("cache.db*"):
            file.unlink()


def test_secrets_in_an_old_run_are_not_shown(textbench, monkeypatch):
    """A run of an earlier version, or somebody else's, may hold what is a secret here."""
    assert textbench("run", "--agent", f"{KEY}=random", *LAKE, "--episodes", 2, "--out", "r").code == 0
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for command in (("leaderboard", "r", "--json"), ("replay", "r", "--plain"), ("leaderboard", "r", "--markdown")):
        done = textbench(*command)
        assert (done.code, KEY in done.out + done.err, "[redacted]" in done.out) == (0, False, True)


def test_a_wrong_name_of_a_model_is_said_before_the_first_episode(textbench, behind):
    with OpenAIServer(models=["gpt-4o-mini"], strict_names=True) as server:
        agents = ("random", "openai:gpt-4o-mni")
        done = behind(server, "--episodes", 50, agents=agents)
        dry = behind(server, "--episodes", 50, "--dry-run", agents=agents)
        assert dict(server.served) == {"404": 1}
    assert (dry.code, Path("r").exists()) == (0, False)
    refused(done, "agent 'openai:gpt-4o-mni': http", "(did you mean 'gpt-4o-mini'?)")
    with OpenAIServer(models=["m"], strict_names=True) as server:  # a resume asks no such question
        assert behind(server, "--episodes", 2).code == 0
        server.models = None
        asked = server.served.total()
        assert textbench("resume", "r", "--quiet").code == 0
        assert server.served.total() == asked


def test_a_mix_of_models_behind_one_name_is_said(textbench, behind):
    def respond(request):
        text = random_move(request)
        server.fingerprint = "fp_1" if "left" in text else "fp_2"
        return text

    with OpenAIServer(respond=respond) as server:
        server.model = "m-2026-01-31"
        done = behind(server, "--episodes", 8, "--json", agents=("m=openai:m", "random"))
    rows = {row["agent"]: row["served_by"] for row in json.loads(done.out)["scores"]}
    assert rows["random"] == {}
    assert set(rows["m"]) == {"m-2026-01-31 fp_1", "m-2026-01-31 fp_2"}
    said = " ".join(textbench("leaderboard", "r", "--stats").out.split())
    assert f"m: answered by 2 models: m-2026-01-31 fp_2 in {rows['m']['m-2026-01-31 fp_2']} episodes" in said
    told = {next(iter(one.agents.values())): one.measured.get("served_by", {}).keys() for one in records_in("r")}
    assert told == {"random": set(), "m": {"player_0"}}


PASSING = {"429": 0.1, "500": 0.1, "503": 0.03, "slow": 0.02, "drop": 0.03, "malformed": 0.05}


@pytest.mark.slow
def test_faults_that_pass_change_nothing(textbench, behind):
    """With 429, 500, 503, late, broken and malformed answers on the way, the results end as with a perfect server."""
    with OpenAIServer() as server:
        assert behind(server, "--episodes", 8, "--out", "clean").code == 0
        port = server.port
    with OpenAIServer(faults=PASSING, fault_attempts=3, slow=0.3, port=port) as server:
        done = behind(server, "--episodes", 8, "--out", "faulty", "--max-retries", 6)
        for _ in range(4):
            if done.code == 0:
                break
            done = textbench("resume", "faulty", "--quiet")
        assert sum(server.served[fault] for fault in PASSING) > 3
    assert done.code == 0, done.out
    assert counted("faulty") == counted("clean")


def test_the_doctor_asks_once(textbench):
    """Who wants to know whether a server is there doesn't wait for the retries of one that isn't, unless told to."""
    codes = []
    for more in ((), ("--max-retries", 1)):
        with OpenAIServer(faults={"500": 1.0}, fault_attempts=1) as server:
            codes.append(textbench("doctor", "--agent", "openai:m", "--base-url", server.base_url, *more).code)
    assert codes == [1, 0]


def test_a_server_that_isnt_there_is_said_where_the_run_ends(behind):
    """Not only below ``--stats``: it is the first thing that somebody with a server of their own gets wrong."""
    done = behind(SimpleNamespace(base_url="http://127.0.0.1:9/v1"), "--max-retries", 0, "--episodes", 2)
    assert done.code == 1
    assert "2 episodes are unscored: no connection to http://127.0.0.1:9/v1: " in done.err
    assert "play them again with: textbench resume r" in done.err
    assert "No episode of frozen-lake is scored yet; planned: 2." in done.out
    pytest.importorskip("pandas", reason="pandas isn't installed (extra pandas)")
    results = read_results("r", quiet=True)
    assert results.to_pandas()["return"].isna().all()
    assert results.to_pandas("scores")["unscored"].tolist() == [results.unscored] == [2]
