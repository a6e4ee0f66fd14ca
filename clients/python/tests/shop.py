"""An application for tests that need worker processes. Where its services are WEIR_SERVERS says."""

import os
from collections.abc import Awaitable, Callable

from fastapi import Depends, FastAPI, Request, Response

from weir_limiter import WeirMiddleware, limit

app = FastAPI()
app.add_middleware(
    WeirMiddleware,
    on_failure="closed",
    deadline=float(os.environ.get("SHOP_DEADLINE", "5")),
)


@app.middleware("http")
async def say_who(request: Request, pass_on: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await pass_on(request)
    response.headers["X-Process"] = str(os.getpid())
    return response


@app.get("/")
async def hello() -> int:
    return os.getpid()


@app.get("/report", dependencies=[Depends(limit("50/h", key="everybody"))])
async def report() -> int:
    return os.getpid()
