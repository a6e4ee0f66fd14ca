"""Types of ASGI, and what all applications of it do alike."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from .errors import OptionError, quoted

if TYPE_CHECKING:
    from .decision import Decision

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

#: Something that is said of a request: a function of it, which may be async, or a value.
Source = Callable[[Any], Any] | str | None

try:
    from starlette.requests import HTTPConnection, Request
except ImportError:  # pragma: no cover - with starlette in the tests

    def request_of(scope: Scope) -> Any:
        """What functions of the user are given: without Starlette, the scope."""
        return scope

else:

    def request_of(scope: Scope) -> Any:
        """What functions of the user are given: a request, or a connection if it is a WebSocket."""
        return Request(scope) if scope["type"] == "http" else HTTPConnection(scope)


async def resolve(source: Callable[[Any], Any], request: object) -> Any:
    """What a function says of a request, be it async or not."""
    value = source(request)
    if value is not None and type(value) is not str and inspect.isawaitable(value):
        return await value
    return value


def check_source(option: str, source: object) -> None:
    """An OptionError for what is neither a function nor a value."""
    if source is None or callable(source) or (isinstance(source, str) and source):
        return
    raise OptionError(option, f"{quoted(source)} is no function; write lambda request: …")


def check_function(option: str, function: object) -> None:
    """An OptionError for what is there and no function."""
    if function is not None and not callable(function):
        raise OptionError(option, f"{quoted(function)} is no function; write lambda request: …")


def check_flag(option: str, flag: object) -> None:
    """An OptionError for what is not clearly yes or no, as the text "false" of a variable."""
    if not isinstance(flag, bool):
        raise OptionError(option, f"{quoted(flag)} is not allowed; write True or False")


def check_text(option: str, text: object) -> None:
    """An OptionError for what is there and no text."""
    if text is not None and not (isinstance(text, str) and text):
        raise OptionError(option, f"{quoted(text)} is no name; write text, or leave it out")


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks by itself what it may ask."""
    if scope["type"] != "http" or scope["method"] != "OPTIONS":
        return False
    names = {name.lower() for name, _ in scope["headers"]}
    return b"origin" in names and b"access-control-request-method" in names


def add_headers(send: Send, extra: Headers) -> Send:
    """Sends these headers too, but for those that the application sets itself."""

    async def send_more(message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.accept"):
            headers = list(message.get("headers") or ())
            present = {bytes(name).lower() for name, _ in headers}
            headers += [pair for pair in extra if pair[0] not in present]
            message["headers"] = headers
        await send(message)

    return send_more


def keep_state(scope: Scope, decision: Decision | None) -> None:
    """Makes it `request.state.weir`."""
    state = scope.get("state")
    if state is None:
        state = scope["state"] = {}
    state["weir"] = decision
