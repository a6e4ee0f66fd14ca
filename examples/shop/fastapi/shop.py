"""A small shop on FastAPI, limited by the policy of the service beside it. See ../README.md."""

import asyncio
import hashlib
import hmac
import os

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel
from weir_limiter import WeirMiddleware, limit

PRODUCTS = [{"id": 1, "name": "tea"}, {"id": 2, "name": "milk"}, {"id": 3, "name": "honey"}]
ACCOUNTS = {"ann": ("apple", "free"), "pia": ("pear", "pro")}
SECRET = os.environ.get("SHOP_SECRET", "only for an example").encode()


# --- Who is asking: what the shop has signed itself, and nothing that a client could make up ---


def sign(user: str) -> str:
    return f"{user}.{hmac.new(SECRET, user.encode(), hashlib.sha256).hexdigest()}"


def user(request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    name = token.partition(".")[0]
    known = kind == "Bearer" and name in ACCOUNTS and hmac.compare_digest(token, sign(name))
    return name if known else None


def tier(request: Request) -> str | None:
    name = user(request)
    return ACCOUNTS[name][1] if name else None


def logged_in(request: Request) -> str:
    name = user(request)
    if name is None:
        raise HTTPException(401, "Log in first", {"WWW-Authenticate": "Bearer"})
    return name


# --- The shop ---

app = FastAPI(title="Shop")
app.add_middleware(
    WeirMiddleware,
    user=user,
    tier=tier,
    exempt_when=lambda request: request.url.path == "/healthz",
)


class Credentials(BaseModel):
    user: str
    password: str


class Order(BaseModel):
    product: int


@app.get("/healthz")
async def health() -> str:
    return "ok"


@app.get("/products")
async def products() -> list[dict]:
    return PRODUCTS


@app.get("/products/{number}")
async def product(number: int) -> dict:
    for item in PRODUCTS:
        if item["id"] == number:
            return item
    raise HTTPException(404, "There is no such product")


@app.get("/search")
async def search(q: str = "") -> list[dict]:
    return [item for item in PRODUCTS if q in item["name"]]


@app.get("/reviews", dependencies=[Depends(limit("3/s"))])  # A limit in code, by address.
async def reviews() -> list[dict]:
    return [{"product": 1, "stars": 5}]


@app.post("/auth/login")
async def log_in(credentials: Credentials) -> dict:
    password, _ = ACCOUNTS.get(credentials.user, ("", ""))
    if not password or not hmac.compare_digest(password.encode(), credentials.password.encode()):
        raise HTTPException(401, "Wrong name or password")
    return {"token": sign(credentials.user)}


@app.get("/me")
async def me(name: str = Depends(logged_in)) -> dict:
    return {"user": name, "tier": ACCOUNTS[name][1]}


@app.post("/orders", status_code=201)
async def order(wanted: Order, name: str = Depends(logged_in)) -> dict:
    return {"user": name, "product": wanted.product}


@app.get("/exports")
async def export(name: str = Depends(logged_in)) -> Response:
    await asyncio.sleep(1)  # It takes a while, and one at a time is enough for anybody.
    return Response(f"user,product\n{name},tea\n", media_type="text/csv")


if __name__ == "__main__":
    # Without proxy_headers=False uvicorn would believe X-Forwarded-For from this very machine.
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("SHOP_PORT", "8000")),
                log_level="warning", proxy_headers=False)
