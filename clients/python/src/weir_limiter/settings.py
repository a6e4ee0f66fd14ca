"""Which client a limit asks, without anybody having to pass it around.

In this order: what a test has put in place, the client that the limit was given, that of the
middleware around it, that of `configure`, and one that is made when it is first needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .asgi import check_flag
from .client import WeirClient, check_client
from .client_address import ClientAddresses
from .facts import Facts


class Settings(NamedTuple):
    """Whom to ask, and how clients are known."""

    client: WeirClient
    facts: Facts
    enabled: bool = True
    rate_limit_headers: bool = True


class Override(NamedTuple):
    """What tests put in place; None leaves a thing as it is."""

    client: WeirClient | None
    enabled: bool | None


class _Chosen:
    """What holds for this process."""

    override: Override | None = None
    settings: Settings | None = None


chosen = _Chosen()


def configure(
    *,
    client: WeirClient | None = None,
    enabled: bool = True,
    rate_limit_headers: bool = True,
    trusted_proxies: Sequence[str] | str | None = None,
    hops: int | None = None,
    proxy_header: str = "x-forwarded-for",
    ipv6_prefix: int = 64,
    **options: Any,
) -> WeirClient:
    """Says whom limits ask where there is no middleware. `options` are those of a WeirClient."""
    addresses = ClientAddresses(
        trusted_proxies=trusted_proxies, hops=hops, header=proxy_header, ipv6_prefix=ipv6_prefix
    )
    check_flag("enabled", enabled)
    check_flag("rate_limit_headers", rate_limit_headers)
    if client is None:
        client = WeirClient(**options)
    else:
        check_client(client, **options)
    chosen.settings = Settings(client, Facts(addresses=addresses), enabled, rate_limit_headers)
    return client


def settings_now() -> Settings:
    """Those of `configure`, or the defaults."""
    if chosen.settings is None:
        configure()
    assert chosen.settings is not None  # noqa: S101
    return chosen.settings


async def shutdown() -> None:
    """Ends the connections of the client of `configure`, where no middleware does."""
    if chosen.settings is not None:
        await chosen.settings.client.close()


@contextlib.contextmanager
def override(*, client: WeirClient | None = None, enabled: bool | None = None) -> Iterator[None]:
    """For tests: all limits and middleware ask this client, or nobody."""
    before, chosen.override = chosen.override, Override(client, enabled)
    try:
        yield
    finally:
        chosen.override = before
