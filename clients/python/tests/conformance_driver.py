"""Does what the lists of clients/conformance tell it: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
import time
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from weir_limiter import Decision, OptionError, WeirClient, WeirError, WeirMiddleware
from weir_limiter.advice import read_advice
from weir_limiter.client_address import UNKNOWN, ClientAddresses, ip_key
from weir_limiter.limit_text import parse_limit

Thing = dict[str, Any]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def take(self) -> list[str]:
        taken, self.texts = self.texts, []
        return taken


def options_of(told: Thing) -> Thing:
    options = dict(told)
    if "deadline_ms" in options:
        options["deadline"] = options.pop("deadline_ms") / 1000
    return options


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def told(decision: Decision, began: float) -> Thing:
    return {
        "decision": {
            "allowed": decision.allowed,
            "rule": decision.rule,
            "limit": decision.limit,
            "remaining": decision.remaining,
            "cost": decision.cost,
            "retry_after_ms": milliseconds(decision.retry_after),
            "reset_after_ms": milliseconds(decision.reset_after),
            "delay_ms": milliseconds(decision.delay),
            "reason": decision.reason,
            "source": decision.source,
            "reservation": decision.reservation,
            "status": decision.status,
            "headers": [list(pair) for pair in decision.headers],
            "body": decision.body.decode(),
        },
        "elapsed_ms": (time.monotonic() - began) * 1000,
    }


# --- The application ---


async def any_path(request: Request) -> Response:
    path = request.url.path
    if path.startswith("/status/"):
        return PlainTextResponse("", int(path.removeprefix("/status/")))
    if path == "/boom":
        raise RuntimeError("as asked")
    if path == "/slow":
        await asyncio.sleep(int(request.query_params["ms"]) / 1000)
    if path == "/own-headers":
        return PlainTextResponse("hello", headers={"RateLimit": '"mine";r=1;t=1'})
    if path == "/client":
        decision: Decision = request.state.weir
        return JSONResponse({"allowed": decision.allowed, "remaining": decision.remaining})
    return PlainTextResponse("hello")


def from_header(name: str) -> Any:
    return lambda request: request.headers.get(name)


def middleware_options(given: Thing) -> Thing:
    options = dict(given)
    for name in ("user", "tier", "api_key", "key"):
        if name in options:
            options[name] = from_header(options[name])
    if "cost" in options:
        name = options["cost"]
        options["cost"] = lambda request: int(request.headers.get(name, "1"))
    if "exempt" in options:
        path = options.pop("exempt")
        options["exempt_when"] = lambda request: request.url.path == path
    return options


class Served:
    def __init__(self, thing: Thing) -> None:
        app = Starlette(routes=[Route("/{path:path}", any_path, methods=METHODS)])
        limited = WeirMiddleware(
            app,
            **options_of(thing.get("options", {})),
            **middleware_options(thing.get("middleware", {})),
        )
        self.server = uvicorn.Server(
            uvicorn.Config(
                limited, "127.0.0.1", 0, log_config=None, proxy_headers=False, lifespan="on"
            )
        )
        self.task = asyncio.create_task(self.server.serve())

    async def port(self) -> int:
        while not self.server.started:
            await asyncio.sleep(0.005)
        port: int = self.server.servers[0].sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self.server.should_exit = True
        await self.task


# --- What is told ---


class Driver:
    def __init__(self) -> None:
        self.clients: dict[str, WeirClient] = {}
        self.apps: dict[str, Served] = {}
        self.warnings = Warnings()
        logging.getLogger("weir_limiter").addHandler(self.warnings)
        logging.getLogger("weir_limiter").propagate = False
        logging.getLogger("uvicorn").addHandler(logging.NullHandler())
        logging.getLogger("uvicorn").propagate = False

    async def do(self, thing: Thing) -> Thing:
        try:
            answer: Thing = await getattr(self, thing["op"])(thing)
        except OptionError as error:
            return {"error": {"code": error.code, "option": error.option, "message": str(error)}}
        except WeirError as error:
            return {"error": {"code": error.code, "option": None, "message": str(error)}}
        return answer

    async def open(self, thing: Thing) -> Thing:
        self.clients[thing["client"]] = WeirClient(**options_of(thing["options"]))
        return {}

    async def close(self, thing: Thing) -> Thing:
        await self.clients.pop(thing["client"]).close()
        return {}

    async def check(self, thing: Thing) -> Thing:
        began = time.monotonic()
        decision = await self.clients[thing["client"]].check(
            thing.get("attributes"),
            rule=thing.get("rule"),
            cost=thing.get("cost", 1),
            http=thing.get("http"),
        )
        return told(decision, began)

    async def limit(self, thing: Thing) -> Thing:
        began = time.monotonic()
        decision = await self.clients[thing["client"]].limit(
            thing["key"],
            thing["limit"],
            algorithm=thing.get("algorithm"),
            cost=thing.get("cost", 1),
            http=thing.get("http"),
        )
        return told(decision, began)

    async def peek(self, thing: Thing) -> Thing:
        began = time.monotonic()
        decision = await self.clients[thing["client"]].peek(
            thing.get("attributes"), rule=thing.get("rule"), cost=thing.get("cost", 1)
        )
        return told(decision, began)

    async def reserve(self, thing: Thing) -> Thing:
        began = time.monotonic()
        decision = await self.clients[thing["client"]].reserve(
            thing.get("attributes"),
            rule=thing.get("rule"),
            cost=thing.get("cost", 1),
            ttl=thing["ttl_ms"] / 1000 if "ttl_ms" in thing else None,
        )
        return told(decision, began)

    async def commit(self, thing: Thing) -> Thing:
        began = time.monotonic()
        client = self.clients[thing["client"]]
        return told(await client.commit(thing["reservation"], cost=thing.get("cost")), began)

    async def cancel(self, thing: Thing) -> Thing:
        began = time.monotonic()
        return told(await self.clients[thing["client"]].cancel(thing["reservation"]), began)

    async def release(self, thing: Thing) -> Thing:
        began = time.monotonic()
        return told(await self.clients[thing["client"]].release(thing["reservation"]), began)

    async def refund(self, thing: Thing) -> Thing:
        began = time.monotonic()
        client = self.clients[thing["client"]]
        decision = await client.refund(
            thing["attributes"], rule=thing["rule"], cost=thing.get("cost", 1)
        )
        return told(decision, began)

    async def penalize(self, thing: Thing) -> Thing:
        began = time.monotonic()
        client = self.clients[thing["client"]]
        decision = await client.penalize(
            thing["attributes"], rule=thing["rule"], cost=thing.get("cost", 1)
        )
        return told(decision, began)

    async def reset(self, thing: Thing) -> Thing:
        began = time.monotonic()
        client = self.clients[thing["client"]]
        return told(await client.reset(thing["attributes"], rule=thing["rule"]), began)

    async def together(self, thing: Thing) -> Thing:
        return {"answers": await asyncio.gather(*map(self.do, thing["calls"]))}

    async def serve(self, thing: Thing) -> Thing:
        served = self.apps[thing["app"]] = Served(thing)
        return {"port": await served.port()}

    async def stop(self, thing: Thing) -> Thing:
        await self.apps.pop(thing["app"]).stop()
        return {}

    # --- Without a service ---

    async def client_ip(self, thing: Thing) -> Thing:
        addresses = ClientAddresses(
            trusted_proxies=thing.get("trusted_proxies"),
            hops=thing.get("hops"),
            header=thing.get("header") or "x-forwarded-for",
            ipv6_prefix=thing.get("ipv6_prefix") or 64,
        )
        headers = [(name.lower().encode(), value.encode()) for name, value in thing["headers"]]
        found = addresses.find(thing["peer"], headers)
        if found is None:
            return {"ip": None, "key": UNKNOWN}
        return {"ip": str(found), "key": ip_key(found, addresses.ipv6_prefix)}

    async def parse_limit(self, thing: Thing) -> Thing:
        limit = parse_limit(thing["limit"])
        if limit.word:
            return {"word": limit.word}
        if limit.is_concurrent:
            return {"concurrent": limit.count, "lease_ms": limit.lease // 1_000_000}
        return {
            "count": limit.count,
            "period_ms": limit.period // 1_000_000,
            "burst": limit.burst,
        }

    async def pacing(self, thing: Thing) -> Thing:
        advice = read_advice(thing["status"], map(tuple, thing["headers"]), thing["now"])
        wait = None if advice.wait is None else math.ceil(advice.wait * 1000)
        return {"wait_ms": wait, "remaining": advice.remaining}


async def main() -> None:
    driver = Driver()

    async def warnings(_: Thing) -> Thing:
        return {"warnings": driver.warnings.take()}

    operations = {"warnings": warnings}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        thing = json.loads(line)
        operation = operations.get(thing["op"], driver.do)
        print(json.dumps(await operation(thing)), flush=True)  # noqa: T201
    for served in list(driver.apps.values()):
        await served.stop()
    for client in list(driver.clients.values()):
        await client.close()


asyncio.run(main())
