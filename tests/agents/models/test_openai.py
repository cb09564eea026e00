"""The OpenAI-compatible model against a real local server: every kind of answer, retries, and no key anywhere."""

import asyncio
import base64
import json
import pickle
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import Decoding, LanguageAgentPolicy
from agents.models.chat_answers import BadAnswerError, read_completion
from agents.models.openai import MissingAPIKeyError, OpenAIModel
from agents.models.secrets import MASK, Endpoint, Redactor
from agents.turn import Message, TurnRequest
from tests.agents import openai_server
from tests.agents.openai_server import OpenAIServer

PROMPT = (Message("system", "Play."), Message("user", "Where to?"))
KEY = "sk-planted-0123456789"


def up(request):
    return "<think>up it is</think><action>up</action> and more"


def complete(server, *, decoding=None, prompt=PROMPT, seed=(1, 2), base_url=None, **options):
    """One completion by a model of the server, its connections closed again."""

    async def ask():
        model = OpenAIModel("local", base_url=base_url or server.base_url, api_key=KEY, **options)
        try:
            return await model.generate_async(prompt, decoding or Decoding(), seed)
        finally:
            await model.aclose()

    return asyncio.run(ask())


# ---------------------------------------------------------------- requests


def test_what_is_sent_and_what_comes_back():
    with OpenAIServer(respond=up) as server:
        server.keep_requests = True
        completion = complete(server, decoding=Decoding(temperature=0.25, max_tokens=50))
    assert server.requests == [
        {
            "model": "local",
            "messages": [{"role": "system", "content": "Play."}, {"role": "user", "content": "Where to?"}],
            "temperature": 0.25,
            "max_tokens": 50,
            "stop": ["</action>"],
        }
    ]
    assert server.headers["authorization"] == f"Bearer {KEY}"
    assert completion.text == "<think>up it is</think><action>up</action>"
    assert (completion.finish_reason, completion.error) == ("stop", None)
    assert completion.usage == (3, 3, False)
    assert completion.seconds > 0


def test_options_change_the_request():
    with OpenAIServer(respond=up) as server:
        server.keep_requests = True
        for seed in ((1, 2), (1, 3)):
            complete(
                server,
                decoding=Decoding(top_p=0.9),
                omit=["temperature", "stop"],
                max_tokens_field="max_completion_tokens",
                send_seed=True,
                extra_body={"reasoning_effort": "low"},
                headers={"X-Extra": "yes"},
                seed=seed,
            )
    first, second = server.requests
    assert {key: first[key] for key in first if key not in ("messages", "model", "seed")} == {
        "top_p": 0.9,
        "max_completion_tokens": 256,
        "reasoning_effort": "low",
    }
    assert server.headers["x-extra"] == "yes"
    assert first["seed"] != second["seed"]
    assert 0 <= first["seed"] < 2**31


def test_an_omitted_stop_string_still_ends_the_response():
    with OpenAIServer(respond=up) as server:
        assert complete(server, omit=["stop"]).text == "<think>up it is</think><action>up</action>"


def test_a_model_that_wants_the_limit_under_its_new_name_gets_it():
    with OpenAIServer(respond=up, faults={"old-limit": 1.0}) as server:
        server.keep_requests = True
        assert complete(server).text.endswith("<action>up</action>")
        refused = complete(server, max_tokens_field="max_tokens")
    assert [("max_tokens" in r, "max_completion_tokens" in r) for r in server.requests] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert "omit=['max_tokens'] in the agent's options" in refused.error


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("fault", "text", "finish_reason"),
    [
        ("slow", "<think>up it is</think><action>up</action>", "stop"),
        ("null-content", "", "stop"),
        ("refusal", "I can't help with that.", "stop"),
        ("cut", "<think>up it is<", "length"),
        ("garbage", "I would rather not say where I'm going.", "stop"),
    ],
)
def test_answers_that_are_responses(fault, text, finish_reason):
    with OpenAIServer(respond=up, faults={fault: 1.0}, slow=0.05) as server:
        completion = complete(server)
    assert (completion.text, completion.finish_reason, completion.error) == (text, finish_reason, None)


@pytest.mark.parametrize(
    ("fault", "attempts", "said"),
    [
        ("400", 1, "status 400 from http://127.0.0.1:PORT/v1: injected 400"),
        ("401", 1, "status 401 from http://127.0.0.1:PORT/v1: Incorrect API key provided: Bearer ***"),
        ("429", 2, "status 429 from http://127.0.0.1:PORT/v1: Rate limit reached"),
        ("500", 2, "status 500 from http://127.0.0.1:PORT/v1: injected 500"),
        ("503", 2, "status 503 from http://127.0.0.1:PORT/v1"),
        ("hang", 2, "no answer from http://127.0.0.1:PORT/v1 within 0.3 s in each of 2 attempts"),
        ("drop", 2, "no connection to http://127.0.0.1:PORT/v1: "),
        ("malformed", 1, "http://127.0.0.1:PORT/v1 answered with something that isn't JSON: '{\"id\""),
        ("wrong-shape", 1, "answered with a choice without a message"),
        ("no-choices", 1, "answered with no choices"),
        ("content-filter", 1, "answered with a content filter's notice"),
    ],
)
def test_answers_that_are_the_providers_failures(fault, attempts, said):
    with OpenAIServer(faults={fault: 1.0}, retry_after=0.01) as server:
        completion = complete(server, max_retries=1, timeout=0.3)
    assert completion.error.startswith(said.replace("PORT", str(server.port))) or said in completion.error
    assert (completion.text, completion.finish_reason) == ("", "error")
    assert sum(server.served.values()) == attempts
    assert KEY not in completion.error


def test_what_may_pass_is_tried_again_and_retry_after_is_kept():
    with OpenAIServer(respond=up, faults={"429": 1.0}, fault_attempts=1, retry_after=0.8) as server:
        started = time.perf_counter()
        completion = complete(server, max_retries=2)
    assert completion.error is None
    assert dict(server.served) == {"429": 1, "ok": 1}
    assert time.perf_counter() - started >= 0.8  # the package's own first back-off is at most 0.5 s


def test_no_server_at_all():
    with OpenAIServer() as server:
        pass
    completion = complete(server, max_retries=0)
    assert completion.error.startswith(f"no connection to {server.base_url}: ConnectionRefusedError: ")


def test_the_default_transport_says_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)  # not installed
    with OpenAIServer(respond=up, faults={"hang": 1.0}) as server:
        late = complete(server, max_retries=0, timeout=0.2)
    assert late.error == f"no answer from {server.base_url} within 0.2 s"
    refused = complete(server, max_retries=0)
    assert refused.error.startswith(f"no connection to {server.base_url}: ")
    with OpenAIServer(respond=up) as server:
        assert complete(server).text.endswith("<action>up</action>")


def test_an_answer_that_is_not_even_http():
    async def speak_something_else():
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"220 mail.example.org ESMTP\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            model = OpenAIModel("local", base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, max_retries=0)
            completion = await model.generate_async(PROMPT, Decoding(), ())
            await model.aclose()
            return completion

    assert asyncio.run(speak_something_else()).error.startswith("no ")


def test_faults_become_turns_of_a_policy():
    with OpenAIServer(respond=up, faults={"500": 0.3, "malformed": 0.2}) as server:
        policy = LanguageAgentPolicy(OpenAIModel("local", base_url=server.base_url, max_retries=0))
        turns = policy.act([TurnRequest(f"observation {n}", seed=(n,)) for n in range(40)])
    errors = [turn.error for turn in turns if turn.error]
    assert sum("status 500" in error for error in errors) == server.served["500"] > 0
    assert sum("JSON" in error for error in errors) == server.served["malformed"] > 0
    assert sum(turn.response.endswith("<action>up</action>") for turn in turns) == server.served["ok"] > 0
    assert sum(server.served.values()) == 40


# ---------------------------------------------------------------- reading answers


def chat(content, finish_reason="stop", **choice):
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason, **choice}]}).encode()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat("<action>up"), "<action>up</action>"),
        (chat("<action>up</action> <action>down</action>"), "<action>up</action>"),
        (chat("<action>up", "length"), "<action>up"),
        (chat("no tag"), "no tag"),
        (chat("<action>up <action>down"), "<action>up <action>down"),
        # vLLM says what stopped it: the stop string, or nothing (the model fell silent inside the tag)
        (chat("<action>up", stop_reason="</action>"), "<action>up</action>"),
        (chat("<action>up", stop_reason=None), "<action>up"),
        (chat([{"type": "text", "text": "<action>"}, {"type": "text", "text": "up"}]), "<action>up</action>"),
        (chat("half a pair: \ud83d"), "half a pair: \ufffd"),
        (chat("<action>up", None), "<action>up</action>"),
    ],
)
def test_the_text_of_an_answer(body, text):
    assert read_completion(body, Decoding()).text == text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": "up"}]}',
        b'{"error": {"message": "upstream is down"}, "choices": []}',
        chat(3),
        chat({"text": "up"}),
        chat("up", "error"),
        chat("", error={"message": "upstream"}),
    ],
)
def test_what_is_not_a_completion_is_refused(body):
    with pytest.raises(BadAnswerError):
        read_completion(body, Decoding())


def test_odd_token_counts_count_as_none():
    body = b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "7", "completion_tokens": -1}}'
    assert read_completion(body, Decoding()).usage == (0, 0, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "finish_reason", "stop_reason", "refusal", "error", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(JSON)
@settings(max_examples=150, deadline=None)
def test_any_json_is_a_completion_or_refused_and_its_text_can_be_written(value):
    try:
        completion = read_completion(json.dumps(value).encode(), Decoding())
    except BadAnswerError:
        return
    completion.text.encode()
    assert min(completion.usage) >= 0


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_refused(body):
    with pytest.raises(BadAnswerError):
        read_completion(body, Decoding())


@given(st.text(min_size=4, max_size=30), st.text(max_size=50), st.text(max_size=50))
@settings(max_examples=100, deadline=None)
def test_a_secret_never_survives_masking(secret, before, after):
    masked = Redactor([secret])(f"{before}{secret}{after} {quote(secret, safe='')}")
    assert secret not in masked or secret in MASK * 3 or secret in before + MASK + after + " " + MASK


# ---------------------------------------------------------------- keys


def test_a_missing_key_is_said_before_the_first_request(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(MissingAPIKeyError, match="export OPENAI_API_KEY="):
        OpenAIModel("gpt-4o-mini")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    assert OpenAIModel("local").base_url == "http://127.0.0.1:8000/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
    assert OpenAIModel("gpt-4o-mini").base_url == "https://api.openai.com/v1"
    with pytest.raises(ValueError, match="characters that no key has") as caught:
        OpenAIModel("gpt-4o-mini", api_key="sk-two words")
    assert "words" not in str(caught.value)


def test_keys_in_the_url_are_sent_and_never_shown():
    with OpenAIServer(faults={"401": 1.0}) as server:
        url = f"http://me:pass-w0rd@127.0.0.1:{server.port}/v1/?api-version=2&api-key=query-s3cret"
        completion = complete(server, base_url=url, headers={"X-Token": "header-s3cret"})
        sent = server.headers
        model = OpenAIModel("local", base_url=url, api_key=KEY, headers={"X-Token": "header-s3cret"})
    basic = base64.b64encode(b"me:pass-w0rd").decode()
    assert sent["authorization"] == f"Basic {basic}"
    assert sent["x-token"] == "header-s3cret"
    for shown in (completion.error, repr(model), str(model.settings), repr(LanguageAgentPolicy(model))):
        for secret in (KEY, "pass-w0rd", "query-s3cret", "header-s3cret", basic):
            assert secret not in shown
    assert model.settings["base_url"] == f"http://127.0.0.1:{server.port}/v1/"


def test_a_key_that_comes_back_in_an_error_is_masked():
    quoting = {
        "url": "http://me:p%40ss@host/v1?sig=0123456789abcdefXYZ",
        "said": (
            "got Bearer other-token-1234, key sk-proj-abc***xyz and 'Basic bWU6cEBzcw==' for "
            "http://me:p%40ss@host/v1?sig=0123456789abcdefXYZ (p@ss)"
        ),
    }
    endpoint = Endpoint.parse(quoting["url"])
    masked = Redactor([KEY, *endpoint.secrets])(quoting["said"])
    assert masked == "got Bearer ***, key *** and 'Basic ***' for http://me:***@host/v1?sig=*** (***)"
    assert endpoint.query == {"sig": "0123456789abcdefXYZ"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8000/v1", "write http://localhost:8000/v1"),
        ("ftp://me:s3cret@host/v1", "http://HOST:PORT/v1"),
        ("http://", "http://HOST:PORT/v1"),
        ("http://host:port/v1", "isn't a URL"),
    ],
)
def test_a_malformed_url_is_refused_without_its_secrets(url, said):
    with pytest.raises(ValueError, match=said) as caught:
        OpenAIModel("m", base_url=url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"omit": ["temprature"]}, "omit takes temperature, top_p, stop, max_tokens, got 'temprature'"),
        ({"timeout": 0}, "timeout is above 0"),
        ({"max_retries": -1}, "max_retries at least 0"),
    ],
)
def test_bad_options(options, said):
    with pytest.raises(ValueError, match=said):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", **options)


def test_a_policy_over_a_server_travels_between_processes():
    with OpenAIServer(respond=up) as server:
        policy = LanguageAgentPolicy(OpenAIModel("local", base_url=server.base_url))
        policy.act(["warm up"])
        (turn,) = pickle.loads(pickle.dumps(policy)).act(["obs"])
    assert turn.response.endswith("<action>up</action>")


# ---------------------------------------------------------------- the server as a process


def test_the_server_runs_as_a_process():
    command = [sys.executable, openai_server.__file__, "--fault", "500=1.0", "--fault-attempts", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        completion = complete(None, base_url=process.stdout.readline().strip(), max_retries=1)
    finally:
        process.kill()
        process.communicate()
    assert completion.text.endswith("</action>")
