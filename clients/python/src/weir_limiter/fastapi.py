"""Limits for single routes of FastAPI and Starlette.

@app.get("/search", dependencies=[Depends(limit("100/min", key=user_of))])
async def search(): ...

@app.get("/report")
@limited("5/h")
def report(): ...
"""

# No `from __future__ import annotations`: FastAPI has to see the types of __call__.
import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from starlette.requests import HTTPConnection
from starlette.responses import Response

from .asgi import (
    Source,
    check_function,
    check_source,
    check_text,
    is_preflight,
    keep_state,
    resolve,
)
from .client import WeirClient, check_client
from .decision import Decision
from .errors import OptionError
from .facts import Cost, Costs, identity
from .guarded import guard
from .limit_text import parse_limit
from .middleware import WeirMiddleware, form_of
from .notices import tell_once
from .rate_limited import RateLimited, raise_in
from .settings import Settings, chosen, configure, override, settings_now, shutdown

__all__ = ["Limit", "RateLimited", "configure", "limit", "limited", "override", "shutdown"]


Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Limit:
    """A limit in code. Made by `limit`; may be shared by any number of routes.

    `Depends(it)` limits a route, `await it(websocket)` a message; both raise RateLimited.
    `await it.check(request)` only says what is decided, `async with it.hold(request)` keeps a place
    under a concurrency limit.
    """

    def __init__(
        self,
        text: str,
        *,
        key: Source = None,
        cost: Cost = 1,
        scope: str | None = None,
        exempt_when: Callable[[Any], Any] | None = None,
        algorithm: str | None = None,
        message: str | None = None,
        client: WeirClient | None = None,
    ) -> None:
        check_source("key", key)
        check_function("exempt_when", exempt_when)
        check_text("scope", scope)
        check_text("message", message)
        self.limit = parse_limit(text, algorithm)
        if client is not None:
            check_client(client)
            client.require_countable(self.limit)
        self._algorithm = algorithm
        self._key = key
        self._costs = Costs(cost)
        self._scope = scope
        self._exempt_when = exempt_when
        self._message = message
        self._client = client

    async def __call__(
        self,
        connection: HTTPConnection,
        response: Response = None,  # type: ignore[assignment]
    ) -> Decision | None:
        """What FastAPI calls for `Depends`. None if the request is exempt."""
        return await self._enforce(connection, response)

    @contextlib.asynccontextmanager
    async def hold(
        self, connection: HTTPConnection, response: Response | None = None
    ) -> AsyncIterator[Decision | None]:
        """The same, and what was taken of a concurrency limit is given back at the end."""
        # Where it was taken it is given back, whatever a test puts in place meanwhile.
        client = self._settings(connection).client
        decision = await self._enforce(connection, response)
        try:
            yield decision
        finally:
            if decision is not None:
                client.release_soon(decision)

    async def check(self, connection: HTTPConnection) -> Decision | None:
        """What is decided for a request, or a message of a WebSocket; None if it is exempt."""
        settings = self._settings(connection)
        if (
            not settings.enabled
            or is_preflight(connection.scope)
            or (self._exempt_when is not None and await resolve(self._exempt_when, connection))
        ):
            return None
        key: Any = self._key
        if callable(key):
            key = identity(await resolve(key, connection)).decode("utf-8", "replace")
        key = key or settings.facts.address_key(connection.scope)
        decision = await settings.client.limit(
            f"{self._scope or _name_of_route(connection)}|{key}",
            self.limit.text,
            algorithm=self._algorithm,
            cost=await self._costs.of(connection),
            http=form_of(connection.scope),
        )
        if decision.delay:
            await asyncio.sleep(decision.delay)
        return decision

    def tell(self, connection: HTTPConnection, response: Response, decision: Decision) -> None:
        """Puts what is left on a response. Of several limits the scarcest is told."""
        if not self._settings(connection).rate_limit_headers:
            return
        told: Decision | None = connection.scope.get("weir.told")
        is_scarcer = told is None or told is decision or _scarcity(decision) < _scarcity(told)
        for name, value in decision.headers:
            if is_scarcer:
                response.headers[name] = value
            else:
                response.headers.setdefault(name, value)
        if is_scarcer:
            connection.scope["weir.told"] = decision

    async def _enforce(
        self, connection: HTTPConnection, response: Response | None
    ) -> Decision | None:
        decision = await self.check(connection)
        if decision is None:
            return None
        keep_state(connection.scope, decision)
        if not decision.allowed:
            shown = self._settings(connection).rate_limit_headers
            denial = RateLimited(decision, message=self._message, rate_limit_headers=shown)
            raise_in(connection, denial)
        if response is not None:
            self.tell(connection, response, decision)
        return decision

    def _settings(self, connection: HTTPConnection) -> Settings:
        around = connection.scope.get("weir")
        found = around.settings if isinstance(around, WeirMiddleware) else settings_now()
        client, enabled = self._client or found.client, found.enabled
        if chosen.override is not None:
            client = chosen.override.client or client
            enabled = enabled if chosen.override.enabled is None else chosen.override.enabled
        if client.is_static and self.limit.is_concurrent:
            tell_once(
                f"static|{self.limit.text}",
                "on_failure: static cannot count %s, which is not asked for therefore; give this "
                "limit a client with open or closed.",
                self.limit.text,
            )
            enabled = False
        return found._replace(client=client, enabled=enabled)


class ConcurrentLimit(Limit):
    """A limit of how many there are at once: FastAPI gives places back after the response."""

    async def __call__(  # type: ignore[override]
        self,
        connection: HTTPConnection,
        response: Response = None,  # type: ignore[assignment]
    ) -> AsyncIterator[Decision | None]:
        """What FastAPI calls for `Depends`."""
        async with self.hold(connection, response) as decision:
            yield decision


def limit(
    text: str,
    *,
    key: Source = None,
    cost: Cost = 1,
    scope: str | None = None,
    exempt_when: Callable[[Any], Any] | None = None,
    algorithm: str | None = None,
    message: str | None = None,
    client: WeirClient | None = None,
) -> Limit:
    """A limit for `Depends`, for `limited` and for messages of WebSockets."""
    kind = ConcurrentLimit if parse_limit(text, algorithm).is_concurrent else Limit
    return kind(
        text,
        key=key,
        cost=cost,
        scope=scope,
        exempt_when=exempt_when,
        algorithm=algorithm,
        message=message,
        client=client,
    )


def limited(
    what: str | Limit,
    **options: Any,
) -> Callable[[Endpoint], Endpoint]:
    """A decorator for endpoints, below that of the route. Options are those of `limit`."""
    if isinstance(what, Limit):
        if options:
            name = next(iter(options))
            raise OptionError(name, "not with a limit that is made already; give it to limit()")
        rule = what
    else:
        rule = limit(what, **options)
    return lambda endpoint: guard(endpoint, rule)


def _name_of_route(connection: HTTPConnection) -> str:
    """What two routes do not share. The path alone will not do: routers add prefixes to it."""
    scope = connection.scope
    route, endpoint = scope.get("route"), scope.get("endpoint")
    methods = ",".join(sorted(getattr(route, "methods", None) or ()))
    module = getattr(endpoint, "__module__", "")
    name = getattr(endpoint, "__qualname__", type(endpoint).__qualname__)
    path = getattr(route, "path", "")
    return f"{methods} {path} {module}.{name}".strip()


def _scarcity(decision: Decision) -> float:
    return decision.remaining / decision.limit if decision.limit else 0.0
