"""Who the client is, behind proxies that are named and no others.

The peer is who is connected. Where it is a proxy that is trusted, the client is the rightmost
address of the forwarding header that is not one of them; where proxies are counted by `hops`, the
one so many places from the right. What does not parse is never skipped over.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final

from .errors import OptionError, quoted

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
RawHeaders = Iterable[tuple[bytes, bytes]]

UNKNOWN: Final = "unknown"
_HEADERS: Final = ("x-forwarded-for", "forwarded")
_SHORTEST_PREFIX: Final = 32
_WHOLE_V6: Final = 128
_MOST_HOPS: Final = 32
# Nobody has so many proxies; who sends more wants to keep us busy.
_MOST_ELEMENTS: Final = 64

_V4_WITH_PORT: Final = re.compile(r"(\d+\.\d+\.\d+\.\d+):\d{1,5}")
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](?::\d{1,5})?")
_FORWARDED_PAIR: Final = re.compile(
    r'\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*(;|,|$)'
)


@functools.lru_cache(maxsize=4096)
def parse_ip(text: str) -> IpAddress | None:
    """An address in any form that proxies write: with a port, in brackets, with a zone."""
    text = text.strip(" \t")
    if found := _V4_WITH_PORT.fullmatch(text) or _BRACKETED.fullmatch(text):
        text = found[1]
    if "%" in text and ":" in text:
        text = text.partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@functools.lru_cache(maxsize=4096)
def ip_key(address: IpAddress, ipv6_prefix: int) -> str:
    """As what an address counts under a limit in code: IPv6 by its network."""
    if isinstance(address, ipaddress.IPv4Address) or ipv6_prefix == _WHOLE_V6:
        return str(address)
    return str(ipaddress.IPv6Network((int(address), ipv6_prefix), strict=False))


class ClientAddresses:
    """Finds the client of each request. Options that cannot be are errors here."""

    def __init__(
        self,
        *,
        trusted_proxies: Sequence[str] | str | None = None,
        hops: int | None = None,
        header: str = "x-forwarded-for",
        ipv6_prefix: int = 64,
    ) -> None:
        if trusted_proxies and hops is not None:
            raise OptionError("hops", "not with trusted_proxies; write one of the two")
        if hops is not None and (type(hops) is not int or not 1 <= hops <= _MOST_HOPS):
            raise OptionError("hops", f"{quoted(hops)} is not allowed; write 1 to {_MOST_HOPS}")
        if not isinstance(header, str) or header.lower() not in _HEADERS:
            raise OptionError(
                "proxy_header", f"{quoted(header)} is not allowed; write {' or '.join(_HEADERS)}"
            )
        if type(ipv6_prefix) is not int or not _SHORTEST_PREFIX <= ipv6_prefix <= _WHOLE_V6:
            raise OptionError(
                "ipv6_prefix", f"{quoted(ipv6_prefix)} is not allowed; write 32 to 128"
            )
        self.ipv6_prefix = ipv6_prefix
        self.believes = bool(trusted_proxies) or hops is not None
        self._networks = _parse_networks(trusted_proxies or ())
        self._hops = hops
        self._header = header.lower().encode()
        self._is_trusted = functools.lru_cache(maxsize=4096)(self._look_up)

    def find(self, peer: str | None, headers: RawHeaders) -> IpAddress | None:
        """The client's address, if it has one."""
        address = None if peer is None else parse_ip(peer)
        if not self.believes:
            return address
        elements = self._elements(headers)
        if self._hops is not None:
            if len(elements) < self._hops:
                return address
            return parse_ip(elements[-self._hops]) or address
        for element in reversed(elements):
            if address is None or not self._is_trusted(address):
                break
            nearer = parse_ip(element)
            if nearer is None:
                break
            address = nearer
        return address

    def _look_up(self, address: IpAddress) -> bool:
        return any(address in network for network in self._networks)

    def _elements(self, headers: RawHeaders) -> list[str]:
        lines = [value for name, value in headers if name.lower() == self._header]
        if not lines:
            return []
        text = b",".join(lines).decode("latin-1")
        if self._header == b"forwarded":
            return _forwarded(text)
        # Those on the left are of no interest: the client is found from the right.
        return text.rsplit(",", _MOST_ELEMENTS)[-_MOST_ELEMENTS:]


def _forwarded(text: str) -> list[str]:
    """What each element of RFC 7239 says it is for; empty where it does not say."""
    elements = [""]
    at = 0
    while at < len(text):
        pair = _FORWARDED_PAIR.match(text, at)
        if pair is None:
            # From here on nobody knows where elements end: none of them is believed.
            return [""]
        if pair[1].lower() == "for":
            if elements[-1]:
                return [""]  # Said twice, so nobody knows which.
            elements[-1] = pair[2] if pair[2] is not None else pair[3]
        if pair[4] == ",":
            elements.append("")
        at = pair.end()
    return elements[-_MOST_ELEMENTS:]


def _parse_networks(texts: Sequence[str] | str) -> tuple[IpNetwork, ...]:
    if isinstance(texts, str):
        texts = texts.split(",")
    if not isinstance(texts, Iterable):
        raise OptionError("trusted_proxies", f"{quoted(texts)} is no list; write ['10.0.0.0/8']")
    networks: list[IpNetwork] = []
    for text in texts:
        try:
            network = ipaddress.ip_network(str(text).strip())
        except ValueError as error:
            raise OptionError(
                "trusted_proxies",
                f"{quoted(text)} is no address or network ({error}); write 10.0.0.1 or 10.0.0.0/8",
            ) from error
        networks.append(network)
    return tuple(networks)
