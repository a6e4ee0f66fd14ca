"""What is known of a request, put as a question to the service.

Everything here runs once a request, so what can be put in bytes beforehand is.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from .asgi import Scope, Source, check_source, resolve
from .client_address import UNKNOWN, ClientAddresses, ip_key, parse_ip
from .errors import OptionError, quoted
from .limit_text import MOST_COUNT
from .notices import tell_once

if TYPE_CHECKING:
    from .client_address import IpAddress

Cost = int | Callable[[Any], Any]

# The service takes commands of up to 64 KiB. Whoever sends long values must not get around its
# limit by making the question one that is refused.
_MOST_NAME: Final = 1024
_MOST_PATH: Final = 8192
_MOST_HEADERS: Final = 16 * 1024
_NAMES: Final = ("api_key", "user", "org", "tier")


class Costs:
    """What requests cost: a number, or what a function says."""

    def __init__(self, cost: Cost) -> None:
        self._function = cost if callable(cost) else None
        self.fixed = 1
        if not callable(cost):
            if type(cost) is not int or not 0 <= cost <= MOST_COUNT:
                raise OptionError("cost", f"{quoted(cost)} is not allowed; write 0 to {MOST_COUNT}")
            self.fixed = cost

    async def of(self, request: object) -> int:
        """What this request costs."""
        if self._function is None:
            return self.fixed
        cost = await resolve(self._function, request)
        if type(cost) is int and 0 <= cost <= MOST_COUNT:
            return cost
        if type(cost) is int and cost > MOST_COUNT:
            return MOST_COUNT  # Whoever makes it large must not make it cheap.
        tell_once("cost", "cost: %s is not allowed, 1 is taken; say 0 to 10^15", quoted(cost))
        return 1


class Facts:
    """Reads requests as the options say."""

    def __init__(
        self,
        *,
        addresses: ClientAddresses,
        user: Source = None,
        api_key: Source = None,
        org: Source = None,
        tier: Source = None,
        cost: Cost = 1,
        headers: Sequence[str] = (),
    ) -> None:
        self.addresses = addresses
        self._constant = b""
        self._constants = 0
        self._sources: list[tuple[str, Callable[[Any], Any]]] = []
        given = {"api_key": api_key, "user": user, "org": org, "tier": tier}
        for name in _NAMES:
            source = given[name]
            check_source(name, source)
            if callable(source):
                self._sources.append((name, source))
            elif source is not None:
                self._constant += _pair(name.encode(), source.encode())
                self._constants += 1
        self._headers = _check_headers(headers)
        self._most_header = _MOST_HEADERS // max(1, len(self._headers))
        self.costs = Costs(cost)
        self.needs_request = bool(self._sources) or callable(cost)

    async def attributes(self, scope: Scope, request: object) -> tuple[int, bytes, str]:
        """How many words they are, the words, and as whom the request counts in this process."""
        headers = dict(scope["headers"])
        address = self.address_of(scope, headers)
        words = 4
        text = method_pair(scope.get("method", "GET")) + path_pair(scope["path"])
        who = ""
        if address is not None:
            words += 2
            text += ip_pair(address)
            who = f"ip|{ip_key(address, self.addresses.ipv6_prefix)}"
        host = headers.get(b"host")
        if host:
            words += 2
            host = host[:_MOST_NAME]
            text += b"$4\r\nhost\r\n$%d\r\n%b\r\n" % (len(host), host)
        if self._constants:
            words += 2 * self._constants
            text += self._constant
        for name, source in reversed(self._sources):
            value = identity(await resolve(source, request))
            if value:
                words += 2
                text += _pair(name.encode(), value)
                if name in ("user", "api_key"):
                    who = f"{name}|{value.decode('utf-8', 'replace')}"
        for raw, name_pair in self._headers:
            header = headers.get(raw)
            if header:
                words += 2
                header = header[: self._most_header]
                text += b"%b$%d\r\n%b\r\n" % (name_pair, len(header), header)
        return words, text, who

    def address_of(
        self, scope: Scope, headers: dict[bytes, bytes] | None = None
    ) -> IpAddress | None:
        """The client's address."""
        client = scope.get("client")
        if headers is None:
            headers = dict(scope["headers"])
        peer = client[0] if client else None
        forwarded = headers.get(b"x-forwarded-for")
        if forwarded is not None and client:
            _look_for_mistakes(client, forwarded, believes=self.addresses.believes)
        if self.addresses.believes:
            address = self.addresses.find(peer, scope["headers"])
        else:
            address = None if peer is None else parse_ip(peer)
        if address is None:
            tell_once(
                "no_address",
                "Requests come without an address of the client (%s): they count together.",
                quoted(peer),
            )
        return address

    def address_key(self, scope: Scope) -> str:
        """As what the client's address counts."""
        address = self.address_of(scope)
        return UNKNOWN if address is None else ip_key(address, self.addresses.ipv6_prefix)


def _look_for_mistakes(client: Sequence[Any], forwarded: bytes, *, believes: bool) -> None:
    if client[1] == 0 or str(client[0]).encode() in forwarded:
        tell_once(
            "proxy_headers",
            "The server has replaced the client's address by what X-Forwarded-For says (%s), which "
            "anybody can write who is let through as a proxy. Run uvicorn with --no-proxy-headers, "
            "and name the proxies here: trusted_proxies.",
            quoted(client[0]),
        )
    elif not believes:
        tell_once(
            "forwarded",
            "There is an X-Forwarded-For that is not believed. If %s is a proxy of yours, name it: "
            "trusted_proxies.",
            quoted(client[0]),
        )


def identity(value: object) -> bytes:
    """Who somebody is, in bytes of bounded number; nothing if that is not known."""
    # `user.is_authenticated and user.name` is False for those who are not logged in.
    if value is None or value is False:
        return b""
    name = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    if len(name) > _MOST_NAME:
        # Cut off, many would be one.
        return b"sha256:" + hashlib.sha256(name).hexdigest().encode()
    return name


def _pair(name: bytes, value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(name), name, len(value), value)


@functools.lru_cache(maxsize=64)
def method_pair(method: str) -> bytes:
    """The attribute `method`."""
    return _pair(b"method", method.encode("utf-8", "replace")[:64])


@functools.lru_cache(maxsize=4096)
def ip_pair(address: IpAddress) -> bytes:
    """The attribute `ip`."""
    return _pair(b"ip", str(address).encode())


def path_pair(path: str) -> bytes:
    """The attribute `path`, as the application sees it.

    ASGI has decoded it. The service would take a decoded ? or # for the end of the path, so these
    are put back; a decoded / stays, since it is one to the application too.
    """
    if "%" in path or "?" in path or "#" in path:
        path = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    value = path.encode("utf-8", "surrogatepass")[:_MOST_PATH]
    return b"$4\r\npath\r\n$%d\r\n%b\r\n" % (len(value), value)


def _check_headers(names: Sequence[str]) -> list[tuple[bytes, bytes]]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise OptionError("headers", f"{quoted(names)} is no list; write [{quoted(names)}]")
    found = []
    for name in names:
        lower = name.lower() if isinstance(name, str) else ""
        if not lower or not lower.isascii() or any(c <= " " or c == ":" for c in lower):
            raise OptionError("headers", f"{quoted(name)} is no name of a header; write x-plan")
        attribute = b"header." + lower.encode()
        found.append((lower.encode(), b"$%d\r\n%b\r\n" % (len(attribute), attribute)))
    return found
