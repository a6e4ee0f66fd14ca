// What `./bench.sh clients` asks: an application of Express, without a limiter or with one.
//
//   app.js PORT none
//   app.js PORT weir SOCKET
//   app.js PORT express-rate-limit SOCKET
import express from "express";

const limiters = {
  none: () => [],
  weir: async (path) => {
    const { weir } = await import("weir-limiter");
    return [weir({ servers: [`unix:${path}`], onFailure: "closed" })];
  },
  "express-rate-limit": async (path) => {
    const { rateLimit } = await import("express-rate-limit");
    const { RedisStore } = await import("rate-limit-redis");
    const { createClient } = await import("redis");
    const client = createClient({ socket: { path, tls: false } });
    await client.connect();
    const store = new RedisStore({ sendCommand: (...words) => client.sendCommand(words) });
    return [rateLimit({ windowMs: 3_600_000, limit: 1_000_000_000, standardHeaders: "draft-8", store })];
  },
};

const [port, limiter, ...rest] = process.argv.slice(2);
const app = express();
for (const middleware of await limiters[limiter](...rest)) app.use(middleware);
app.get("/", (request, response) => {
  response.json({ hello: "world" });
});
app.listen(Number(port), "127.0.0.1");
