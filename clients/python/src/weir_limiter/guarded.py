"""Endpoints with a limit around them, which need not take a request.

FastAPI looks at the signature of an endpoint to know what it wants. The one that it is shown here
wants the limit besides, as a dependency, so that the limit is treated as every dependency is. Where
there is no FastAPI, Starlette passes the request itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import Response

from .errors import OptionError, quoted

if TYPE_CHECKING:
    from .asgi import Receive, Scope, Send
    from .fastapi import Limit

# By how many limits there are further in, since one endpoint may have several.
_DECISION: Final = "weir_decision_{}"
# All of them share it: FastAPI passes a connection under one name only.
_CONNECTION: Final = "weir_connection"


def guard(endpoint: Any, limit: Limit) -> Any:
    """The endpoint, with the limit before it."""
    if not callable(endpoint) or inspect.isclass(endpoint):
        raise OptionError("limited", f"{quoted(endpoint)} is no function; put it below the route")
    is_async = inspect.iscoroutinefunction(endpoint) or inspect.iscoroutinefunction(
        getattr(endpoint, "__call__", None)  # noqa: B004 - An object that is called as one.
    )
    depth = getattr(endpoint, "weir_limits", 0)
    wanted = _DECISION.format(depth)

    async def call(*args: Any, **kwargs: Any) -> Any:
        if is_async:
            return await endpoint(*args, **kwargs)
        return await run_in_threadpool(endpoint, *args, **kwargs)

    @functools.wraps(endpoint)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        if _CONNECTION not in kwargs:
            return await _guard_by_itself(call, limit, args, kwargs)
        decision, connection = kwargs.pop(wanted), kwargs[_CONNECTION]
        if not depth:
            del kwargs[_CONNECTION]
        result = await call(*args, **kwargs)
        if isinstance(result, Response) and decision is not None:
            _tell(limit, connection, result, decision)
        return result

    guarded.weir_limits = depth + 1  # type: ignore[attr-defined]
    signature = _amended(endpoint, limit, wanted)
    if signature is not None:
        guarded.__signature__ = signature  # type: ignore[attr-defined]
    return guarded


def _tell(limit: Limit, connection: HTTPConnection, response: Response, decision: Any) -> None:
    own = set(response.headers.keys())
    bare = Response()
    limit.tell(connection, bare, decision)
    for name, value in decision.headers:
        if name.lower() in bare.headers and name.lower() not in own:
            response.headers[name] = value


def _amended(endpoint: Callable[..., Any], limit: Limit, decision: str) -> inspect.Signature | None:
    """What FastAPI is shown; None if there is no FastAPI."""
    try:
        from fastapi import Depends  # noqa: PLC0415
    except ImportError:  # pragma: no cover - with fastapi in the tests
        return None
    try:
        # Names in annotations mean something where the endpoint is written, not here.
        signature = inspect.signature(endpoint, eval_str=True)
    except NameError:
        signature = inspect.signature(endpoint)
    wanted = [
        inspect.Parameter(
            decision, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[Any, Depends(limit)]
        ),
        inspect.Parameter(_CONNECTION, inspect.Parameter.KEYWORD_ONLY, annotation=HTTPConnection),
    ]
    given = list(signature.parameters.values())
    rest = [p for p in given if p.kind is inspect.Parameter.VAR_KEYWORD]
    given = [
        p for p in given if p.kind is not inspect.Parameter.VAR_KEYWORD and p.name != _CONNECTION
    ]
    return signature.replace(parameters=[*given, *wanted, *rest])


async def _guard_by_itself(
    call: Callable[..., Any], limit: Limit, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Without FastAPI: the request is among what the endpoint is given."""
    given = (*args, *kwargs.values())
    connection = next((each for each in given if isinstance(each, HTTPConnection)), None)
    if connection is None:
        raise TypeError("a limited endpoint was called without a request")
    holding = limit.hold(connection)
    decision = await holding.__aenter__()
    try:
        result = await call(*args, **kwargs)
        if decision is None or not isinstance(result, Response):
            return result
        _tell(limit, connection, result, decision)
        if decision.reservation is None:
            return result
        held, holding = holding, None  # type: ignore[assignment]
        return _Held(result, held)
    finally:
        if holding is not None:
            await holding.__aexit__(None, None, None)


class _Held:
    """A response that ends what is held for it when it has been sent."""

    def __init__(self, response: Response, holding: Any) -> None:
        self._response = response
        self._holding = holding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            await self._holding.__aexit__(None, None, None)
