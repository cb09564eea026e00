"""The page's server, to this machine only, and following a run: when a page is made again."""

import http.client
import socket
import threading
from itertools import pairwise

import pytest

from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.show.page.server import LOOK_EVERY, PageServer, pages_of
from tests.benchmark.helpers import change_manifest

PAGE = "<!doctype html><title>naïve</title>"


@pytest.fixture
def server():
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


def test_serves_the_page_alone_and_on_this_machine_only(server):
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
    for stranger in ("example.org", "example.org:80", "127.0.0.1.example.org", ""):
        status, _, content = ask(server, host=stranger)
        assert (status, "naïve" in content.decode("utf-8")) == (421, False)
    # no other path, and nothing is taken
    assert ask(server, path="/../../etc/passwd")[0] == ask(server, path="/index.html")[0] == 404
    assert ask(server, method="POST")[0] == 501


def test_a_page_that_asks_for_a_newer_one_gets_it_only_where_there_is_one(server):
    server.show(PAGE, "v1")
    assert ask(server, path="/?after=v1")[::2] == (204, b"")
    assert ask(server, path="/?after=v0")[0] == 200
    server.show("<!doctype html><title>newer</title>", "v2")
    status, _, content = ask(server, path="/?after=v1")
    assert (status, content) == (200, b"<!doctype html><title>newer</title>")
    assert ask(server)[2] == content
    assert ask(server, host="example.org", path="/?after=v1")[0] == 421


def test_says_which_port_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"can't listen on 127.0.0.1:{port}: .*; --port 0 takes a free port"):
            PageServer(PAGE, port)
    with pytest.raises(OSError, match=r"127\.0\.0\.1:70000"):
        PageServer(PAGE, 70_000)


@pytest.fixture
def run(tmp_path):
    played = ["--agent", "random", "--scenario", "frozen-lake", "--episodes", "4", "--out", str(tmp_path / "run")]
    assert main(["run", *played, "--quiet"]) == 0
    return tmp_path / "run"


def test_a_page_comes_with_every_change_until_all_is_played(run):
    episodes = run / "episodes.jsonl"
    lines = episodes.read_bytes().splitlines(keepends=True)
    episodes.write_bytes(b"".join(lines[:1]))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) % 2 == 0:  # every second look finds one more episode
            written = len(episodes.read_bytes().splitlines())
            episodes.write_bytes(b"".join(lines[: written + 1]))

    def make(version: str) -> tuple[str, bool]:
        written = len(episodes.read_bytes().splitlines())
        return f"{written} of {version}", written == len(lines)

    pages = list(pages_of([run], make, sleep=sleep, clock=lambda: 0.0))
    assert [page.split()[0] for page, _ in pages] == ["1", "2", "3", "4"]
    assert all(page.endswith(version) for page, version in pages)
    assert all(before[1] != after[1] for before, after in pairwise(pages))
    assert set(slept) == {LOOK_EVERY}


@pytest.mark.parametrize(("finishes_after", "expected"), [(None, 40.0), (7, 7.0)])
def test_making_pages_takes_a_fifth_of_the_time_but_the_last_comes_at_once(run, finishes_after, expected):
    def set_finished(finished: str | None) -> None:
        change_manifest(run, lambda manifest: manifest["sessions"][-1].update(finished=finished))

    set_finished(None)
    ticks = iter([0.0, 10.0])
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == finishes_after:
            set_finished("2026-11-22T12:00:00Z")

    pages = pages_of([run], lambda version: ("page", False), sleep=sleep, clock=lambda: next(ticks))
    next(pages)
    (run / "episodes.jsonl").touch()
    with pytest.raises(RuntimeError, match="StopIteration"):  # the clock has no third tick: the page is made again
        next(pages)
    assert sum(slept) == pytest.approx(expected)


def test_the_first_page_must_be_possible_and_later_ones_are_tried_again(run):
    def refuse(version: str) -> tuple[str, bool]:
        raise UsageError("no episodes")

    with pytest.raises(UsageError, match="no episodes"):
        next(pages_of([run], refuse))
    attempts = iter([("first", False), None, ("second", True)])

    def make(version: str) -> tuple[str, bool]:
        page = next(attempts)
        if page is None:
            raise UsageError("half a line")
        return page

    def sleep(seconds: float) -> None:
        (run / "episodes.jsonl").touch()

    assert [page for page, _ in pages_of([run], make, sleep=sleep)] == ["first", "second"]
