"""What is decided while no service answers, and how it is told over HTTP."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import Final, Literal

from .decision import Decision

OnFailure = Literal["open", "closed", "static"]
HttpForm = Literal["json", "problem"]

_PROBLEMS: Final = "https://iana.org/assignments/http-problem-types#"


def decide_open(cost: int) -> Decision:
    """The request passes."""
    return Decision(
        allowed=True,
        rule=None,
        limit=0,
        remaining=0,
        cost=cost,
        retry_after=0.0,
        reset_after=0.0,
        delay=0.0,
        reason="store_failure",
        source="open",
    )


def decide_closed(cost: int) -> Decision:
    """The request is refused, and may come back in a second."""
    return Decision(
        allowed=False,
        rule=None,
        limit=0,
        remaining=0,
        cost=cost,
        retry_after=1.0,
        reset_after=1.0,
        delay=0.0,
        reason="store_failure",
        source="closed",
    )


def with_http(decision: Decision, form: HttpForm | None) -> Decision:
    """The same, with what an HTTP server should say: as the service itself would put it."""
    if form is None:
        return decision
    if decision.allowed:
        return dataclasses.replace(decision, status=200)
    status = 403 if decision.reason == "deny_list" else 429
    kind = "application/json" if form == "json" else "application/problem+json"
    lines = [f"Content-Type: {kind}"]
    if decision.retry_after is not None:
        lines.append(f"Retry-After: {_seconds(decision.retry_after)}")
    lines += ["Cache-Control: no-store", ""]
    told = _denial(decision) if form == "json" else _problem(decision, status)
    body = json.dumps({**told, **_fields(decision)}, separators=(",", ":"))
    return dataclasses.replace(
        decision,
        status=status,
        header_lines="\r\n".join(lines).encode(),
        body=body.encode(),
    )


def message_of(decision: Decision) -> str:
    """A denial, told to a person."""
    match decision.reason:
        case "deny_list":
            return "This request is not allowed."
        case "never_fits":
            return "This request costs more than its limit can ever hold."
        case "store_failure":
            text = "The limit cannot be checked at the moment."
        case "overload":
            text = "Too many requests wait or hold places already."
        case _:
            text = "Too many requests."
    if decision.retry_after is None:
        return text
    seconds = _seconds(decision.retry_after)
    return f"{text} Retry after {seconds} second{'' if seconds == 1 else 's'}."


def _seconds(wait: float) -> int:
    return max(1, math.ceil(wait))


def _denial(decision: Decision) -> dict[str, object]:
    error = "forbidden" if decision.reason == "deny_list" else "rate_limited"
    return {"error": error, "message": message_of(decision)}


def _problem(decision: Decision, status: int) -> dict[str, object]:
    if decision.reason == "deny_list":
        kind, title = "about:blank", "Forbidden"
    elif decision.reason == "store_failure":
        kind, title = f"{_PROBLEMS}temporary-reduced-capacity", "Temporarily reduced capacity"
    else:
        kind, title = f"{_PROBLEMS}quota-exceeded", "Quota exceeded"
    told: dict[str, object] = {"type": kind, "title": title, "status": status}
    told["detail"] = message_of(decision)
    if kind != "about:blank":
        told["violated-policies"] = []
    return told


def _fields(decision: Decision) -> dict[str, object]:
    retry = decision.retry_after
    return {
        "allowed": decision.allowed,
        "rule": decision.rule,
        "limit": decision.limit,
        "remaining": decision.remaining,
        "cost": decision.cost,
        "retry_after": None if retry is None else math.ceil(retry),
        "retry_after_ms": None if retry is None else math.ceil(retry * 1000),
        "reset_after": math.ceil(decision.reset_after),
        "reset_after_ms": math.ceil(decision.reset_after * 1000),
        "reset_at": math.ceil(time.time() + decision.reset_after),
        "delay_ms": math.ceil(decision.delay * 1000),
        "reason": decision.reason,
        "source": decision.source,
    }
