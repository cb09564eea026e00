"""The page's server: one page, to this machine only."""

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from benchmark.show.page.server import PageServer

PAGE = "<!doctype html><title>naïve</title>"


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(PAGE) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: PageServer, method: str = "GET", path: str = "/", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, content


def test_serves_the_page_on_this_machine_only(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    status, headers, content = ask(server)
    assert (status, content.decode("utf-8")) == (200, PAGE)
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert ask(server, path="/?reload")[0] == 200
    assert ask(server, host=f"localhost:{server.server_port}")[0] == 200
    assert ask(server, method="HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", ""])
def test_refuses_other_host_names(server: PageServer, host: str) -> None:
    status, _, content = ask(server, host=host)
    assert status == 421
    assert "naïve" not in content.decode("utf-8")


def test_has_no_other_path_and_takes_nothing(server: PageServer) -> None:
    assert ask(server, path="/../../etc/passwd")[0] == 404
    assert ask(server, path="/index.html")[0] == 404
    assert ask(server, method="POST")[0] == 501


def test_a_page_that_asks_for_a_newer_one_gets_it_only_where_there_is_one(server: PageServer) -> None:
    server.show(PAGE, "v1")
    assert ask(server, path="/?after=v1")[::2] == (204, b"")
    assert ask(server, path="/?after=v0")[0] == 200
    server.show("<!doctype html><title>newer</title>", "v2")
    status, _, content = ask(server, path="/?after=v1")
    assert (status, content) == (200, b"<!doctype html><title>newer</title>")
    assert ask(server)[2] == content
    assert ask(server, host="example.org", path="/?after=v1")[0] == 421


def test_says_which_port_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"can't listen on 127.0.0.1:{port}: .*; --port 0 takes a free port"):
            PageServer(PAGE, port)
    with pytest.raises(OSError, match=r"127\.0\.0\.1:70000"):
        PageServer(PAGE, 70_000)
