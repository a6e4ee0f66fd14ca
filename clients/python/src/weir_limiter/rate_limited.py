"""A denial as an exception, which becomes the response that the service says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from .denial import denial_headers
from .failure import message_of

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from .decision import Decision

_TOO_MANY: Final = 429
_TRY_AGAIN_LATER: Final = 1013


class RateLimited(HTTPException):
    """Raised by limits of routes. A handler for it, or for 429, may answer in its own way."""

    def __init__(
        self, decision: Decision, *, message: str | None = None, rate_limit_headers: bool = True
    ) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in denial_headers(decision, rate_limit_headers=rate_limit_headers)
            if name != b"content-length"
        }
        super().__init__(decision.status or _TOO_MANY, message or message_of(decision), headers)
        self.decision = decision
        self.body = decision.body if message is None else _say(decision.body, message)

    def response(self) -> Response:
        """What the service says."""
        return Response(self.body, self.status_code, self.headers)


def _say(body: bytes, message: str) -> bytes:
    try:
        told: dict[str, Any] = dict(json.loads(body))
    except (ValueError, TypeError):
        # A service of another version may say nothing, or something else.
        told = {"error": "rate_limited", "message": message}
    told["message" if "message" in told else "detail"] = message
    return json.dumps(told, separators=(",", ":")).encode()


async def answer(connection: HTTPConnection, denial: Exception) -> Response | None:
    """What an application without a handler of its own does."""
    assert isinstance(denial, RateLimited)  # noqa: S101
    if not isinstance(connection, WebSocket):
        return denial.response()
    if connection.client_state is WebSocketState.DISCONNECTED:
        return None
    accepted = connection.application_state is WebSocketState.CONNECTED
    try:
        if not accepted and "websocket.http.response" in connection.scope.get("extensions", {}):
            await connection.send_denial_response(denial.response())
        elif connection.application_state is not WebSocketState.DISCONNECTED:
            await connection.close(_TRY_AGAIN_LATER, denial.detail)
    except (RuntimeError, WebSocketDisconnect):
        # The client has gone meanwhile.
        return None
    return None


def raise_in(connection: HTTPConnection, denial: RateLimited) -> None:
    """Raises it, and sees to it that it is answered where the application does not say how."""
    handlers = connection.scope.get("starlette.exception_handlers")
    if handlers is not None:
        handlers[0].setdefault(RateLimited, answer)
    raise denial
