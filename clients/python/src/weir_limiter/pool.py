"""The services of the list, as one event loop sees them: which is asked, and what if it fails."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from .connection import Answer, Full, Lost
from .decision import Decision
from .notices import Notices
from .resp import ErrorReply, encode
from .server import Server

if TYPE_CHECKING:
    from .options import ClientOptions

# How these begin, the service is of no use to us: another version, another token, another program.
_USELESS: Final = (
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "LOADING",
    "ERR unknown command",
    "ERR max number of clients",
)
_TELL_WITHIN: Final = 1.0


class Unanswered(NamedTuple):
    """No service has decided. `why` is what the last one did, `refusal` what it said."""

    why: str
    refusal: str | None = None


class Pool:
    """Belongs to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: ClientOptions) -> None:
        self.loop = loop
        self.notices = Notices(options.on_failure)
        self._deadline = options.deadline
        self._servers = [
            Server(
                loop,
                address,
                place,
                token=options.token,
                context=options.context,
                changed=self._choose,
            )
            for place, address in enumerate(options.addresses)
        ]
        self._first: Server | None = self._servers[0]
        self._trouble = False
        self._closed = False

    async def ask(self, command: bytes, undo: bytes | None) -> Decision | Unanswered:
        """Asks the first that is up, and others while the deadline lasts."""
        server = self._first
        if server is None:
            return self._alone(self._all_down())
        now = self.loop.time()
        until = now + self._deadline
        tried: list[Server] = []
        while True:
            asked = server.ask(command, now + (until - now) / self._hopes(tried), undo)
            if isinstance(asked, Full):
                return self._alone(f"{server.address.text} has too many questions under way")
            try:
                answer = await asked
            except asyncio.CancelledError:
                self._give_back(asked, undo)
                raise
            if type(answer) is Decision:
                if self._trouble:
                    self._answered(server, tried)
                return answer
            now = self.loop.time()
            why = self._judge(server, answer)
            if why is None:
                self._answered(server, tried)
                return Unanswered("", answer.text if type(answer) is ErrorReply else "")
            if self._closed:
                # Asked of another, it would leave a connection that nobody closes.
                return Unanswered(why)
            self._trouble = True
            tried.append(server)
            following = next((s for s in self._servers if s.is_up and s not in tried), None)
            if following is None or now >= until:
                return self._alone(f"{server.address.text}: {why}")
            server = following

    async def ask_once(
        self, command: bytes, place: int, undo: bytes | None = None
    ) -> Decision | Unanswered:
        """Asks the service at `place` if it is up, else the first that is; never another."""
        server = self._servers[place] if place >= 0 else self._first
        if server is None or not server.is_up:
            server = self._first
        if server is None:
            return Unanswered(self._all_down())
        asked = server.ask(command, self.loop.time() + self._deadline, undo)
        if isinstance(asked, Full):
            return Unanswered(f"{server.address.text} has too many questions under way")
        answer = await asked
        if type(answer) is Decision:
            return answer
        if type(answer) is ErrorReply:
            return Unanswered("", answer.text)
        return Unanswered(f"{server.address.text}: {getattr(answer, 'why', 'no decision')}")

    def tell(self, command: bytes, place: int) -> None:
        """Sends what needs no answer to the service that it is for."""
        if 0 <= place < len(self._servers):
            self._servers[place].tell(command, self.loop.time() + _TELL_WITHIN)

    def _give_back(self, asked: asyncio.Future[Answer], undo: bytes | None) -> None:
        """Whoever asked has gone in the very moment of the answer, and has not seen it."""
        answer = None if asked.cancelled() or not asked.done() else asked.result()
        if undo is not None and type(answer) is Decision and answer.reservation is not None:
            self.tell(encode([undo, answer.reservation.encode()]), answer.server)

    async def close(self) -> None:
        """Ends all connections, and the search for services."""
        self._closed = True
        for server in self._servers:
            await server.close()

    def _choose(self) -> None:
        self._first = next((server for server in self._servers if server.is_up), None)
        self._trouble = True

    def _hopes(self, tried: list[Server]) -> int:
        """Among how many the time that is left has to be divided."""
        return sum(server.is_up and server not in tried for server in self._servers) or 1

    def _judge(self, server: Server, answer: object) -> str | None:
        """Why another has to be asked; None if this was the answer."""
        if type(answer) is Lost:
            return answer.why
        if type(answer) is not ErrorReply:
            server.fail("it answers a check by something else")
            return "it answers a check by something else"
        if answer.text.startswith("BUSY"):
            return answer.text
        if answer.text.startswith(_USELESS):
            server.fail(answer.text)
            return answer.text
        return None

    def _answered(self, server: Server, tried: list[Server]) -> None:
        server.answered()
        self.notices.answered(self.loop.time(), server.place, server.address.text)
        if server.place > 0:
            first = self._servers[0]
            why = first.why_down if not first.is_up else "it is busy"
            self.notices.moved(first.address.text, why, server.address.text)
        self._trouble = bool(tried) or server is not self._servers[0]

    def _all_down(self) -> str:
        return "; ".join(f"{s.address.text}: {s.why_down}" for s in self._servers)

    def _alone(self, why: str) -> Unanswered:
        self._trouble = True
        self.notices.decided_alone(self.loop.time(), why)
        return Unanswered(why)
