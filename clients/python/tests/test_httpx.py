from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from conftest import Start
from running import served
from weir_limiter import OptionError, PacedSyncTransport, PacedTransport, WeirMiddleware

URL = "http://shop.example/"
Answer = Callable[[int], httpx.Response]


class Shop(httpx.AsyncBaseTransport, httpx.BaseTransport):
    """A server in this process: says what it is told to, and notes when it was asked."""

    def __init__(self, answer: Answer, takes: float = 0.0) -> None:
        self.answer = answer
        self.takes = takes
        self.times: list[float] = []
        self.paths: list[str] = []
        self.under_way = self.most = 0
        self.lock = threading.Lock()

    def _begin(self, request: httpx.Request) -> int:
        with self.lock:
            self.times.append(time.monotonic())
            self.paths.append(request.url.path)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            return len(self.times)

    def _end(self) -> None:
        with self.lock:
            self.under_way -= 1

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        number = self._begin(request)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self._end()
        return self.answer(number)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        number = self._begin(request)
        time.sleep(self.takes)
        self._end()
        return self.answer(number)


def says(status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def refusing_first(status: int = 429, **headers: str) -> Answer:
    return lambda number: says(status, **headers) if number == 1 else says(RateLimit='"a";r=9')


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of all timers of the event loop. When they fire depends on the machine, too."""
    loop = asyncio.get_running_loop()
    call_at = loop.call_at
    delays: list[float] = []

    def record(when: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        delays.append(when - loop.time())
        return call_at(when, *args, **kwargs)

    monkeypatch.setattr(loop, "call_at", record)
    return delays


async def test_what_is_refused_is_sent_again_when_the_server_says(timers: list[float]) -> None:
    ways: list[dict[str, Any]] = [{"Retry_After": "1"}, {"RateLimit": '"a";r=0;t=1'}, {}]
    for headers in ways:
        shop = Shop(refusing_first(**headers))
        async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
            assert (await client.post(URL, json={"n": 1})).status_code == 200
        assert shop.times[1] - shop.times[0] >= 1.0
    assert max(timers) < 1.2


async def test_a_date_and_an_overload_are_understood_too() -> None:
    shop = Shop(refusing_first(503, Retry_After=formatdate(time.time() + 1, usegmt=True)))
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        assert (await client.get(URL)).status_code == 200
    assert len(shop.times) == 2
    shop = Shop(lambda _: says(503))
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        assert (await client.get(URL)).status_code == 503
    assert len(shop.times) == 1


async def test_retries_and_waits_have_an_end(timers: list[float]) -> None:
    shop = Shop(lambda _: says(429, Retry_After="0"))
    async with httpx.AsyncClient(transport=PacedTransport(shop, max_retries=2)) as client:
        assert (await client.get(URL)).status_code == 429
    assert len(shop.times) == 3
    shop = Shop(lambda _: says(429, Retry_After="3600"))
    async with httpx.AsyncClient(transport=PacedTransport(shop, max_wait=0.2)) as client:
        timers.clear()
        began = time.monotonic()
        assert (await client.get(URL)).status_code == 429
        assert not any(delay > 0 for delay in timers)
        # Those that follow wait no longer either.
        assert (await client.get(URL)).status_code == 429
        assert time.monotonic() - began >= 0.2
        assert max(timers) <= 0.2
    assert len(shop.times) == 2


async def test_a_body_that_is_streamed_is_not_sent_twice() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"once"

    shop = Shop(refusing_first(Retry_After="1"))
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        assert (await client.post(URL, content=body())).status_code == 429
    assert len(shop.times) == 1


async def test_others_wait_behind_the_one_that_was_refused_in_their_order() -> None:
    shop = Shop(refusing_first(Retry_After="1"), takes=0.01)
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        first = asyncio.create_task(client.get(f"{URL}first"))
        while shop.under_way or not shop.times:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(client.get(f"{URL}{n}")) for n in range(5)]
        answers = await asyncio.gather(first, *others)
    assert {answer.status_code for answer in answers} == {200}
    assert shop.paths == ["/first", "/first", *(f"/{n}" for n in range(5))]
    assert shop.times[2] - shop.times[0] >= 1.0


async def test_one_who_gives_up_waiting_loses_nobody_elses_turn() -> None:
    shop = Shop(lambda _: says(RateLimit='"a";r=1;t=1'), takes=0.02)
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        await client.get(URL)
        asked = [asyncio.create_task(client.get(f"{URL}{n}")) for n in range(6)]
        await asyncio.sleep(0.01)
        for number in (0, 2, 4):
            asked[number].cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [getattr(a, "status_code", None) for a in answers] == [None, 200] * 3
    assert shop.most == 1


async def test_origins_do_not_wait_for_each_other() -> None:
    shop = Shop(refusing_first(Retry_After="30"))
    async with httpx.AsyncClient(transport=PacedTransport(shop, max_wait=60)) as client:
        refused = asyncio.create_task(client.get(URL))
        while not shop.times:
            await asyncio.sleep(0.001)
        assert (await client.get("http://other.example/")).status_code == 200
        assert (await client.get("https://shop.example/")).status_code == 200
        refused.cancel()
        await asyncio.gather(refused, return_exceptions=True)


def test_threads_keep_the_pace_together() -> None:
    def answer(number: int) -> httpx.Response:
        if number == 4:
            return says(429, Retry_After="1")
        return says(RateLimit=f'"a";r={max(1, 3 - number)};t=1')

    shop = Shop(answer, takes=0.01)
    with httpx.Client(transport=PacedSyncTransport(shop)) as client, ThreadPoolExecutor(8) as pool:
        client.get(URL)
        answers = list(pool.map(lambda _: client.get(URL), range(12)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(shop.times) == 14
    assert shop.most <= 2
    assert shop.times[4] - shop.times[3] >= 1.0


async def test_a_caller_on_its_own_is_never_refused_by_a_real_service(start: Start) -> None:
    service = start("rules:\n  - { name: per-ip, key: ip, limit: 20/s burst 5 }\n")
    app = FastAPI()
    app.add_middleware(WeirMiddleware, servers=[service.address], deadline=5.0)
    refused = 0

    @app.get("/")
    async def hello() -> None: ...

    class Counting(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal refused
            response = await super().handle_async_request(request)
            refused += response.status_code == 429
            return response

    async with (
        served(app) as port,
        httpx.AsyncClient(transport=PacedTransport(Counting()), timeout=60) as client,
    ):
        url = f"http://127.0.0.1:{port}/"
        assert (await client.get(url)).status_code == 200
        answers = await asyncio.gather(*(client.get(url) for _ in range(12)))
    assert {answer.status_code for answer in answers} == {200}
    assert refused == 0


async def test_a_caller_that_begins_with_many_at_once_is_not_refused_either() -> None:
    left = 5

    def answer(number: int) -> httpx.Response:
        nonlocal left
        left -= 1
        return says(429, Retry_After="1") if left < 0 else says(RateLimit=f'"a";r={left};t=60')

    shop = Shop(answer, takes=0.01)
    async with httpx.AsyncClient(transport=PacedTransport(shop, max_wait=0.3)) as client:
        asked = [asyncio.create_task(client.get(URL)) for _ in range(12)]
        await asyncio.sleep(0.2)
        assert len(shop.times) == 5
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def test_where_nothing_is_said_of_limits_all_go_after_the_first_answer() -> None:
    shop = Shop(lambda _: says(), takes=0.05)
    async with httpx.AsyncClient(transport=PacedTransport(shop)) as client:
        await asyncio.gather(*(client.get(URL) for _ in range(12)))
    assert shop.most == 11


@pytest.mark.parametrize(
    ("option", "value"), [("max_retries", -1), ("max_retries", 1.5), ("max_wait", -1)]
)
def test_options_that_cannot_be_are_errors_that_name_them(option: str, value: float) -> None:
    for transport in (PacedTransport, PacedSyncTransport):
        with pytest.raises(OptionError) as error:
            transport(**{option: value})  # type: ignore[arg-type]
        assert error.value.option == option
