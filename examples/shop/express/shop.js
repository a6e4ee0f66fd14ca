// A small shop on Express, limited by the policy of the service beside it. See ../README.md.
import { createHmac, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import express from "express";
import { weir } from "weir-limiter";

const products = [
  { id: 1, name: "tea" },
  { id: 2, name: "milk" },
  { id: 3, name: "honey" },
];
const accounts = new Map([
  ["ann", { password: "apple", tier: "free" }],
  ["pia", { password: "pear", tier: "pro" }],
]);
const secret = process.env.SHOP_SECRET ?? "only for an example";

// --- Who is asking: what the shop has signed itself, and nothing that a client could make up ---

function same(text, other) {
  const [a, b] = [text, other].map((each) => createHmac("sha256", secret).update(each).digest());
  return timingSafeEqual(a, b);
}

function sign(name) {
  return `${name}.${createHmac("sha256", secret).update(name).digest("hex")}`;
}

function user(request) {
  const [kind, token = ""] = (request.get("authorization") ?? "").split(" ");
  const [name] = token.split(".");
  return kind === "Bearer" && accounts.has(name) && same(token, sign(name)) ? name : undefined;
}

function tier(request) {
  return accounts.get(user(request))?.tier;
}

function loggedIn(request, response, next) {
  request.user = user(request);
  if (request.user !== undefined) return next();
  response.set("WWW-Authenticate", "Bearer").status(401).json({ detail: "Log in first" });
}

// --- The shop ---

const app = express();
app.use(weir({ user, tier, skip: (request) => request.path === "/healthz" }));
app.use(express.json());

app.get("/healthz", (request, response) => response.json("ok"));
app.get("/products", (request, response) => response.json(products));
app.get("/products/:number", (request, response) => {
  const found = products.find((item) => item.id === Number(request.params.number));
  if (found) return response.json(found);
  response.status(404).json({ detail: "There is no such product" });
});
app.get("/search", (request, response) => {
  const wanted = String(request.query.q ?? "");
  response.json(products.filter((item) => item.name.includes(wanted)));
});

// A limit in code, by address.
app.get("/reviews", weir({ name: "reviews", limit: "3/s" }), (request, response) => {
  response.json([{ product: 1, stars: 5 }]);
});

app.post("/auth/login", (request, response) => {
  const { user: name, password } = request.body ?? {};
  const account = accounts.get(name);
  if (account && same(account.password, String(password))) {
    return response.json({ token: sign(name) });
  }
  response.status(401).json({ detail: "Wrong name or password" });
});
app.get("/me", loggedIn, (request, response) => {
  response.json({ user: request.user, tier: tier(request) });
});
app.post("/orders", loggedIn, (request, response) => {
  response.status(201).json({ user: request.user, product: request.body?.product });
});
app.get("/exports", loggedIn, async (request, response) => {
  await sleep(1000); // It takes a while, and one at a time is enough for anybody.
  response.type("text/csv").send(`user,product\n${request.user},tea\n`);
});

app.listen(Number(process.env.SHOP_PORT ?? 8000), "127.0.0.1");
