"""A service of the list, as one event loop sees it: up until it fails, then looked for."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final

from .connection import Answer, Connection, Full, Lost
from .resp import Simple, encode

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from .addresses import Address

# When a service that failed is looked for first, up to so much later, and at most how long after.
_FIRST_LOOK: Final = 0.5
_JITTER: Final = 0.5
_LAST_LOOK: Final = 5.0
_PING: Final = encode([b"PING"])
_PING_TAKES: Final = 1.0


class Server:
    """Belongs to one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        place: int,
        *,
        token: str | None,
        context: ssl.SSLContext | None,
        changed: Callable[[], None],
    ) -> None:
        self.address = address
        self.place = place
        self.is_up = True
        self.why_down = ""
        self._loop = loop
        self._token = token
        self._context = context
        self._changed = changed
        self._connection: Connection | None = None
        self._looking: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._pause = _FIRST_LOOK
        self._closed = False
        self._was_asked = False

    def ask(
        self, command: bytes, until: float, undo: bytes | None
    ) -> asyncio.Future[Answer] | Full:
        """Sends a command, over a new connection if there is none."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
            self._was_asked = True
        return connection.ask(command, until, undo)

    def tell(self, command: bytes, until: float) -> None:
        """Sends a command whose answer does not matter, unless it is down."""
        connection = self._connection
        if connection is None and self.is_up and not self._closed and self._was_asked:
            # It was closed while nobody used it, as it is when a place is held for long.
            connection = self._connection = self._connect()
        if connection is not None:
            connection.tell(command, until)

    def answered(self) -> None:
        """It does what it is there for, so that a failure to come is a new one."""
        self._pause = _FIRST_LOOK

    def fail(self, why: str) -> None:
        """It is not to be asked until it was found well again."""
        if not self.is_up:
            return
        self.is_up = False
        self.why_down = why
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if not self._closed:
            self._look_later()
        self._changed()

    async def close(self) -> None:
        """Ends all that is under way here."""
        self._closed = True
        looking = self._looking
        if looking is not None:
            looking.cancel()
            if isinstance(looking, asyncio.Task) and not looking.done():
                await asyncio.wait([looking])
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            await connection.closed()

    def _connect(self) -> Connection:
        return Connection(
            self._loop,
            self.address,
            self.place,
            token=self._token,
            context=self._context,
            lost=self._lost,
        )

    def _lost(self, connection: Connection, why: str, idle: bool) -> None:
        if connection is self._connection:
            self._connection = None
            # Services close connections that nobody has used for long; that is no failure.
            if not idle:
                self.fail(why)

    def _look_later(self) -> None:
        pause = self._pause + random.random() * min(self._pause, _JITTER)
        self._pause = min(self._pause * 2, _LAST_LOOK)
        self._looking = self._loop.call_later(min(pause, _LAST_LOOK), self._begin_to_look)

    def _begin_to_look(self) -> None:
        self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        connection = self._connect()
        asked = connection.ask(_PING, self._loop.time() + _PING_TAKES, None)
        try:
            answer = Lost("full") if isinstance(asked, Full) else await asked
        except asyncio.CancelledError:
            connection.close()
            await connection.closed()
            raise
        # With what follows the answer it may have ended already.
        if type(answer) is not Simple or connection.is_lost:
            connection.close()
            await connection.closed()
            self._look_later()
            return
        self._looking = None
        self._connection = connection
        self.is_up = True
        self._changed()
