"""Servers that hold to no protocol: one error for each, no traceback, and neither time nor memory without end."""

import json
import resource
import zlib
from functools import cache

import pytest

from agents.models.served.answers import ProviderError, decode
from tests.agents.models.asking import complete_many
from tests.agents.raw_server import RawServer, answer, endless

FINE = {"choices": [{"message": {"role": "assistant", "content": "<action>up"}, "finish_reason": "stop"}]}
BODY = json.dumps(FINE).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@cache
def bomb():
    """128 MB of zeros in 130 kB, made in parts, so that making it takes less memory than a test allows."""
    squeezer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join([squeezer.compress(bytes(2**20)) for _ in range(2**7)] + [squeezer.flush()])


def exploding(*headers, **more):
    """An answer whose body is made when it is first asked for."""
    return lambda: answer(bomb(), *headers, **more)()


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


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"object": "chat.completion", "code": 0, "message": "Success"},
        {"code": 200},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "error_code": "0"},
        {"success": True, "errors": [], "status": "completed", "error": None},
    ],
)
def test_what_stands_beside_a_good_answer_is_no_error(more):
    assert decode(json.dumps(FINE | more))["choices"]


ENDLESS = {
    "a body": endless(HEAD + b"\r\n", b" " * 65_536),
    "headers": endless(HEAD, b"X-More: " + b"x" * 4_000 + b"\r\n"),
    "informational": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an error's body": endless(b"HTTP/1.1 500 X\r\n\r\n", b"x" * 65_536),
    "a bomb": exploding("Content-Encoding: gzip"),
    "a bomb of an error": exploding("Content-Encoding: gzip", status="500 X"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_takes_no_memory_and_ends(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RawServer(ENDLESS[name]) as server:
        (completion,) = complete_many(server, 1, max_retries=0, timeout=0.5)
    assert completion.error
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 100, f"{grown:.0f} MB"
