"""How fast requests follow each other: against a real local server with limits, and the waits that servers name."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial

import pytest

import agents.models.served.http  # noqa: F401  (importing the client takes a second, which isn't to be timed)
from agents.models.served.answers import ProviderError
from agents.models.served.pacing import Pacer, TooManyRequestsError, named_wait
from tests.agents.models.asking import complete_many
from tests.agents.openai_server import OpenAIServer


def test_a_server_gets_as_many_at_once_as_it_takes(quick):
    with OpenAIServer(most_in_flight=8, latency=0.02) as server:
        completions = complete_many(server, 100, max_retries=0)
    assert [completion.error for completion in completions if completion.error] == []
    assert server.served["limited"] < 200
    assert server.peak == 8


@pytest.mark.parametrize(("fault", "times", "seconds"), [("429", 3, 0.3), ("503-wait", 1, 0.1), ("429-bare", 3, 0.05)])
def test_waiting_for_a_rate_limit_is_not_a_try(fault, times, seconds, quick):
    with OpenAIServer(faults={fault: 1.0}, fault_attempts=times, retry_after=0.1) as server:
        (completion,) = complete_many(server, 1, max_retries=0)
    assert completion.error is None
    assert completion.seconds >= seconds


def test_a_window_that_is_full_is_waited_for_and_then_filled_at_once():
    async def play():
        pacer, taken, until = Pacer(10), [], time.monotonic() + 0.6

        async def request():
            if len(taken) >= 3 and time.monotonic() < until:
                raise TooManyRequestsError("the minute is full", until - time.monotonic())
            taken.append(time.monotonic() - until)

        await asyncio.gather(*(pacer.send(request) for _ in range(8)))
        return taken

    taken = asyncio.run(play())
    assert max(taken[:3]) < 0 <= min(taken[3:])
    assert max(taken) < 0.3


def test_patience_ends_when_the_server_takes_nothing_any_more(quick):
    with OpenAIServer(faults={"429": 1.0}, retry_after=0.05) as server:
        completions = complete_many(server, 5, max_retries=3, patience=0.3)
        server.served.clear()
        server.retry_after = 0  # too short a time again and again
        complete_many(server, 3, max_retries=0, patience=0.3)
        assert server.served["429"] < 40, "it isn't hammered"
        server.retry_after = 3600
        (late,) = complete_many(server, 1, patience=300)
    assert {completion.error for completion in (*completions, late)} == {
        f"status 429 from {server.base_url}: Rate limit reached (no request was taken within {patience} s)"
        for patience in ("0.3", "300")
    }


def test_back_off_and_patience_begin_anew_when_the_server_takes_something(quick):
    """Were it the ninth of all refusals, the back-off would be two seconds and more than the patience."""

    async def play(patience, wait, times):
        pacer, asked = Pacer(patience), 0

        async def request():
            nonlocal asked
            asked += 1
            if asked % 2:
                raise TooManyRequestsError("too many", wait)

        for _ in range(times):
            await pacer.send(request)
        return asked

    assert asyncio.run(play(1.0, None, 10)) == 20
    assert asyncio.run(play(0.2, 0.1, 4)) == 8


def test_what_was_refused_goes_first_when_there_is_room():
    async def play():
        pacer, sent = Pacer(10), []
        pacer.limit = 1

        async def request(name):
            sent.append(name)
            await asyncio.sleep(0)  # meanwhile the others come to wait
            if sent == ["a"]:
                raise TooManyRequestsError("too many", 0.01)

        await asyncio.gather(*(pacer.send(partial(request, name)) for name in "abc"))
        return sent

    assert asyncio.run(play()) == ["a", "a", "b", "c"]


@pytest.mark.parametrize("wait", [None, 0.02])
def test_a_limit_that_is_gone_is_found_out(wait):
    """No more than two in flight or fifty a second at first, and later anything."""

    async def play():
        pacer, in_flight, peak = Pacer(10), 0, 0

        async def request():
            nonlocal in_flight, peak
            if in_flight >= 2 and not free:
                raise TooManyRequestsError("too many", wait)
            in_flight += 1
            peak = max(peak, in_flight)
            await asyncio.sleep(0.01)
            in_flight -= 1

        free = False
        await asyncio.gather(*(pacer.send(request) for _ in range(20)))
        assert peak == 2
        free = True
        await asyncio.gather(*(pacer.send(request) for _ in range(150)))
        return peak

    assert asyncio.run(play()) > 10


def test_an_overloaded_server_gets_half_as_many_at_once():
    async def play():
        pacer, fails = Pacer(10), asyncio.Event()

        async def overloaded():
            await fails.wait()
            raise ProviderError("503", overloaded=True)

        wave = [asyncio.create_task(pacer.send(overloaded)) for _ in range(16)]
        await asyncio.sleep(0)
        fails.set()
        await asyncio.gather(*wave, return_exceptions=True)
        return pacer.limit

    assert asyncio.run(play()) == 8  # once for the whole wave


def test_a_request_that_is_cancelled_as_it_gets_room_leaves_it_to_others():
    async def play():
        pacer, done = Pacer(10), asyncio.Event()
        pacer.limit = 1
        first, second = (asyncio.create_task(pacer.send(lambda: done.wait())) for _ in range(2))
        await asyncio.sleep(0)
        done.set()
        while not first.done():
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert second.cancelled()
        return await asyncio.wait_for(pacer.send(lambda: done.wait()), 2), pacer.in_flight

    assert asyncio.run(play()) == (True, 0)


FAR = "Wed, 21 Oct 99999999999 07:28:00 GMT"
LATER = datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0),
        *(({"retry-after": odd}, None) for odd in ("soon", "1e400", "9" * 4000, FAR, FAR.replace("Oct", "32"), "nan")),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "inf", "retry-after": "2"}, 2),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2030 07:28:00 +99999999999"}, None),
        ({"retry-after": format_datetime(LATER, usegmt=True)}, pytest.approx(3600, abs=600)),
    ],
)
def test_the_wait_that_a_server_names(headers, seconds):
    assert named_wait(headers) == seconds
