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
from tests.agents.models.asking import ask, several
from tests.agents.openai_server import RATE_LIMITS, OpenAIServer


def complete_many(server, number, **options):
    return ask(server, several(number), at_once=True, **options)


@pytest.mark.slow
def test_a_server_gets_as_many_at_once_as_it_takes(quick):
    with OpenAIServer(most_in_flight=8, latency=0.02) as server:
        completions = complete_many(server, 200, max_retries=0)
    assert [completion.error for completion in completions if completion.error] == []
    assert server.served["limited"] < 300
    assert server.peak == 8


@pytest.mark.parametrize("fault", [*RATE_LIMITS])
def test_waiting_for_a_rate_limit_is_not_a_try(fault, quick):
    with OpenAIServer(faults={fault: 1.0}, fault_attempts=1 if fault == "429-date" else 3, retry_after=0.1) as server:
        started = time.perf_counter()
        (completion,) = complete_many(server, 1, max_retries=0)
        seconds = time.perf_counter() - started
    assert completion.error is None
    assert seconds >= {"429-bare": 0.05, "429-date": 0.9}.get(fault, 0.3)


def test_a_server_that_names_too_short_a_time_is_not_hammered():
    with OpenAIServer(faults={"429": 1.0}, retry_after=0) as server:
        complete_many(server, 3, max_retries=0, patience=0.4)
        assert server.served["429"] < 40


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
        server.retry_after = 3600
        (late,) = complete_many(server, 1, patience=300)
    assert {completion.error for completion in (*completions, late)} == {
        f"status 429 from {server.base_url}: Rate limit reached (no request was taken within {patience} s)"
        for patience in ("0.3", "300")
    }


@pytest.mark.parametrize(("patience", "wait", "times"), [(1.0, None, 10), (0.2, 0.1, 4)])
def test_back_off_and_patience_begin_anew_when_the_server_takes_something(patience, wait, times, quick):
    """Were it the ninth of all refusals, the back-off would be two seconds and more than the patience."""

    async def play():
        pacer, asked = Pacer(patience), 0

        async def request():
            nonlocal asked
            asked += 1
            if asked % 2:
                raise TooManyRequestsError("too many", wait)

        for _ in range(times):
            await pacer.send(request)
        return asked

    assert asyncio.run(play()) == 2 * times


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


def test_nothing_is_slowed_down_without_a_refusal():
    async def play():
        pacer = Pacer(1)

        async def request():
            await asyncio.sleep(0.05)
            return pacer.in_flight

        return max(await asyncio.gather(*(pacer.send(request) for _ in range(500))))

    assert asyncio.run(play()) == 500


@pytest.mark.slow
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
        await asyncio.gather(*(pacer.send(request) for _ in range(300)))
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


LATER = datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after-ms": "inf", "retry-after": "2"}, 2),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": format_datetime(LATER, usegmt=True)}, pytest.approx(3600, abs=600)),
    ],
)
def test_the_wait_that_a_server_names(headers, seconds):
    assert named_wait(headers) == seconds
