"""Where services are: `host:port`, `[v6]:port`, `tls://host:port`, `unix:/path`."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .errors import OptionError, quoted

DEFAULT: Final = "127.0.0.1:6380"
_MOST_PORT: Final = 65_535
_FORM: Final = re.compile(
    r"(?P<tls>tls://)?(?:\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\[\]:/@\s]+)):(?P<port>\d{1,5})"
)


@dataclass(frozen=True, slots=True)
class Address:
    """One of them. A `path` makes it a unix socket."""

    text: str
    host: str = ""
    port: int = 0
    path: str = ""
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for `tls://`, all PEM: who vouches for the service, and what this client shows."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


def parse_address(text: str) -> Address:
    """The address that this says, or an OptionError."""
    if not isinstance(text, str):
        raise OptionError("servers", f"{quoted(text)} is no text; write {DEFAULT}")
    text = text.strip()
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            raise OptionError("servers", f"{quoted(text)}: write a path, unix:/run/weir/resp.sock")
        return Address(text, path=path)
    found = _FORM.fullmatch(text)
    if found is None:
        raise OptionError(
            "servers",
            f"{quoted(text)} is no address; write {DEFAULT}, [::1]:6380, tls://weir.example:6380 "
            "or unix:/run/weir/resp.sock",
        )
    port = int(found["port"])
    if not 1 <= port <= _MOST_PORT:
        raise OptionError("servers", f"{quoted(text)}: write a port from 1 to {_MOST_PORT}")
    return Address(text, host=found["v6"] or found["host"], port=port, tls=found["tls"] is not None)


def parse_addresses(servers: str | Sequence[str] | None) -> tuple[Address, ...]:
    """Those of the option, else those of WEIR_SERVERS, else the one on this machine."""
    if servers is None:
        servers = os.environ.get("WEIR_SERVERS") or DEFAULT
    if isinstance(servers, str):
        servers = [part for part in servers.split(",") if part.strip()]
    if not isinstance(servers, Sequence):
        raise OptionError("servers", f"{quoted(servers)} is no list; write [{DEFAULT!r}]")
    if not servers:
        raise OptionError("servers", f"there is none; write at least one, as {DEFAULT}")
    addresses = tuple(parse_address(text) for text in servers)
    if len(set(addresses)) != len(addresses):
        raise OptionError("servers", "one is there twice; write each once")
    return addresses


def make_context(tls: Tls | Mapping[str, str] | ssl.SSLContext | None) -> ssl.SSLContext:
    """How `tls://` is spoken. Certificates are always looked at."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    if isinstance(tls, Mapping):
        unknown = sorted(set(tls) - {"ca", "certificate", "key"})
        if unknown:
            raise OptionError("tls", f"{quoted(unknown[0])}: allowed are ca, certificate, key")
        tls = Tls(**tls)
    elif tls is None:
        tls = Tls()
    elif not isinstance(tls, Tls):
        raise OptionError("tls", f"{quoted(tls)} is not allowed; write {{'ca': 'ca.pem'}}")
    if tls.key is not None and tls.certificate is None:
        raise OptionError("tls", "a key without its certificate; write both")
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ValueError, TypeError) as error:
        files = ", ".join(quoted(file) for file in (tls.ca, tls.certificate, tls.key) if file)
        raise OptionError("tls", f"{files} cannot be used: {error}") from error
    return context
