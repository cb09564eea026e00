"""The OpenAI-compatible model against real local servers: all kinds of answers, servers of no protocol, and keys."""

import base64
import json
import pickle
import resource
import zlib
from functools import cache
from urllib.parse import quote

import pytest

from agents import Decoding, LanguageAgentPolicy, PromptMap
from agents.models.openai import MissingAPIKeyError, OpenAIModel
from agents.models.served.answers import MAX_ANSWER_BYTES, ProviderError, decode
from agents.models.served.routes import read_chat
from agents.turn import TurnRequest
from tests.agents.models.asking import ANSWER, KEY, ask, complete_many, up
from tests.agents.openai_server import OpenAIServer
from tests.agents.raw_server import RawServer, answer, endless


def complete(server, **options):
    (completion,) = ask(server, **options)
    return completion


def test_what_is_sent_and_what_comes_back():
    with OpenAIServer(respond=up) as server:
        completion = complete(server, decoding=Decoding(temperature=0.25, max_tokens=50))
    messages = [{"role": "system", "content": "Play."}, {"role": "user", "content": "Where to?"}]
    sent = {"model": "local", "messages": messages, "temperature": 0.25, "max_tokens": 50, "stop": ["</action>"]}
    assert server.requests == [sent]
    assert server.headers["authorization"] == f"Bearer {KEY}"
    assert (completion.response, completion.finish_reason, completion.error) == (ANSWER, "stop", None)
    assert completion.usage[:3] == (3, 3, False)
    assert completion.seconds > 0


def test_options_change_the_request():
    options = {"omit": ["temperature", "stop"], "max_tokens_field": "max_completion_tokens", "send_seed": True}
    options |= {"extra_body": {"reasoning_effort": "low"}, "headers": {"X-Extra": "yes"}}
    with OpenAIServer(respond=up) as server:
        said = [complete(server, decoding=Decoding(top_p=0.9), seed=seed, **options) for seed in ((1, 2), (1, 3))]
    first, second = server.requests
    kept = {key: first[key] for key in first if key not in ("messages", "model", "seed")}
    assert kept == {"top_p": 0.9, "max_completion_tokens": 256, "reasoning_effort": "low"}
    assert server.headers["x-extra"] == "yes"
    assert first["seed"] != second["seed"]
    assert 0 <= first["seed"] < 2**31
    assert {one.response for one in said} == {ANSWER}


@pytest.mark.parametrize("grammar", ["gbnf", "structured_outputs"])
def test_legal_answers_are_told_in_the_servers_own_form(grammar):
    request = TurnRequest("here", "rules", ("up", "down"), seed=(1,))
    with OpenAIServer(respond=lambda request: "<action>up</action>") as server:
        model = OpenAIModel("local", base_url=server.base_url, api_key=KEY, grammar=grammar)
        limits = (Decoding(), Decoding(max_tokens=9))
        policies = [LanguageAgentPolicy(model, PromptMap("direct"), limit, legal_only=True) for limit in limits]
        told, short = (policy.act([request])[0] for policy in policies)
    assert told.response == "<action>up</action>"
    assert "a legal answer may take 21 tokens, and max_tokens is 9" in short.error
    if grammar == "gbnf":
        assert server.requests[0]["grammar"] == 'root ::= "<action>up</action>" | "<action>down</action>"'
    else:
        assert server.requests[0]["structured_outputs"] == {"choice": ["<action>up</action>", "<action>down</action>"]}
    assert model.settings["grammar"] == grammar


@pytest.mark.parametrize(
    ("fault", "attempts", "said"),
    [
        ("400", 1, "status 400 from URL: injected 400"),
        ("401", 1, "status 401 from URL: Incorrect API key provided: Bearer [redacted]"),
        ("no-quota", 1, "status 429 from URL: You exceeded your quota"),
        ("redirect", 1, "status 308 from URL: a redirect to http://elsewhere.example/v1; give that"),
        ("500", 2, "status 500 from URL: injected 500 (the last of 2 attempts)"),
        ("hang", 2, "no answer from URL within 1 s (the last of 2 attempts)"),
        ("trickle", 2, "no answer from URL within 1 s (the last of 2 attempts)"),
        ("drop", 2, "no whole answer from URL: "),
        ("reset", 2, "no whole answer from URL: "),
        ("html", 2, "URL answered with something that isn't JSON: '<html>"),
        ("error-object", 2, "URL answered with an error: upstream is down"),
        ("no-choices", 2, "URL answered with no choices"),
        ("no-finish", 2, "URL answered with a response without a finish_reason"),
        ("odd-finish", 2, "URL answered with finish_reason 'because', which isn't that of a complete response"),
        ("content-filter", 1, "URL answered with a content filter's notice"),
        ("huge", 1, f"URL answered with more than {MAX_ANSWER_BYTES} bytes"),
    ],
)
def test_answers_that_are_the_providers_failures(fault, attempts, said, quick):
    with OpenAIServer(faults={fault: 1.0}, slow=0.05) as server:
        completion = complete(server, max_retries=1, timeout=1 if fault in ("hang", "trickle") else 60)
    assert completion.error.replace(server.base_url, "URL").startswith(said)
    assert (completion.response, completion.finish_reason) == ("", "error")
    assert sum(server.served.values()) == attempts
    assert KEY not in completion.error


@pytest.mark.filterwarnings("ignore:.*(BasicAuth|proxy_auth).* deprecated:DeprecationWarning")  # the package uses them
def test_a_proxy_of_the_environment_is_used(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with OpenAIServer(respond=up) as server:
        monkeypatch.setenv("http_proxy", f"http://me:{KEY}@127.0.0.1:{server.port}")
        completion = complete(None, base_url="http://model.example/v1", max_retries=0)
        assert server.headers["host"] == "model.example"
    assert completion.response == ANSWER
    monkeypatch.setenv("http_proxy", f"socks5://me:{KEY}@127.0.0.1:9")
    with pytest.raises(ValueError, match=r"HTTP_PROXY has the form http://HOST:PORT, got 'socks5://127.0.0.1:9'"):
        OpenAIModel("m", base_url="http://model.example/v1")


# ---------------------------------------------------------------- reading answers


def chat(content, finish_reason="stop", beside=None, **choice):
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason, **choice}], **(beside or {})})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat("<action>up"), "<action>up</action>"),
        (chat("<action>up</action> <action>down</action>"), "<action>up</action>"),
        (chat("<action>up", "length"), "<action>up"),
        (chat("<action>up <action>down"), "<action>up <action>down"),
        # vLLM names the string that stopped it, or none (the model fell silent inside the tag)
        (chat("<action>up", stop_reason="</action>"), "<action>up</action>"),
        (chat("<action>up", stop_reason=None), "<action>up"),
        (chat([{"type": "text", "text": "<action>"}, {"type": "text", "text": "up"}]), "<action>up</action>"),
        (chat("half a pair: \ud83d"), "half a pair: \ufffd"),
        (chat("<action>up", "STOP"), "<action>up</action>"),
        (chat(None, "tool_calls"), ""),
    ],
)
def test_the_text_of_an_answer(body, text):
    assert read_chat(body, Decoding()).response == text


def test_the_name_of_the_model_that_answered():
    for model, fingerprint, named in (
        ("gpt-4o-2024-08-06", "fp_44709d6fcb", "gpt-4o-2024-08-06 fp_44709d6fcb"),
        (["m"], 7, None),
        ("m" * 10_000, None, "m" * 200),
        ("m\udc80", "\ud800", "m\ufffd \ufffd"),
    ):
        told = {"model": model, "system_fingerprint": fingerprint}
        assert read_chat(chat("x", beside=told), Decoding()).served_by == named


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "null", "{}", "[" * 100_000, '{"choices": {}}', '{"choices": [null]}'),
        '{"choices": [{"message": "up"}]}',
        '{"error": {"message": "upstream is down"}, "choices": []}',
        *(chat(3), chat({"text": "up"}), chat("up", "error"), chat("up", 3), chat("", error={"message": "upstream"})),
    ],
)
def test_what_is_not_a_completion_is_refused(body):
    with pytest.raises(ProviderError):
        read_chat(body, Decoding())


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
    headers = {"X-Token": "header-s3cret"}
    with OpenAIServer(faults={"401": 1.0}) as server:
        url = f"http://me:pass-w0rd@127.0.0.1:{server.port}/v1/?api-version=2&api-key=query-s3cret"
        completion = complete(server, base_url=url, headers=headers)
        sent = server.headers
        model = OpenAIModel("local", base_url=url, api_key=KEY, headers=headers)
    basic = base64.b64encode(b"me:pass-w0rd").decode()
    assert (sent["authorization"], sent["x-token"]) == (f"Basic {basic}", "header-s3cret")
    for shown in (completion.error, repr(model), str(model.settings), repr(LanguageAgentPolicy(model))):
        for secret in (KEY, "pass-w0rd", "query-s3cret", "header-s3cret", basic):
            assert secret not in shown
    assert model.settings["base_url"] == f"http://127.0.0.1:{server.port}/v1/"


@pytest.mark.parametrize("fault", ["echo", "echo-error"])
@pytest.mark.parametrize("userinfo", ["", "planted-user-1:planted/pass+word"])
def test_credentials_that_a_server_repeats_are_gone_from_its_answer(fault, userinfo):
    """Also in the response, which the game, the response cache and the episode get."""
    header = "planted-header-secret"
    with OpenAIServer(faults={fault: 1.0}, respond=up) as server:
        url = server.base_url.replace("://", f"://{quote(userinfo, safe=':')}@" if userinfo else "://")
        completion = complete(server, base_url=url, headers={"X-Token": header})
    said = completion.response if fault == "echo" else completion.error
    assert "[redacted]" in said
    for secret in (header, *(userinfo.split(":") if userinfo else [KEY])):
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode().rstrip("=")):
            assert form not in said
    assert base64.b64encode(userinfo.encode()).decode()[:-3] not in said or not userinfo
    assert fault == "echo-error" or completion.response.endswith("<action>up</action>")


def test_a_key_spelled_in_escapes_is_gone_too():
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    with OpenAIServer(respond=up) as server:
        server.complete = lambda request, fault, route: chat("KEY").replace("KEY", spelled).encode()
        assert complete(server).response == "[redacted]"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost:8000/v1"}, "write http://localhost:8000/v1"),
        ({"base_url": "ftp://me:s3cret@host/v1"}, "http://HOST:PORT/v1"),
        ({"base_url": "http://host:port/v1"}, "isn't a URL"),
        ({"omit": ["temprature"]}, "omit takes temperature, top_p, stop, max_tokens, seed, got 'temprature'"),
        ({"timeout": 0}, "timeout is above 0"),
        ({"max_retries": -1}, "max_retries and patience are numbers of at least 0, got -1"),
        ({"max_tokens_field": "limit"}, "max_tokens_field is auto, max_tokens, max_completion_tokens, got 'limit'"),
        ({"reasoning_tokens": -1}, "reasoning_tokens is a whole number from 0"),
        ({"thinking_budget": 5, "route": "completions"}, "of the route chat"),
        ({"thinking_budget": 5, "base_url": "https://api.openai.com/v1"}, "takes neither"),
        ({"key_variable": "NOT_SET_HERE", "api_key": None}, "export NOT_SET_HERE="),
    ],
)
def test_options_that_are_wrong_are_named_without_secrets(options, said):
    with pytest.raises(ValueError, match=said) as caught:
        OpenAIModel("m", **{"base_url": "http://127.0.0.1:1/v1", "api_key": "k"} | options)
    assert "s3cret" not in str(caught.value)


def test_a_policy_over_a_server_travels_between_processes():
    with OpenAIServer(respond=up) as server:
        policy = LanguageAgentPolicy(OpenAIModel("local", base_url=server.base_url))
        policy.act(["warm up"])
        (turn,) = pickle.loads(pickle.dumps(policy)).act(["obs"])
    assert turn.response == ANSWER


FINE = {"choices": [{"message": {"role": "assistant", "content": "<action>up"}, "finish_reason": "stop"}]}
BODY = json.dumps(FINE).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@cache
def bomb():
    """128 MB of zeros in 130 kB, made in parts, so that making it takes less memory than a test allows."""
    squeezer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join([squeezer.compress(bytes(2**20)) for _ in range(2**7)] + [squeezer.flush()])


ODD = {
    "cut chunk": lambda: [HEAD + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n" + BODY],
    "no gzip": answer(BODY, "Content-Encoding: gzip"),
    "a page": answer(b"<!doctype html><title>Sign in</title>", content_type="text/html"),
    "a stream": answer(b"data: " + BODY + b"\n\ndata: [DONE]\n\n", content_type="text/event-stream"),
    "UTF-16": answer(BODY.decode().encode("utf-16")),
    "nested": answer(b'{"choices":' * 50_000),
    "many digits": answer(b'{"choices": ' + b"9" * 100_000 + b"}"),
    "nothing": lambda: [b""],
    "no HTTP": lambda: [b"SSH-2.0-OpenSSH_9.9\r\n\r\n"],
    "status 999": answer(BODY, status="999 What"),
    "no content": lambda: [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "to itself": answer(b"", "Location: /v1/chat/completions", status="307 X"),
    "to a file": answer(b"", "Location: file:///etc/passwd", status="301 X"),
    "a long header": lambda: [HEAD + b"X: " + b"x" * 2_000_000 + b"\r\n\r\n" + BODY],
    "many headers": lambda: [HEAD, *[b"X-%d: x\r\n" % n for n in range(50_000)], b"\r\n", BODY],
}


@pytest.mark.parametrize("name", ODD)
def test_is_one_error(name, quick):
    with RawServer(ODD[name]) as server:
        (completion,) = complete_many(server, 1, max_retries=0, timeout=5)
    assert completion.finish_reason == "error"
    assert completion.response == ""
    assert completion.error
    assert "\n" not in completion.error
    assert len(completion.error) < 500
    assert "Traceback" not in completion.error


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"base_resp": {"status_code": 1004, "status_msg": "not authorised"}}, "an error: not authorised"),
        ({"object": "error", "message": "no room"}, "an error: no room"),
        ({"success": False, "errors": [{"message": "no route"}]}, "an error: no route"),
        ({"error_code": 17, "error_msg": "daily quota"}, "an error: daily quota"),
        ({"Response": {"Error": {"Message": "signature"}}}, "an error: signature"),
        ({"code": "Throttling", "message": "slow down"}, "an error: slow down"),
        ({"type": "error"}, "an error: "),
    ],
)
def test_an_error_says_what_the_server_said(more, said):
    with pytest.raises(ProviderError, match=said):
        decode(json.dumps(FINE | more))


def test_what_stands_beside_a_good_answer_is_no_error():
    for more in (
        {"object": "chat.completion", "code": 0, "message": "Success"},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "error_code": "0", "code": 200},
        {"success": True, "errors": [], "status": "completed", "error": None},
    ):
        assert decode(json.dumps(FINE | more))["choices"]


ENDLESS = {
    "a body": endless(HEAD + b"\r\n", b" " * 65_536),
    "headers": endless(HEAD, b"X-More: " + b"x" * 4_000 + b"\r\n"),
    "informational": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an error's body": endless(b"HTTP/1.1 500 X\r\n\r\n", b"x" * 65_536),
    "a bomb": lambda: answer(bomb(), "Content-Encoding: gzip")(),
    "a bomb of an error": lambda: answer(bomb(), "Content-Encoding: gzip", status="500 X")(),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_takes_no_memory_and_ends(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RawServer(ENDLESS[name]) as server:
        (completion,) = complete_many(server, 1, max_retries=0, timeout=0.5)
    assert completion.error
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 100, f"{grown:.0f} MB"
