"""Limits for a whole ASGI application.

app.add_middleware(WeirMiddleware, user=lambda request: request.session.get("user"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .asgi import (
    App,
    Message,
    Receive,
    Scope,
    Send,
    Source,
    add_headers,
    check_flag,
    check_function,
    check_source,
    check_text,
    is_preflight,
    keep_state,
    request_of,
    resolve,
)
from .at_start import refuse, told_at_start
from .client import WeirClient, check_client
from .client_address import ClientAddresses
from .denial import Denial, inside_cors
from .errors import OptionError
from .facts import Cost, Facts, identity
from .limit_text import parse_limit
from .options import DEFAULT_DEADLINE
from .resp import encode
from .settings import Settings, chosen

if TYPE_CHECKING:
    import ssl

    from .addresses import Tls
    from .decision import Decision
    from .failure import HttpForm, OnFailure

_PROBLEM: Final = b"application/problem+json"


class WeirMiddleware:
    """Asks before each request, tells the client what is left, and says no where it must.

    The options of a client may be given here, or a `client` that is made already. By default the
    policy of the service decides; with `limit` a limit in code does.
    """

    #: Why it cannot be, where the server is told so when it starts.
    refused: OptionError | None = None

    @told_at_start
    def __init__(
        self,
        app: App,
        *,
        client: WeirClient | None = None,
        servers: str | Sequence[str] | None = None,
        token: str | None = None,
        tls: Tls | Mapping[str, str] | ssl.SSLContext | None = None,
        deadline: float = DEFAULT_DEADLINE,
        on_failure: OnFailure = "open",
        static_limit: str | None = None,
        share: int = 1,
        rule: str | None = None,
        limit: str | None = None,
        algorithm: str | None = None,
        key: Source = None,
        scope: str = "app",
        user: Source = None,
        api_key: Source = None,
        org: Source = None,
        tier: Source = None,
        cost: Cost = 1,
        headers: Sequence[str] = (),
        exempt_when: Callable[[Any], Any] | None = None,
        on_denied: Callable[[Any, Decision], Any] | None = None,
        trusted_proxies: Sequence[str] | str | None = None,
        hops: int | None = None,
        proxy_header: str = "x-forwarded-for",
        ipv6_prefix: int = 64,
        rate_limit_headers: bool = True,
        enabled: bool = True,
    ) -> None:
        self.app = app
        self.enabled = enabled
        if client is None:
            client = WeirClient(
                servers,
                token=token,
                tls=tls,
                deadline=deadline,
                on_failure=on_failure,
                static_limit=static_limit,
                share=share,
            )
        else:
            check_client(
                client,
                servers=servers,
                token=token,
                tls=tls,
                deadline=None if deadline == DEFAULT_DEADLINE else deadline,
                on_failure=None if on_failure == "open" else on_failure,
                static_limit=static_limit,
                share=None if share == 1 else share,
            )
        self.client = client
        self.facts = Facts(
            addresses=ClientAddresses(
                trusted_proxies=trusted_proxies,
                hops=hops,
                header=proxy_header,
                ipv6_prefix=ipv6_prefix,
            ),
            user=user,
            api_key=api_key,
            org=org,
            tier=tier,
            cost=cost,
            headers=headers,
        )
        check_source("key", key)
        check_function("exempt_when", exempt_when)
        check_function("on_denied", on_denied)
        check_flag("rate_limit_headers", rate_limit_headers)
        check_flag("enabled", enabled)
        check_text("rule", rule)
        check_text("scope", scope)
        self._limit = limit
        self._algorithm = algorithm
        self._key = key
        self._scope = scope
        self._check_way(rule)
        self._verb = encode([b"WEIR.CHECK", (rule or "*").encode()]).partition(b"\r\n")[2]
        self._exempt_when = exempt_when
        self._on_denied = on_denied
        self.rate_limit_headers = rate_limit_headers
        # Where limits of routes find their client, and who is believed.
        self.settings = Settings(client, self.facts, enabled, rate_limit_headers)
        self._needs_request = self.facts.needs_request or exempt_when is not None or callable(key)

    def _check_way(self, rule: str | None) -> None:
        if self._limit is None:
            for option, given in (("algorithm", self._algorithm), ("key", self._key)):
                if given is not None:
                    raise OptionError(option, "only with a limit; write limit too, as 100/min")
            self.client.require_static_limit()
        elif rule is not None:
            raise OptionError("rule", "not with a limit in code; write one of them")
        else:
            self.client.require_countable(parse_limit(self._limit, self._algorithm))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Of ASGI."""
        kind = scope["type"]
        if self.refused is not None:
            await refuse(self.refused, scope, receive, send)
        elif kind == "lifespan":
            await self._live(scope, receive, send)
        elif kind not in ("http", "websocket"):
            await self.app(scope, receive, send)
        else:
            scope["weir"] = self
            await self._guard(scope, receive, send)

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        client, enabled = self.client, self.enabled
        if chosen.override is not None:
            client = chosen.override.client or client
            enabled = enabled if chosen.override.enabled is None else chosen.override.enabled
        request = request_of(scope) if self._needs_request else None
        if (
            not enabled
            or is_preflight(scope)
            or (self._exempt_when is not None and await resolve(self._exempt_when, request))
        ):
            keep_state(scope, None)
            await self.app(scope, receive, send)
            return
        decision = await self._ask(client, scope, request)
        keep_state(scope, decision)
        if not decision.allowed:
            await self._deny(scope, receive, send, decision)
            return
        if self.rate_limit_headers and decision.header_lines:
            send = add_headers(send, decision.asgi_headers())
        if decision.reservation is None:
            if decision.delay:
                await asyncio.sleep(decision.delay)
            await self.app(scope, receive, send)
            return
        try:
            if decision.delay:
                await asyncio.sleep(decision.delay)
            await self.app(scope, receive, send)
        finally:
            client.release_soon(decision)

    async def _ask(self, client: WeirClient, scope: Scope, request: object) -> Decision:
        form = form_of(scope)
        facts = self.facts
        cost = await facts.costs.of(request)
        if self._limit is not None:
            key = self._key
            if callable(key):
                key = identity(await resolve(key, request)).decode("utf-8", "replace")
            key = key or facts.address_key(scope)
            return await client.limit(
                f"{self._scope}|{key}",
                self._limit,
                algorithm=self._algorithm,
                cost=cost,
                http=form,
            )
        words, text, who = await facts.attributes(scope, request)
        words += 4
        tail = b"$5\r\n@http\r\n$4\r\njson\r\n" if form == "json" else _PROBLEM_TAIL
        if cost != 1:
            words += 2
            tail += encode([b"@cost", b"%d" % cost]).partition(b"\r\n")[2]
        command = b"*%d\r\n%b%b%b" % (words, self._verb, text, tail)
        return await client.check_encoded(command, cost, form, who)

    async def _deny(self, scope: Scope, receive: Receive, send: Send, decision: Decision) -> None:
        response: App = Denial(decision, rate_limit_headers=self.rate_limit_headers)
        if self._on_denied is not None and scope["type"] == "http":
            own = self._on_denied(request_of(scope), decision)
            if own is not None and not callable(own):
                own = await own
            if own is not None:
                response = own
                if self.rate_limit_headers:
                    send = add_headers(send, _without_content(decision))
        await inside_cors(self.app, response)(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def close_then_send(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                await self.client.close()
            await send(message)

        await self.app(scope, receive, close_then_send)


_PROBLEM_TAIL: Final = b"$5\r\n@http\r\n$7\r\nproblem\r\n"


def form_of(scope: Scope) -> HttpForm:
    """In which form the client would read a denial."""
    for name, value in scope["headers"]:
        if name == b"accept" and _PROBLEM in value.lower():
            return "problem"
    return "json"


def _without_content(decision: Decision) -> list[tuple[bytes, bytes]]:
    return [pair for pair in decision.asgi_headers() if not pair[0].startswith(b"content-")]
