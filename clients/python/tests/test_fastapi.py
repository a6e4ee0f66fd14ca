from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
import websockets
from fastapi import APIRouter, Depends, FastAPI, Request, Response, WebSocket
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.applications import Starlette
from starlette.routing import Route

from conftest import Service, Start
from running import calling, served
from weir_limiter import (
    Decision,
    OptionError,
    RateLimited,
    WeirClient,
    WeirMiddleware,
    configure,
    limit,
    limited,
    override,
)


@pytest.fixture
def _configured(start: Start) -> None:
    configure(servers=[start("rules: []\n").address], deadline=5.0)


pytestmark = pytest.mark.usefixtures("_configured")


def name_of(request: Request) -> str | None:
    return request.headers.get("x-name")


async def statuses(client: httpx.AsyncClient, path: str, times: int = 3, **more: Any) -> list[int]:
    return [(await client.get(path, **more)).status_code for _ in range(times)]


async def test_a_dependency_limits_its_route_and_says_what_is_left() -> None:
    app = FastAPI()

    @app.get("/", dependencies=[Depends(limit("2/h"))])
    async def hello() -> str:
        return "hello"

    async with calling(app) as client:
        first = await client.get("/")
        assert (first.status_code, first.headers["x-ratelimit-remaining"]) == (200, "1")
        assert (await client.get("/")).status_code == 200
        denied = await client.get("/")
        assert denied.status_code == 429
        assert denied.json()["error"] == "rate_limited"
        assert int(denied.headers["retry-after"]) >= 1700
        assert denied.headers["cache-control"] == "no-store"
        problem = await client.get("/", headers={"Accept": "application/problem+json"})
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.json()["title"] == "Quota exceeded"
    async with calling(app, client="203.0.113.10") as client:
        assert (await client.get("/")).status_code == 200


async def test_the_decision_is_what_the_dependency_gives() -> None:
    app = FastAPI()

    @app.get("/")
    async def hello(
        request: Request, decision: Annotated[Decision, Depends(limit("2/h", cost=2))]
    ) -> list[int]:
        return [decision.remaining, request.state.weir.cost]

    async with calling(app) as client:
        assert (await client.get("/")).json() == [0, 2]


async def test_routes_count_apart_unless_they_share_a_name() -> None:
    app = FastAPI()
    shared = limit("1/h", scope="both")
    one, two = APIRouter(prefix="/one"), APIRouter(prefix="/two")

    @one.get("/", dependencies=[Depends(limit("1/h"))])
    async def first() -> None: ...

    @two.get("/", dependencies=[Depends(limit("1/h"))])
    async def second() -> None: ...

    @one.get("/shared", dependencies=[Depends(shared)])
    async def third() -> None: ...

    @two.get("/shared")
    @limited(shared)
    async def fourth() -> None: ...

    app.include_router(one)
    app.include_router(two)
    async with calling(app) as client:
        assert await statuses(client, "/one/", 2) == [200, 429]
        assert await statuses(client, "/two/", 2) == [200, 429]
        assert await statuses(client, "/one/shared", 2) == [200, 429]
        assert await statuses(client, "/two/shared", 1) == [429]


async def test_what_is_in_the_path_makes_no_other_route() -> None:
    app = FastAPI()

    @app.get("/items/{number}", dependencies=[Depends(limit("1/h"))])
    async def item(number: int) -> int:
        return number

    async with calling(app) as client:
        assert [(await client.get(f"/items/{n}")).status_code for n in (1, 2)] == [200, 429]


async def test_keys_costs_and_exemptions_are_functions_of_the_request() -> None:
    app = FastAPI()

    async def cost(request: Request) -> int:
        return int(request.headers.get("x-cost", "1"))

    @app.get(
        "/",
        dependencies=[
            Depends(
                limit("5/h", key=name_of, cost=cost, exempt_when=lambda r: "x-vip" in r.headers)
            )
        ],
    )
    async def hello() -> None: ...

    async with calling(app) as client:
        ann, bob = {"X-Name": "ann", "X-Cost": "3"}, {"X-Name": "bob"}
        assert await statuses(client, "/", 2, headers=ann) == [200, 429]
        assert await statuses(client, "/", 5, headers=bob) == [200] * 5
        assert await statuses(client, "/", 3, headers={**bob, "X-VIP": "1"}) == [200] * 3
        assert await statuses(client, "/", 1, headers=bob) == [429]


async def test_a_decorated_endpoint_needs_no_request_and_keeps_its_parameters() -> None:
    app = FastAPI()

    @app.get("/add/{left}")
    @limited("2/h", message="Slow down.")
    def add(left: int, right: int = 1) -> int:
        """Adds."""
        return left + right

    @app.get("/own")
    @limited("5/h")
    async def own(request: Request) -> Response:
        return PlainTextResponse(request.url.path, headers={"RateLimit": '"mine";r=1'})

    async with calling(app) as client:
        response = await client.get("/add/1?right=2")
        assert (response.json(), response.headers["x-ratelimit-remaining"]) == (3, "1")
        assert (await client.get("/add/x")).status_code == 422
        denied = await client.get("/add/1")
        assert (denied.status_code, denied.json()["message"]) == (429, "Slow down.")
        response = await client.get("/own")
        assert response.text == "/own"
        assert response.headers.get_list("ratelimit") == ['"mine";r=1']
        assert response.headers["x-ratelimit-remaining"] == "4"
        schema = (await client.get("/openapi.json")).json()["paths"]["/add/{left}"]["get"]
        assert [p["name"] for p in schema["parameters"]] == ["left", "right"]
        assert schema["description"] == "Adds."


async def test_a_decorated_endpoint_of_starlette_is_limited_too() -> None:
    @limited("1/h")
    async def hello(request: Request) -> Response:
        return PlainTextResponse("hello")

    async with calling(Starlette(routes=[Route("/", hello)])) as client:
        response = await client.get("/")
        assert response.headers["x-ratelimit-remaining"] == "0"
        denied = await client.get("/")
        assert (denied.status_code, denied.json()["reason"]) == (429, "limited")


async def test_of_several_limits_the_scarcest_is_told() -> None:
    app = FastAPI()

    @app.get("/", dependencies=[Depends(limit("9/h", scope="a")), Depends(limit("2/s", scope="b"))])
    async def one() -> None: ...

    @app.get(
        "/2", dependencies=[Depends(limit("2/h", scope="c")), Depends(limit("9/s", scope="d"))]
    )
    async def two() -> None: ...

    async with calling(app) as client:
        for path in ("/", "/2"):
            response = await client.get(path)
            assert response.headers.get_list("x-ratelimit-limit") == ["2"]


async def test_denials_are_inside_cors_and_handlers_may_answer_otherwise() -> None:
    app = FastAPI()
    app.add_middleware(CORSMiddleware, allow_origins=["*"])

    @app.get("/", dependencies=[Depends(limit("1/h"))])
    async def hello() -> None: ...

    async with calling(app) as client:
        for status in (200, 429):
            response = await client.get("/", headers={"Origin": "https://shop.example"})
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == "*"

    other = FastAPI(routes=app.routes)

    @other.exception_handler(RateLimited)
    async def answer(request: Request, denial: RateLimited) -> Response:
        return JSONResponse({"wait": denial.decision.retry_after}, 420, denial.headers)

    async with calling(other) as client:
        response = await client.get("/")
        assert response.status_code == 420
        assert response.json()["wait"] > 3500
        assert "retry-after" in response.headers


@pytest.mark.parametrize("way", ["dependency", "decorator", "starlette"])
async def test_a_place_is_kept_until_the_response_is_done(way: str) -> None:
    places = limit("1 concurrent", scope="places")
    going_on = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"begun"
        await going_on.wait()
        yield b"done"

    async def stream(request: Request) -> Response:
        return StreamingResponse(chunks())

    app: Any = FastAPI()
    if way == "dependency":
        app.get("/", dependencies=[Depends(places)])(stream)
    elif way == "decorator":
        app.get("/")(limited(places)(stream))
    else:
        app = Starlette(routes=[Route("/", limited(places)(stream))])
    async with (
        served(app) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        async with client.stream("GET", "/") as response:
            assert response.status_code == 200
            assert (await client.get("/")).status_code == 429
            going_on.set()
            await response.aread()
        while (await client.get("/")).status_code != 200:
            await asyncio.sleep(0.01)


async def test_messages_of_websockets_are_limited_and_connections_before_they_are_accepted() -> (
    None
):
    app = FastAPI()
    messages = limit("2/h", scope="chat", key=lambda websocket: websocket.url.path)

    @app.websocket("/told")
    async def told(websocket: WebSocket) -> None:
        await websocket.accept()
        while True:
            await websocket.receive_text()
            decision = await messages.check(websocket)
            await websocket.send_text("ok" if decision and decision.allowed else "slow down")

    @app.websocket("/closed", dependencies=[Depends(limit("2/h"))])
    async def closed(websocket: WebSocket) -> None:
        await websocket.accept()
        while True:
            await websocket.receive_text()
            await messages(websocket)
            await websocket.send_text("ok")

    async with served(app, ws="websockets-sansio") as port:
        url = f"ws://127.0.0.1:{port}"
        async with websockets.connect(f"{url}/told") as socket:
            for answer in ("ok", "ok", "slow down", "slow down"):
                await socket.send("hello")
                assert await socket.recv() == answer
        async with websockets.connect(f"{url}/closed") as socket:
            for _ in range(2):
                await socket.send("hello")
                assert await socket.recv() == "ok"
            await socket.send("hello")
            with pytest.raises(websockets.ConnectionClosed) as end:
                await socket.recv()
            assert end.value.rcvd is not None
            assert (end.value.rcvd.code, end.value.rcvd.reason[:17]) == (1013, "Too many requests")
        async with websockets.connect(f"{url}/closed"):
            pass
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(f"{url}/closed")
        assert refused.value.response.status_code == 429
        assert b"rate_limited" in (refused.value.response.body or b"")


async def test_limits_ask_the_client_of_the_middleware_around_them(service: Service) -> None:
    configure(servers=["127.0.0.1:1"], on_failure="closed")
    app = FastAPI()
    app.add_middleware(
        WeirMiddleware, servers=[service.address], deadline=5.0, trusted_proxies=["203.0.113.9"]
    )

    @app.get("/", dependencies=[Depends(limit("1/h"))])
    async def hello() -> Response:
        return PlainTextResponse("hello")

    async with calling(app) as client:
        for number in (1, 2):
            headers = {"X-Forwarded-For": f"198.51.100.{number}"}
            assert await statuses(client, "/", 2, headers=headers) == [200, 429]


async def test_the_default_is_found_by_the_environment(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weir_limiter.settings import chosen

    chosen.settings = None
    monkeypatch.setenv("WEIR_SERVERS", service.address)
    app = FastAPI()

    @app.get("/")
    @limited("1/h")
    async def hello() -> None: ...

    async with calling(app) as client:
        assert await statuses(client, "/", 2) == [200, 429]


async def test_tests_can_switch_limits_off_or_ask_another_client(nobody: str) -> None:
    app = FastAPI()

    @app.get("/")
    @limited("1/h")
    async def hello() -> None: ...

    async with calling(app) as client, WeirClient([nobody], on_failure="closed") as closed:
        with override(enabled=False):
            assert await statuses(client, "/") == [200] * 3
        with override(client=closed):
            assert await statuses(client, "/", 1) == [429]
        assert await statuses(client, "/", 2) == [200, 429]


async def test_a_limit_is_its_own_while_no_service_answers(nobody: str) -> None:
    configure(servers=[nobody], on_failure="static")
    app = FastAPI()

    @app.get("/")
    @limited("2/h")
    async def hello() -> None: ...

    @app.get("/places", dependencies=[Depends(limit("1 concurrent"))])
    async def places() -> None: ...

    async with calling(app) as client:
        assert await statuses(client, "/") == [200, 200, 429]
        assert await statuses(client, "/places") == [200, 200, 200]


def test_what_cannot_be_is_an_error_when_the_program_starts(nobody: str) -> None:
    client = WeirClient([nobody], on_failure="static")
    for option, make in {
        "limit": lambda: limit("100 per minute"),
        "algorithm": lambda: limit("1/s", algorithm="gcra"),
        "cost": lambda: limit("1/s", cost=-1),
        "key": lambda: limit("1/s", key=7),  # type: ignore[arg-type]
        "on_failure": lambda: limit("1 concurrent", client=client),
        "scope": lambda: limited(limit("1/s"), scope="x"),
        "limited": lambda: limited("1/s")(7),  # type: ignore[type-var]
        "client": lambda: limit("1/s", client="127.0.0.1:6380"),  # type: ignore[arg-type]
        "exempt_when": lambda: limit("1/s", exempt_when="/health"),  # type: ignore[arg-type]
        "servers": lambda: configure(client=client, servers=["127.0.0.1:6380"]),
        "enabled": lambda: configure(enabled="false"),  # type: ignore[arg-type]
    }.items():
        with pytest.raises(OptionError) as error:
            make()  # type: ignore[no-untyped-call]
        assert error.value.option == option


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
async def test_an_endpoint_may_have_several_decorators_and_the_scarcest_is_told(kind: str) -> None:
    @limited("5/h", scope="a")
    @limited("2/h", scope="b")
    @limited("1 concurrent", scope="c")
    async def hello(request: Request) -> Response:
        return PlainTextResponse("hello")

    app: Any = Starlette(routes=[Route("/", hello)])
    if kind == "fastapi":
        app = FastAPI()
        app.get("/")(hello)
    async with calling(app) as client:
        first = await client.get("/")
        assert (first.status_code, first.text) == (200, "hello")
        assert await statuses(client, "/") == [200, 429, 429]


async def test_an_object_that_is_called_is_an_endpoint_too() -> None:
    class Endpoint:
        async def __call__(self, number: int) -> int:
            return number

    app = FastAPI()
    app.get("/")(limited("1/h")(Endpoint()))
    async with calling(app) as client:
        assert (await client.get("/?number=4")).json() == 4
        assert (await client.get("/?number=4")).status_code == 429


async def test_a_message_is_told_even_if_the_service_says_nothing() -> None:
    decision = Decision(False, None, 1, 0, 1, 1.0, 1.0, 0.0, "limited", "memory")
    denial = RateLimited(decision, message="Slow down.")
    assert b'"message":"Slow down."' in bytes(denial.response().body)


async def test_a_place_is_given_back_to_whom_it_was_taken_from(start: Start) -> None:
    places = limit("1 concurrent", scope="places")
    request = Request({"type": "http", "method": "GET", "headers": [], "client": ("::1", 1)})
    async with WeirClient([start("rules: []\n").address], deadline=5.0) as other:
        with override(client=other):
            holding = places.hold(request)
            await holding.__aenter__()
        await holding.__aexit__(None, None, None)
        with override(client=other):
            async with places.hold(request) as decision:
                assert decision is not None
                assert decision.source == "memory"
