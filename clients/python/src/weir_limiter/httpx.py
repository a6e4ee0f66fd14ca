"""Transports for httpx that keep to the limits of the servers they talk to.

    client = httpx.AsyncClient(transport=PacedTransport())

No more requests are under way than the server has left for us, and none before its time. What is
refused with 429, or 503 and `Retry-After`, is sent again when the server says.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Self

import httpx

from .advice import Advice, read_advice
from .errors import OptionError, quoted
from .pace import Pace

if TYPE_CHECKING:
    from types import TracebackType

_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_MOST_ORIGINS: Final = 1024
_Origin = tuple[bytes, bytes, int | None]


def _check(max_retries: int, max_wait: float) -> None:
    if type(max_retries) is not int or max_retries < 0:
        raise OptionError("max_retries", f"{quoted(max_retries)} is not allowed; write 0 or more")
    if isinstance(max_wait, bool) or not isinstance(max_wait, int | float) or max_wait < 0:
        raise OptionError("max_wait", f"{quoted(max_wait)} is not allowed; write seconds, as 60")


def _origin_of(request: httpx.Request) -> _Origin:
    return request.url.raw_scheme, request.url.raw_host, request.url.port


def _is_refusal(response: httpx.Response) -> bool:
    return response.status_code == _TOO_MANY or (
        response.status_code == _UNAVAILABLE and "retry-after" in response.headers
    )


def _advice_of(response: httpx.Response) -> Advice:
    return read_advice(response.status_code, response.headers.multi_items(), time.time())


def _can_be_sent_again(request: httpx.Request) -> bool:
    return isinstance(request.stream, httpx.ByteStream)


class _Turns:
    """Whose turn it is at one origin, in one event loop: first come, first served."""

    def __init__(self, max_wait: float) -> None:
        self.pace = Pace()
        self._max_wait = max_wait
        self._waiting: deque[tuple[float, asyncio.Future[int]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def is_idle(self) -> bool:
        return not self._waiting and not self.pace.under_way

    async def take(self, *, first: bool) -> int:
        """Waits for the turn. Who is sent again comes before those who wait."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if (first or not self._waiting) and self.pace.wait(now) == 0:
            return self.pace.send()
        turn: asyncio.Future[int] = loop.create_future()
        entry = (now + self._max_wait, turn)
        if first:
            self._waiting.appendleft(entry)
        else:
            self._waiting.append(entry)
        self._go_on()
        try:
            return await turn
        except asyncio.CancelledError:
            # The turn of one who has gone is the next one's.
            if turn.done() and not turn.cancelled():
                self.pace.lose()
            self._go_on()
            raise

    def answer(self, number: int, response: httpx.Response) -> float:
        now = asyncio.get_running_loop().time()
        wait = self.pace.answer(number, _advice_of(response), now, refused=_is_refusal(response))
        self._go_on()
        return wait

    def lose(self) -> None:
        self.pace.lose()
        self._go_on()

    def _go_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting:
            latest, turn = self._waiting[0]
            if turn.done():
                self._waiting.popleft()
                continue
            now = loop.time()
            wait = self.pace.wait(now)
            if wait != 0 and now < latest:
                at = latest if wait is None else min(latest, now + wait)
                self._timer = loop.call_at(at, self._go_on)
                return
            self._waiting.popleft()
            turn.set_result(self.pace.send())


class PacedTransport(httpx.AsyncBaseTransport):
    """For httpx.AsyncClient. Keeps the pace of each origin, in each event loop by itself."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        max_retries: int = 3,
        max_wait: float = 60.0,
    ) -> None:
        _check(max_retries, max_wait)
        self._transport = transport or httpx.AsyncHTTPTransport()
        self._max_retries = max_retries
        self._max_wait = max_wait
        self._turns: dict[tuple[int, _Origin], _Turns] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Of httpx."""
        turns = self._turns_of(request)
        retries = 0
        while True:
            number = await turns.take(first=retries > 0)
            try:
                response = await self._transport.handle_async_request(request)
            except BaseException:
                turns.lose()
                raise
            wait = turns.answer(number, response)
            if (
                not _is_refusal(response)
                or retries == self._max_retries
                or wait > self._max_wait
                or not _can_be_sent_again(request)
            ):
                return response
            await response.aclose()
            retries += 1

    def _turns_of(self, request: httpx.Request) -> _Turns:
        name = (id(asyncio.get_running_loop()), _origin_of(request))
        turns = self._turns.get(name)
        if turns is None:
            if len(self._turns) >= _MOST_ORIGINS:
                for other in [o for o, turns in self._turns.items() if turns.is_idle()]:
                    del self._turns[other]
            turns = self._turns[name] = _Turns(self._max_wait)
        return turns

    async def aclose(self) -> None:
        """Of httpx."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(exc_type, exc_value, traceback)


class _ThreadTurns:
    """Whose turn it is at one origin, among threads: first come, first served."""

    def __init__(self, max_wait: float) -> None:
        self.pace = Pace()
        self._max_wait = max_wait
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    def is_idle(self) -> bool:
        return not self._waiting and not self.pace.under_way

    def take(self, *, first: bool) -> int:
        """Waits for the turn. Who is sent again comes before those who wait."""
        with self._changed:
            me = object()
            latest = time.monotonic() + self._max_wait
            if first:
                self._waiting.appendleft(me)
            else:
                self._waiting.append(me)
            try:
                while True:
                    now = time.monotonic()
                    wait = self.pace.wait(now)
                    if self._waiting[0] is me and (wait == 0 or now >= latest):
                        return self.pace.send()
                    left = max(0.0, latest - now)
                    at_the_front = self._waiting[0] is me
                    self._changed.wait(
                        min(left, wait) if wait and at_the_front else left if at_the_front else None
                    )
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()

    def answer(self, number: int, response: httpx.Response) -> float:
        with self._changed:
            wait = self.pace.answer(
                number, _advice_of(response), time.monotonic(), refused=_is_refusal(response)
            )
            self._changed.notify_all()
            return wait

    def lose(self) -> None:
        with self._changed:
            self.pace.lose()
            self._changed.notify_all()


class PacedSyncTransport(httpx.BaseTransport):
    """For httpx.Client, in any number of threads."""

    def __init__(
        self,
        transport: httpx.BaseTransport | None = None,
        *,
        max_retries: int = 3,
        max_wait: float = 60.0,
    ) -> None:
        _check(max_retries, max_wait)
        self._transport = transport or httpx.HTTPTransport()
        self._max_retries = max_retries
        self._max_wait = max_wait
        self._turns: dict[_Origin, _ThreadTurns] = {}
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Of httpx."""
        turns = self._turns_of(request)
        retries = 0
        while True:
            number = turns.take(first=retries > 0)
            try:
                response = self._transport.handle_request(request)
            except BaseException:
                turns.lose()
                raise
            wait = turns.answer(number, response)
            if (
                not _is_refusal(response)
                or retries == self._max_retries
                or wait > self._max_wait
                or not _can_be_sent_again(request)
            ):
                return response
            response.close()
            retries += 1

    def _turns_of(self, request: httpx.Request) -> _ThreadTurns:
        name = _origin_of(request)
        with self._lock:
            turns = self._turns.get(name)
            if turns is None:
                if len(self._turns) >= _MOST_ORIGINS:
                    for other in [o for o, turns in self._turns.items() if turns.is_idle()]:
                        del self._turns[other]
                turns = self._turns[name] = _ThreadTurns(self._max_wait)
            return turns

    def close(self) -> None:
        """Of httpx."""
        self._transport.close()

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._transport.__exit__(exc_type, exc_value, traceback)
