"""Errors in options that stop the server, and not each request.

Starlette makes the middleware of an application when the server asks it to start, and uvicorn takes
an exception there for an application that needs no start: it goes on, and every request fails. Only
an answer that starting has failed stops it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from .errors import OptionError

if TYPE_CHECKING:
    from .asgi import Receive, Scope, Send

Make = TypeVar("Make", bound=Callable[..., None])


def told_at_start(make: Make) -> Make:
    """For `__init__`: what cannot be is kept as `refused` where raising it would stop nobody."""

    @functools.wraps(make)
    def make_or_keep(self: Any, app: Any, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, app, *args, **kwargs)
        except OptionError as error:
            if not _is_in_stack(app):
                raise
            self.refused = error

    return cast("Make", make_or_keep)


async def refuse(error: OptionError, scope: Scope, receive: Receive, send: Send) -> NoReturn:
    """Tells the server, and whoever asks all the same."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed", "message": str(error)})
    raise error


def _is_in_stack(app: Any) -> bool:
    """Whether this is the stack of a Starlette application, and not one that is wrapped by hand."""
    try:
        from starlette.middleware.exceptions import ExceptionMiddleware  # noqa: PLC0415
    except ImportError:  # pragma: no cover - with starlette in the tests
        return False
    for _ in range(100):
        if app is None or isinstance(app, ExceptionMiddleware):
            break
        app = getattr(app, "app", None)
    return app is not None and isinstance(app, ExceptionMiddleware)
