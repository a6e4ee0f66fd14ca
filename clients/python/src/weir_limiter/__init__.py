"""Rate limits for ASGI applications, decided by a Weir service."""

from .addresses import Tls
from .client import WeirClient
from .decision import Decision
from .errors import OptionError, WeirError
from .middleware import WeirMiddleware

__all__ = ["Decision", "OptionError", "Tls", "WeirClient", "WeirError", "WeirMiddleware"]
