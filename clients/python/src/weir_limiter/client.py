"""The client: questions to the service, answered whatever happens to it.

    client = WeirClient(["unix:/run/weir/resp.sock"])
    decision = await client.check(ip="203.0.113.9", user="ann", path="/orders")

One client serves all event loops of a process, each over connections of its own, and those of its
children after a fork. Connections are made when they are needed.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self

from .buckets import Buckets
from .client_address import ip_key, parse_ip
from .errors import OptionError, WeirError, quoted
from .failure import HttpForm, OnFailure, decide_closed, decide_open, with_http
from .limit_text import Limit, parse_limit
from .options import DEFAULT_DEADLINE, read_options
from .pool import Pool, Unanswered
from .resp import encode

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

    from .addresses import Tls
    from .decision import Decision

Attributes = Mapping[str, str | bytes | None]

_RELEASE: Final = b"WEIR.RELEASE"
_CANCEL: Final = b"WEIR.CANCEL"
_CODES: Final = {
    "NOAUTH": "unauthenticated",
    "WRONGPASS": "unauthenticated",
    "NOPERM": "forbidden",
    "BUSY": "overloaded",
    "TIMEOUT": "deadline",
}
# For a policy, as whom a request counts in this process.
_WHO: Final = ("api_key", "user", "ip")
_PREFIX: Final = 64


class WeirClient:
    """Asks one or several services. Safe to share between event loops, threads and forks."""

    def __init__(
        self,
        servers: str | Sequence[str] | None = None,
        *,
        token: str | None = None,
        tls: Tls | Mapping[str, str] | ssl.SSLContext | None = None,
        deadline: float = DEFAULT_DEADLINE,
        on_failure: OnFailure = "open",
        static_limit: str | None = None,
        share: int = 1,
    ) -> None:
        self.options = read_options(
            servers=servers,
            token=token,
            tls=tls,
            deadline=deadline,
            on_failure=on_failure,
            static_limit=static_limit,
            share=share,
        )
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._recent: Pool | None = None
        self._buckets = Buckets(share) if on_failure == "static" else None
        _clients.add(self)

    # --- Questions that are always answered ---

    async def check(
        self,
        attributes: Attributes | None = None,
        /,
        *,
        rule: str | None = None,
        cost: int = 1,
        http: HttpForm | None = None,
        **more: str | bytes | None,
    ) -> Decision:
        """What the policy decides: `rule`, or all that match. Never fails."""
        if more:
            attributes = {**(attributes or {}), **more}
        words = _question(b"WEIR.CHECK", rule, attributes or {}, cost)
        if http is not None:
            words += (b"@http", http.encode())
        self.require_static_limit()
        return await self.check_encoded(
            encode(words), cost, http, self._who(attributes or {}) if self.is_static else ""
        )

    async def check_encoded(
        self, command: bytes, cost: int, http: HttpForm | None, who: str
    ) -> Decision:
        """The same for a question that is already put in bytes, for those who ask very often."""
        answer = await self._pool().ask(command, _RELEASE)
        return self._settle(answer, self.options.static_limit, who, cost, http)

    async def limit(
        self,
        key: str | bytes,
        limit: str,
        *,
        algorithm: str | None = None,
        cost: int = 1,
        http: HttpForm | None = None,
    ) -> Decision:
        """What a limit that comes with the call decides for a key. Never fails."""
        parsed = None
        if self._buckets is not None:
            parsed = self.require_countable(parse_limit(limit, algorithm))
        words = [b"WEIR.LIMIT", _bytes(key), limit.encode()]
        if algorithm is not None:
            words.append(algorithm.encode())
        if cost != 1:
            words += (b"@cost", b"%d" % cost)
        if http is not None:
            words += (b"@http", http.encode())
        answer = await self._pool().ask(encode(words), _RELEASE)
        return self._settle(answer, parsed, _text(key) if parsed else "", cost, http)

    async def peek(
        self, attributes: Attributes | None = None, /, *, rule: str | None = None, cost: int = 1
    ) -> Decision:
        """What `check` would say. Takes nothing."""
        command = encode(_question(b"WEIR.PEEK", rule, attributes or {}, cost))
        return self._settle(await self._pool().ask(command, None), None, "", cost, None)

    async def reserve(
        self,
        attributes: Attributes | None = None,
        /,
        *,
        rule: str | None = None,
        cost: int = 1,
        ttl: float | None = None,
    ) -> Decision:
        """Takes the cost for now; `commit` says what it really was, `cancel` gives it back.

        While no service answers there is no reservation.
        """
        words = _question(b"WEIR.RESERVE", rule, attributes or {}, cost)
        if ttl is not None:
            words += (b"@ttl_ms", b"%d" % round(ttl * 1000))
        answer = await self._pool().ask(encode(words), _CANCEL)
        return self._settle(answer, None, "", cost, None)

    # --- What is done once or not at all: these raise WeirError ---

    async def commit(self, reservation: Decision | str, *, cost: int | None = None) -> Decision:
        """Settles a reservation at its real cost, or at what was reserved."""
        words = [] if cost is None else [b"@cost", b"%d" % cost]
        return await self._settle_reservation(b"WEIR.COMMIT", reservation, words)

    async def cancel(self, reservation: Decision | str) -> Decision:
        """Gives back what was reserved."""
        return await self._settle_reservation(_CANCEL, reservation, [])

    async def release(self, reservation: Decision | str) -> Decision:
        """Gives back a place under a concurrency limit."""
        return await self._settle_reservation(_RELEASE, reservation, [])

    def release_soon(self, decision: Decision) -> None:
        """The same without waiting for it, and without an error if it cannot be."""
        if decision.reservation is not None:
            command = encode([_RELEASE, decision.reservation.encode()])
            self._pool().tell(command, decision.server)

    async def refund(
        self, attributes: Attributes | None = None, /, *, rule: str, cost: int = 1
    ) -> Decision:
        """Gives back what was taken. Needs the right to manage, as the next two do."""
        return await self._manage(b"WEIR.REFUND", attributes, rule, cost)

    async def penalize(
        self, attributes: Attributes | None = None, /, *, rule: str, cost: int = 1
    ) -> Decision:
        """Takes without asking."""
        return await self._manage(b"WEIR.PENALIZE", attributes, rule, cost)

    async def reset(self, attributes: Attributes | None = None, /, *, rule: str) -> Decision:
        """Forgets what was taken."""
        return await self._manage(b"WEIR.RESET", attributes, rule, 1)

    async def close(self) -> None:
        """Ends the connections of this event loop. Whoever asks again connects again."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if self._recent is pool:
            self._recent = None
        if pool is not None:
            await pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def require_static_limit(self) -> None:
        """An error if a policy is asked and this client could not decide in its place."""
        if self._buckets is not None and self.options.static_limit is None:
            raise OptionError(
                "static_limit",
                "on_failure: static needs one where a policy is asked; write the limit that each "
                "client then has, as 100/min",
            )

    def require_countable(self, limit: Limit) -> Limit:
        """An error if this client could not decide in the place of this limit."""
        if self._buckets is not None and limit.is_concurrent:
            raise OptionError(
                "on_failure",
                f'static cannot count "{limit.text}"; write open or closed for this limit',
            )
        return limit

    @property
    def is_static(self) -> bool:
        """Whether buckets of this process decide while no service answers."""
        return self._buckets is not None

    # --- Inside ---

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._recent
        if pool is not None and pool.loop is loop:
            return pool
        pool = self._pools.get(loop)
        if pool is None:
            for ended in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(ended, None)
            pool = self._pools[loop] = Pool(loop, self.options)
        self._recent = pool
        return pool

    def _settle(
        self,
        answer: Decision | Unanswered,
        limit: Limit | None,
        key: str,
        cost: int,
        http: HttpForm | None,
    ) -> Decision:
        """What the service has decided, or what is decided in its place."""
        if type(answer) is not Unanswered:
            if self._buckets is not None and limit is not None and answer.allowed:  # type: ignore[union-attr]
                self._buckets.feed(limit, key, cost)
            return answer  # type: ignore[return-value]
        if answer.refusal is not None:
            self._pool().notices.refused(answer.refusal)
        if self._buckets is not None and limit is not None:
            return with_http(self._buckets.decide(limit, key, cost), http)
        decide = decide_closed if self.options.on_failure == "closed" else decide_open
        return with_http(decide(cost), http)

    async def _settle_reservation(
        self, verb: bytes, reservation: Decision | str, words: list[bytes]
    ) -> Decision:
        if isinstance(reservation, str):
            held, place = reservation, -1
        else:
            held, place = reservation.reservation or "", reservation.server
        command = encode([verb, held.encode(), *words])
        return _or_raise(await self._pool().ask_once(command, place))

    async def _manage(
        self, verb: bytes, attributes: Attributes | None, rule: str, cost: int
    ) -> Decision:
        command = encode(_question(verb, rule, attributes or {}, cost))
        return _or_raise(await self._pool().ask_once(command, -1))

    @staticmethod
    def _who(attributes: Attributes) -> str:
        for name in _WHO:
            if value := attributes.get(name):
                text = _text(value)
                address = parse_ip(text) if name == "ip" else None
                return f"{name}|{text if address is None else ip_key(address, _PREFIX)}"
        return ""

    def _forget_connections(self) -> None:
        # They belong to the parent: they are kept, unused, so that nothing closes them here.
        _of_parent.extend(self._pools.values())
        self._pools = {}
        self._recent = None
        if self._buckets is not None:
            self._buckets.after_fork()


def check_client(client: object, **options: object) -> None:
    """An OptionError for what is no client, or for options beside one, which would do nothing."""
    if not isinstance(client, WeirClient):
        raise OptionError("client", f"{quoted(client)} is no WeirClient; write servers instead")
    for option, given in options.items():
        if given is not None:
            raise OptionError(option, "not with a client, which has its own; write one of them")


def _question(verb: bytes, rule: str | None, attributes: Attributes, cost: int) -> list[bytes]:
    words = [verb, b"*" if rule is None else rule.encode()]
    for name, value in attributes.items():
        if value is not None and value not in ("", b""):
            words += (name.encode(), _bytes(value))
    if cost != 1:
        words += (b"@cost", b"%d" % cost)
    return words


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _or_raise(answer: Decision | Unanswered) -> Decision:
    if type(answer) is not Unanswered:
        return answer  # type: ignore[return-value]
    if answer.refusal is None:
        raise WeirError("unavailable", answer.why)
    word, _, rest = answer.refusal.partition(" ")
    code = _CODES.get(word, "invalid_argument")
    if rest.startswith("reservation: unknown"):
        code = "not_found"
    raise WeirError(code, answer.refusal)


_clients: weakref.WeakSet[WeirClient] = weakref.WeakSet()
_of_parent: list[Pool] = []


def _after_fork() -> None:
    for client in list(_clients):
        client._forget_connections()  # noqa: SLF001


os.register_at_fork(after_in_child=_after_fork)
