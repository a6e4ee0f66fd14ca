"""Rate limits for ASGI applications, decided by a Weir service."""

from typing import TYPE_CHECKING, Any

from .addresses import Tls
from .client import WeirClient
from .decision import Decision
from .errors import OptionError, WeirError
from .middleware import WeirMiddleware
from .settings import configure, override, shutdown

if TYPE_CHECKING:
    from .fastapi import Limit, RateLimited, limit, limited
    from .httpx import PacedSyncTransport, PacedTransport

__all__ = [
    "Decision",
    "Limit",
    "OptionError",
    "PacedSyncTransport",
    "PacedTransport",
    "RateLimited",
    "Tls",
    "WeirClient",
    "WeirError",
    "WeirMiddleware",
    "configure",
    "limit",
    "limited",
    "override",
    "shutdown",
]

# These need Starlette or httpx, which a program that does not use them need not have.
_ELSEWHERE = {
    "Limit": "fastapi",
    "RateLimited": "fastapi",
    "limit": "fastapi",
    "limited": "fastapi",
    "PacedSyncTransport": "httpx",
    "PacedTransport": "httpx",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f".{_ELSEWHERE[name]}", __name__), name)
