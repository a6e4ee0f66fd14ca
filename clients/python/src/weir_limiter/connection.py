"""One connection to one service: questions go out pipelined, answers come back in order.

Questions that are asked in the same turn of the event loop leave in one write. They may be asked
before the connection stands. Replies have no ids, so that whatever goes wrong ends the connection:
all that are under way are then told `Lost`, and can be asked elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from .resp import MOST_BYTES, ErrorReply, Nonsense, Reply, Simple, encode, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from .addresses import Address

# As many as a process has requests at a time in the worst of floods, which is when limits count:
# what is asked beyond it is decided by `on_failure`.
MOST_IN_FLIGHT: Final = 16_384
# A timer that fires says nothing about the service if this process was held up: what has arrived
# meanwhile is taken first, and what was only sent meanwhile gets a little time.
_SECOND_LOOK: Final = 0.002
_HELD_UP: Final = 0.01
_AFTER_HOLD_UP: Final = 0.025


class Lost(NamedTuple):
    """There will be no answer on this connection."""

    why: str


class Full(NamedTuple):
    """Too many are under way already."""


Answer = Reply | Lost


class _Asked(NamedTuple):
    #: None if nobody waits for the answer.
    future: asyncio.Future[Answer] | None
    until: float
    #: What gives a place back that was given to one who has gone: WEIR.RELEASE or WEIR.CANCEL.
    undo: bytes | None


class Connection(asyncio.Protocol):
    """Belongs to one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        place: int,
        *,
        token: str | None,
        context: ssl.SSLContext | None,
        lost: Callable[[Connection, str, bool], None],
    ) -> None:
        self._loop = loop
        self._address = address
        self._place = place
        self._context = context
        self._on_lost = lost
        self._token = token
        self._transport: asyncio.Transport | None = None
        self._asked: deque[_Asked] = deque()
        self._unsent: list[bytes] = []
        self._partial = b""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._why_lost: str | None = None
        self._authenticating = token is not None
        self._connecting = loop.create_task(self._connect())

    def ask(
        self, command: bytes, until: float, undo: bytes | None
    ) -> asyncio.Future[Answer] | Full:
        """Sends a command; the answer must be there at `until`, else the connection is lost."""
        if len(self._asked) >= MOST_IN_FLIGHT:
            return Full()
        future: asyncio.Future[Answer] = self._loop.create_future()
        if self._why_lost is not None:
            future.set_result(Lost(self._why_lost))
            return future
        self._asked.append(_Asked(future, until, undo))
        self._send(command)
        if self._timer is None or until < self._timer_at:
            self._set_timer(until)
        return future

    def tell(self, command: bytes, until: float) -> None:
        """Sends a command whose answer nobody waits for, if it can be sent."""
        # There is no bound: each gives back what an answer has given, and would be held for long.
        if self._why_lost is not None:
            return
        self._asked.append(_Asked(None, until, None))
        self._send(command)
        if self._timer is None:
            self._set_timer(until)

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, so that nothing can be asked here."""
        return self._why_lost is not None

    def close(self) -> None:
        """Ends it; those that wait are told so. What was sent last still goes out."""
        self._end("the client is closed", polite=True)

    # --- To the service ---

    async def _connect(self) -> None:
        address = self._address
        why = None
        try:
            if address.path:
                await self._loop.create_unix_connection(lambda: self, address.path)
            else:
                await self._loop.create_connection(
                    lambda: self,
                    address.host,
                    address.port,
                    ssl=self._context if address.tls else None,
                )
        except ssl.SSLError as error:
            why = f"TLS: {error.reason or error}"
        except OSError as error:
            why = f"cannot connect: {error.strerror or error}"
        except ValueError as error:
            why = f"cannot connect: {error}"
        if why is not None:
            self._end(why)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio.Protocol."""
        if self._why_lost is not None:
            transport.close()
            return
        # Other event loops have transports that are no asyncio.Transport but do the same.
        self._transport = cast("asyncio.Transport", transport)
        if self._token is not None:
            self._unsent.insert(0, encode([b"AUTH", self._token.encode()]))
        self._flush()

    def _send(self, command: bytes) -> None:
        self._unsent.append(command)
        if len(self._unsent) == 1 and self._transport is not None:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            unsent = self._unsent
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))
            unsent.clear()

    # --- From the service ---

    def data_received(self, data: bytes) -> None:
        """Of asyncio.Protocol."""
        if self._partial:
            data = self._partial + data
            self._partial = b""
        at, size = 0, len(data)
        try:
            while at < size and self._why_lost is None:
                found = read(data, at, self._place)
                if found is None:
                    self._partial = data[at:]
                    if len(self._partial) > MOST_BYTES:
                        raise Nonsense("a reply without an end")  # noqa: TRY301
                    return
                reply, at = found
                self._answer(reply)
        except (Nonsense, ValueError, OverflowError) as nonsense:
            # Of Python itself for what looks like a decision: bytes that are no text, numbers of
            # thousands of digits.
            self._end(f"it answers nonsense, {nonsense}")

    def _answer(self, reply: Reply) -> None:
        if self._authenticating:
            self._authenticating = False
            if type(reply) is not Simple:
                text = reply.text if type(reply) is ErrorReply else "no answer to AUTH"
                self._end(f"it does not take the token: {text}")
            return
        if not self._asked:
            text = f": {reply.text}" if type(reply) is ErrorReply else ""
            self._end(f"it answers what nobody asked{text}")
            return
        asked = self._asked.popleft()
        if asked.future is None:
            return
        if not asked.future.done():
            asked.future.set_result(reply)
        elif asked.undo is not None and (held := getattr(reply, "reservation", None)):
            # Whoever asked has gone meanwhile, and will not give its place back.
            self.tell(encode([asked.undo, held.encode()]), self._loop.time() + 1)

    def eof_received(self) -> None:
        """Of asyncio.Protocol."""
        self._end("it has closed the connection", idle=not self._asked)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio.Protocol."""
        why = f"the connection is lost: {exc}" if exc else "it has closed the connection"
        self._end(why, idle=not self._asked)

    # --- Time ---

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._look)

    def _look(self, looked_for: float | None = None) -> None:
        """Timers are not moved with every answer: this one looks what is really due."""
        self._timer = None
        if not self._asked:
            return
        due = min(asked.until for asked in self._asked)
        late = self._loop.time() - due
        if late < 0:
            self._set_timer(due)
        elif due != looked_for:
            pause = _SECOND_LOOK if late < _HELD_UP else _AFTER_HOLD_UP
            self._timer_at = due
            self._timer = self._loop.call_later(pause, self._look, due)
        elif self._transport is None:
            self._end("no connection in time")
        else:
            self._end("no answer in time")

    # --- The end ---

    def _end(self, why: str, *, polite: bool = False, idle: bool = False) -> None:
        if self._why_lost is not None:
            return
        if polite:
            self._flush()
        self._why_lost = why
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is None:
            self._connecting.cancel()
        elif polite:
            self._transport.close()
        else:
            self._transport.abort()
        self._partial = b""
        asked, self._asked = self._asked, deque()
        for each in asked:
            if each.future is not None and not each.future.done():
                each.future.set_result(Lost(why))
        self._on_lost(self, why, idle)

    async def closed(self) -> None:
        """Waits until an attempt to connect that was given up has ended."""
        if not self._connecting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._connecting])
