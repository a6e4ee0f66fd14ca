"""What `./bench.sh clients` asks: an application of FastAPI, without a limiter or with one.

    app.py PORT none
    app.py PORT weir SOCKET
    app.py PORT slowapi SOCKET
"""

import sys

import fastapi
import uvicorn


def bare():
    app = fastapi.FastAPI()

    @app.get("/")
    async def hello():
        return {"hello": "world"}

    return app


def with_weir(path):
    from weir_limiter import WeirMiddleware

    app = bare()
    app.add_middleware(WeirMiddleware, servers=[f"unix:{path}"], on_failure="closed")
    return app


def with_slowapi(path):
    from slowapi import Limiter
    from slowapi.util import get_remote_address

    limiter = Limiter(key_func=get_remote_address, storage_uri=f"redis+unix://{path}")
    app = fastapi.FastAPI()
    app.state.limiter = limiter

    @app.get("/")
    @limiter.limit("1000000000/hour")
    async def hello(request: fastapi.Request):
        return {"hello": "world"}

    return app


LIMITERS = {"none": bare, "weir": with_weir, "slowapi": with_slowapi}

if __name__ == "__main__":
    port, limiter, *rest = sys.argv[1:]
    uvicorn.run(LIMITERS[limiter](*rest), host="127.0.0.1", port=int(port), log_level="warning",
                access_log=False, proxy_headers=False)
