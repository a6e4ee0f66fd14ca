"""Applications under test: in this process, or under a real uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn


def calling(app: Any, client: str = "203.0.113.9", port: int = 4711) -> httpx.AsyncClient:
    """Calls an application without a network, from an address of choice."""
    transport = httpx.ASGITransport(app, client=(client, port))
    return httpx.AsyncClient(transport=transport, base_url="http://shop.example")


@asynccontextmanager
async def served(app: Any, **options: Any) -> AsyncIterator[int]:
    """Runs it under uvicorn, in this event loop. Gives the port."""
    config = uvicorn.Config(
        app, "127.0.0.1", 0, log_config=None, **{"proxy_headers": False, **options}
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task
