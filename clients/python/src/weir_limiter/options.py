"""The options of a client, looked at once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from .addresses import Address, Tls, make_context, parse_addresses
from .errors import OptionError, quoted
from .failure import OnFailure
from .limit_text import Limit, parse_limit

if TYPE_CHECKING:
    import ssl

DEFAULT_DEADLINE: Final = 0.2
_MOST_DEADLINE: Final = 60.0
_MOST_SHARE: Final = 100_000


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What has been found to be right."""

    addresses: tuple[Address, ...]
    token: str | None
    context: ssl.SSLContext | None
    deadline: float
    on_failure: OnFailure
    static_limit: Limit | None
    share: int


def read_options(
    *,
    servers: str | Sequence[str] | None,
    token: str | None,
    tls: Tls | Mapping[str, str] | ssl.SSLContext | None,
    deadline: float,
    on_failure: OnFailure,
    static_limit: str | None,
    share: int,
) -> ClientOptions:
    """The options as they are used, or an OptionError that names the one that cannot be."""
    addresses = parse_addresses(servers)
    if token is not None and (not isinstance(token, str) or not token):
        raise OptionError("token", "write text, or leave it out")
    if isinstance(deadline, bool) or not isinstance(deadline, int | float):
        raise OptionError("deadline", f"{quoted(deadline)} is no number; write seconds, as 0.2")
    if not 0 < deadline <= _MOST_DEADLINE:
        raise OptionError(
            "deadline",
            f"{deadline:g} is not allowed; write seconds, more than 0 and at most "
            f"{_MOST_DEADLINE:g}",
        )
    if on_failure not in get_args(OnFailure):
        raise OptionError(
            "on_failure", f"{quoted(on_failure)} is not allowed; write open, closed or static"
        )
    if type(share) is not int or not 1 <= share <= _MOST_SHARE:
        raise OptionError("share", f"{quoted(share)} is not allowed; write 1 to {_MOST_SHARE}")
    needs_tls = tls is not None or any(address.tls for address in addresses)
    return ClientOptions(
        addresses=addresses,
        token=token,
        context=make_context(tls) if needs_tls else None,
        deadline=float(deadline),
        on_failure=on_failure,
        static_limit=None if static_limit is None else _static(static_limit),
        share=share,
    )


def _static(text: str) -> Limit:
    limit = parse_limit(text, None, "static_limit")
    if limit.is_concurrent:
        raise OptionError(
            "static_limit", f"{quoted(text)} cannot be counted by a bucket; write 100/min"
        )
    return limit
