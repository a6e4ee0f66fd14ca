"""How a denial is sent: over HTTP as the service says, over a WebSocket before it is accepted.

Where CORSMiddleware stands further in than the limit, a browser could not read the denial. So it is
sent through a copy of that middleware, which adds its headers.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .asgi import App, Headers, Message, Receive, Scope, Send
    from .decision import Decision

_ABOUT_LIMITS: Final = (b"ratelimit", b"x-ratelimit")
_TOO_MANY: Final = 429
_POLICY_VIOLATION: Final = 1008


def denial_headers(decision: Decision, *, rate_limit_headers: bool = True) -> Headers:
    """Headers of the response, with or without those that tell of limits."""
    headers = decision.asgi_headers()
    if not rate_limit_headers:
        headers = [pair for pair in headers if not pair[0].startswith(_ABOUT_LIMITS)]
    headers.append((b"content-length", str(len(decision.body)).encode()))
    return headers


class Denial:
    """An ASGI application that says no."""

    def __init__(self, decision: Decision, *, rate_limit_headers: bool = True) -> None:
        self.decision = decision
        self.status = decision.status or _TOO_MANY
        self.headers = denial_headers(decision, rate_limit_headers=rate_limit_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        if scope["type"] != "websocket":
            await self._send(send, "http.response")
            return
        await receive()  # What asks for the connection.
        if "websocket.http.response" in (scope.get("extensions") or {}):
            await self._send(send, "websocket.http.response")
        else:
            await send(
                {
                    "type": "websocket.close",
                    "code": _POLICY_VIOLATION,
                    "reason": "Too many requests",
                }
            )

    async def _send(self, send: Send, kind: str) -> None:
        start: Message = {"type": f"{kind}.start", "status": self.status, "headers": self.headers}
        await send(start)
        await send({"type": f"{kind}.body", "body": self.decision.body})


def inside_cors(app: Any, response: App) -> App:
    """The response, through a copy of the CORSMiddleware further in, if there is one."""
    try:
        from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415
    except ImportError:  # pragma: no cover - with starlette in the tests
        return response
    seen = 0
    while app is not None and seen < 100:  # noqa: PLR2004
        if isinstance(app, CORSMiddleware):
            like_it = copy.copy(app)
            like_it.app = response
            return like_it
        # An application that was wrapped has its stack one step further in.
        app = getattr(app, "middleware_stack", None) or getattr(app, "app", None)
        seen += 1
    return response
