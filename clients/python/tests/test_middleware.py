from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
import websockets
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from conftest import Service, Start
from running import calling, served
from weir_limiter import Decision, OptionError, WeirClient, WeirMiddleware, override

ORIGIN = {"Origin": "https://shop.example"}


async def hello(request: Request) -> Response:
    return PlainTextResponse("hello")


async def echo(websocket: WebSocket) -> None:
    await websocket.accept(headers=[(b"x-own", b"1")])
    await websocket.send_text("hello")
    await websocket.close()


def app_with(*middleware: Middleware, endpoint: Any = hello) -> Starlette:
    return Starlette(
        routes=[Route("/{path:path}", endpoint), WebSocketRoute("/ws", echo)],
        middleware=list(middleware),
    )


def limited(service: Service, **options: Any) -> Middleware:
    return Middleware(WeirMiddleware, **{"servers": [service.address], "deadline": 5.0, **options})


async def test_responses_say_what_is_left_and_denials_when_to_come_back(service: Service) -> None:
    async with calling(app_with(limited(service))) as client:
        for left in ("2", "1", "0"):
            response = await client.get("/")
            assert response.status_code == 200
            assert response.headers["x-ratelimit-remaining"] == left
        response = await client.get("/")
        assert response.status_code == 429
        assert 1100 < int(response.headers["retry-after"]) < 1350
        assert response.json()["rule"] == "per-ip"
        assert response.headers["content-type"] == "application/json"


async def test_plain_asgi_applications_are_limited_too(service: Service) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    guarded = WeirMiddleware(app, servers=[service.address], deadline=5.0)
    async with calling(guarded) as client:
        statuses = [(await client.get("/")).status_code for _ in range(4)]
    assert statuses == [204, 204, 204, 429]
    await guarded.client.close()


@pytest.mark.parametrize("cors_is_inside", [True, False])
async def test_a_browser_can_read_a_denial_wherever_cors_stands(
    service: Service, cors_is_inside: bool
) -> None:
    cors = Middleware(
        CORSMiddleware,
        allow_origins=[ORIGIN["Origin"]],
        allow_credentials=True,
        expose_headers=["RateLimit"],
    )
    limit = limited(service)
    app = app_with(*([limit, cors] if cors_is_inside else [cors, limit]))
    preflight = {**ORIGIN, "Access-Control-Request-Method": "GET"}
    async with calling(app) as client:
        for _ in range(10):
            response = await client.options("/", headers=preflight)
            assert response.status_code == 200
        responses = [await client.get("/", headers=ORIGIN) for _ in range(4)]
    assert [response.status_code for response in responses] == [200, 200, 200, 429]
    for response in responses:
        assert response.headers["access-control-allow-origin"] == ORIGIN["Origin"]
        assert response.headers["access-control-allow-credentials"] == "true"
        assert response.headers.get_list("ratelimit-policy") == ['"per-ip";q=3;w=3600']


async def test_cors_is_found_inside_an_application_that_is_wrapped(service: Service) -> None:
    inner = app_with(Middleware(CORSMiddleware, allow_origins=["*"]))
    async with calling(WeirMiddleware(inner, servers=[service.address], deadline=5.0)) as client:
        responses = [await client.get("/", headers=ORIGIN) for _ in range(4)]
    assert responses[3].status_code == 429
    assert responses[3].headers["access-control-allow-origin"] == "*"


async def test_handlers_are_told_the_decision(service: Service) -> None:
    async def tell(request: Request) -> Response:
        decision = request.state.weir
        return PlainTextResponse(str(decision and decision.remaining))

    exempt = {"exempt_when": lambda request: request.url.path == "/health"}
    async with calling(app_with(limited(service, **exempt), endpoint=tell)) as client:
        assert (await client.get("/")).text == "2"
        assert (await client.get("/health")).text == "None"
        assert (await client.get("/")).text == "1"


async def test_what_is_known_of_a_request_may_come_from_async_functions(start: Start) -> None:
    service = start(
        "rules:\n  - { name: team, match: { user: present }, key: [user, org], limit: 5/h }\n"
    )

    async def cost(request: Request) -> int:
        await asyncio.sleep(0)
        return int(request.headers["x-cost"])

    guard = limited(service, user=lambda request: request.headers["x-name"], org="acme", cost=cost)
    async with calling(app_with(guard)) as client:
        response = await client.get("/", headers={"X-Name": "ann", "X-Cost": "4"})
        assert response.headers["x-ratelimit-remaining"] == "1"
        response = await client.get("/", headers={"X-Name": "ann", "X-Cost": "2"})
        assert response.status_code == 429
        response = await client.get("/", headers={"X-Name": "x" * 40_000, "X-Cost": "1"})
        assert response.headers["x-ratelimit-remaining"] == "4"


async def test_a_cost_that_is_none_counts_as_one(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(app_with(limited(service, cost=lambda _: "many"))) as client:
        for left in ("2", "1"):
            assert (await client.get("/")).headers["x-ratelimit-remaining"] == left
    assert len(caplog.records) == 1


async def test_a_cost_beyond_all_counts_never_fits_rather_than_being_cheap(
    service: Service,
) -> None:
    async with calling(app_with(limited(service, cost=lambda _: 10**30))) as client:
        response = await client.get("/")
    assert (response.status_code, response.json()["reason"]) == (429, "never_fits")


async def test_a_long_path_or_header_does_not_get_around_the_limit(service: Service) -> None:
    async with calling(app_with(limited(service, headers=["x-a", "x-b"]))) as client:
        headers = {"X-A": "a" * 60_000, "X-B": "b" * 60_000, "Host": "h" * 60_000}
        for left in ("2", "1", "0"):
            response = await client.get("/" + "p" * 60_000, headers=headers)
            assert response.headers.get("x-ratelimit-remaining") == left


async def test_escapes_do_not_get_around_a_path(start: Start) -> None:
    service = start(
        "rules:\n  - { name: items, match: { path: '/items/*' }, key: ip, limit: 4/h }\n"
    )
    async with calling(app_with(limited(service))) as client:
        for path in ("/items/a", "/items%2fa", "/items/%23", "/items/%3Fx"):
            assert "ratelimit" in (await client.get(path)).headers, path
        assert (await client.get("/items/a%25")).status_code == 429


async def test_another_response_may_be_given_for_a_denial(service: Service) -> None:
    async def own(request: Request, decision: Decision) -> Response:
        return PlainTextResponse(f"slow down, {decision.reason}", 420)

    async with calling(app_with(limited(service, on_denied=own))) as client:
        responses = [await client.get("/") for _ in range(4)]
    assert responses[3].status_code == 420
    assert responses[3].text == "slow down, limited"
    assert responses[3].headers["content-type"].startswith("text/plain")
    assert "retry-after" in responses[3].headers


async def test_headers_can_be_left_out_of_denials_too(service: Service) -> None:
    async with calling(app_with(limited(service, rate_limit_headers=False))) as client:
        responses = [await client.get("/") for _ in range(4)]
    assert responses[3].status_code == 429
    for response in responses:
        assert not [name for name in response.headers if "ratelimit" in name]
    assert "retry-after" in responses[3].headers


async def test_a_place_is_kept_until_the_last_byte_is_sent_or_the_client_has_gone(
    start: Start,
) -> None:
    service = start("rules:\n  - { name: streams, key: ip, limit: 1 concurrent }\n")
    going_on = asyncio.Event()

    async def stream(request: Request) -> Response:
        async def chunks() -> Any:
            yield b"begun"
            await going_on.wait()
            yield b"done"

        return StreamingResponse(chunks())

    async with (
        served(app_with(limited(service), endpoint=stream)) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        async with client.stream("GET", "/") as response:
            assert response.status_code == 200
            assert (await client.get("/")).status_code == 429
        # That client has gone without the rest.
        going_on.set()
        while (await client.get("/")).status_code == 429:
            await asyncio.sleep(0.01)


async def test_websockets_are_refused_by_a_real_429(service: Service) -> None:
    async with served(app_with(limited(service)), ws="websockets-sansio") as port:
        for left in ("2", "1", "0"):
            async with websockets.connect(f"ws://127.0.0.1:{port}/ws") as socket:
                assert socket.response is not None
                assert socket.response.headers["x-ratelimit-remaining"] == left
                assert socket.response.headers["x-own"] == "1"
                assert await socket.recv() == "hello"
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(f"ws://127.0.0.1:{port}/ws")
        assert refused.value.response.status_code == 429
        assert "retry-after" in refused.value.response.headers
        assert json.loads(refused.value.response.body or b"")["reason"] == "limited"


async def test_websockets_are_closed_where_a_server_cannot_send_a_response(
    service: Service,
) -> None:
    guarded = WeirMiddleware(app_with(), servers=[service.address], deadline=5.0)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    for _ in range(4):
        sent.clear()
        scope = {"type": "websocket", "path": "/ws", "headers": [], "client": ("203.0.113.9", 1)}
        await guarded(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "Too many requests"}]
    await guarded.client.close()


async def test_a_client_that_goes_away_while_it_is_asked_for_leaves_nothing_behind(
    start: Start,
) -> None:
    service = start("rules:\n  - { name: places, key: ip, limit: 1 concurrent }\n")
    app = app_with(limited(service, deadline=5.0))
    async with calling(app) as client:
        assert (await client.get("/")).status_code == 200
        for _ in range(20):
            asked = asyncio.ensure_future(client.get("/"))
            for _ in range(5):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        while (await client.get("/")).status_code != 200:
            await asyncio.sleep(0.01)


async def test_the_client_is_closed_with_the_application(service: Service) -> None:
    guarded = WeirMiddleware(app_with(), servers=[service.address], deadline=5.0)
    async with (
        served(guarded, lifespan="on") as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        assert (await client.get("/")).status_code == 200
        assert len(guarded.client._pools) == 1
    assert len(guarded.client._pools) == 0


async def test_who_is_let_through_as_a_proxy_by_the_server_is_warned_of(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_with(limited(service))
    async with (
        served(app, proxy_headers=True) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        for number in range(4):
            await client.get("/", headers={"X-Forwarded-For": f"198.51.100.{number}"})
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 1
    assert "--no-proxy-headers" in texts[0]


async def test_a_header_that_is_not_believed_is_told_of_once(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(app_with(limited(service))) as client:
        for number in range(4):
            headers = {"X-Forwarded-For": f"198.51.100.{number}"}
            response = await client.get("/", headers=headers)
    assert response.status_code == 429
    assert len([r for r in caplog.records if "trusted_proxies" in r.getMessage()]) == 1


async def test_without_an_address_all_count_together_and_that_is_told(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(app_with(limited(service, limit="2/h")), client="testclient") as client:
        statuses = [(await client.get("/")).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert len(caplog.records) == 1


async def test_a_limit_in_code_counts_ipv6_by_its_network(service: Service) -> None:
    app = app_with(limited(service, limit="2/h"))
    for address in ("2001:db8::1", "2001:db8::2"):
        async with calling(app, client=address) as client:
            assert (await client.get("/")).status_code == 200
    async with calling(app, client="2001:db8::3") as client:
        assert (await client.get("/")).status_code == 429
    async with calling(app, client="2001:db8:0:1::3") as client:
        assert (await client.get("/")).status_code == 200


async def test_tests_can_switch_it_off_or_put_another_client_in_its_place(
    service: Service, nobody: str
) -> None:
    app = app_with(Middleware(WeirMiddleware, servers=[nobody], on_failure="closed"))
    async with calling(app) as client, WeirClient([service.address], deadline=5.0) as other:
        assert (await client.get("/")).status_code == 429
        with override(enabled=False):
            assert (await client.get("/")).status_code == 200
        with override(client=other):
            assert (await client.get("/")).headers["x-ratelimit-remaining"] == "2"
    async with calling(app_with(Middleware(WeirMiddleware, enabled=False))) as client:
        assert (await client.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("servers", {"client": WeirClient(), "servers": ["a:1"]}),
        ("rule", {"limit": "1/s", "rule": "x"}),
        ("key", {"key": lambda _: "x"}),
        ("algorithm", {"algorithm": "sliding_log"}),
        ("algorithm", {"limit": "1/s", "algorithm": "gcra"}),
        ("limit", {"limit": "often"}),
        ("user", {"user": 7}),
        ("exempt_when", {"exempt_when": ["/health"]}),
        ("headers", {"headers": "x-plan"}),
        ("headers", {"headers": ["x plan"]}),
        ("cost", {"cost": -1}),
        ("cost", {"cost": "2"}),
        ("trusted_proxies", {"trusted_proxies": ["proxy.example"]}),
        ("trusted_proxies", {"trusted_proxies": ["10.0.0.1/8"]}),
        ("hops", {"hops": 0}),
        ("hops", {"hops": 1, "trusted_proxies": ["10.0.0.1"]}),
        ("proxy_header", {"proxy_header": "x-real-ip"}),
        ("ipv6_prefix", {"ipv6_prefix": 129}),
        ("static_limit", {"on_failure": "static"}),
        ("on_failure", {"on_failure": "static", "limit": "5 concurrent"}),
        ("on_failure", {"client": WeirClient(), "on_failure": "closed"}),
        ("token", {"client": WeirClient(), "token": "x"}),
        ("client", {"client": "127.0.0.1:6380"}),
        ("exempt_when", {"exempt_when": "/health"}),
        ("on_denied", {"on_denied": "/denied"}),
        ("enabled", {"enabled": "false"}),
        ("rate_limit_headers", {"rate_limit_headers": "no"}),
        ("rule", {"rule": 5}),
        ("rule", {"rule": ""}),
        ("scope", {"limit": "1/s", "scope": 5}),
        ("limit", {"limit": ["1/s"]}),
        ("algorithm", {"limit": "1/s", "algorithm": ["sliding_log"]}),
        ("headers", {"headers": 5}),
        ("headers", {"headers": [5]}),
        ("trusted_proxies", {"trusted_proxies": 5}),
        ("proxy_header", {"proxy_header": None}),
        ("tls", {"tls": "ca.pem"}),
        ("tls", {"tls": {"ca": 5}}),
    ],
)
def test_options_that_cannot_be_are_errors_that_name_them(option: str, options: Any) -> None:
    with pytest.raises(OptionError) as error:
        WeirMiddleware(app_with(), **options)
    assert error.value.option == option


async def test_clients_of_one_ipv6_network_share_a_bucket_while_no_service_answers(
    nobody: str,
) -> None:
    app = app_with(
        Middleware(WeirMiddleware, servers=[nobody], on_failure="static", static_limit="1/h")
    )
    statuses = []
    for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        async with calling(app, client=address) as client:
            statuses.append((await client.get("/")).status_code)
    assert statuses == [200, 429, 200]
    async with WeirClient([nobody], on_failure="static", static_limit="1/h") as asking:
        decisions = [await asking.check(ip=f"2001:db8::{n}") for n in (1, 2)]
    assert [decision.allowed for decision in decisions] == [True, False]


async def test_false_is_nobody(start: Start) -> None:
    service = start(
        "rules:\n  - { name: users, match: { user: present }, key: user, limit: 1/h }\n"
    )
    app = app_with(
        Middleware(WeirMiddleware, servers=[service.address], deadline=5.0, user=lambda _: False)
    )
    async with calling(app) as client:
        assert [(await client.get("/")).status_code for _ in range(2)] == [200, 200]
