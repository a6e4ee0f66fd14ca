// Does what clients/conformance/run.py tells it: a line of JSON for each thing to do, a line of JSON
// for what came of it. It uses the built package, as a program would.
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { driverApp } from './conformance-app.mjs';
import { Client, OptionError, WeirError } from '../dist/esm/index.js';
import { ipKey } from '../dist/esm/address.js';
import { clientBehind, clientByHops } from '../dist/esm/client-ip.js';
import { Networks } from '../dist/esm/address.js';
import { parseLimit } from '../dist/esm/limit-text.js';
import { readPace } from '../dist/esm/pace.js';

const clients = new Map();
const apps = new Map();
let warnings = [];
const logger = { warn: (message) => warnings.push(message) };

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const absent = (value) => value ?? undefined;

function clientOptions(options = {}) {
  return {
    servers: absent(options.servers),
    token: absent(options.token),
    tls: absent(options.tls),
    deadline: absent(options.deadline_ms),
    onFailure: absent(options.on_failure),
    staticLimit: absent(options.static_limit),
    share: absent(options.share),
    logger,
  };
}

async function decided(promise) {
  const begin = performance.now();
  const decision = await promise;
  const { retryAfterMs, resetAfterMs, delayMs, ...rest } = decision;
  return {
    decision: {
      ...rest,
      retry_after_ms: retryAfterMs,
      reset_after_ms: resetAfterMs,
      delay_ms: delayMs,
    },
    elapsed_ms: performance.now() - begin,
  };
}

function withClient(verb) {
  return (thing) => decided(verb(clients.get(thing.client), thing));
}

const cost = (thing) => ({ cost: absent(thing.cost) });
const checkOptions = (thing) => ({
  rule: absent(thing.rule),
  ...cost(thing),
  http: absent(thing.http),
});

const doers = {
  open: (thing) => {
    clients.set(thing.client, new Client(clientOptions(thing.options)));
    return {};
  },
  close: (thing) => {
    clients.get(thing.client)?.close();
    clients.delete(thing.client);
    return {};
  },
  check: withClient((client, thing) => client.check(thing.attributes ?? {}, checkOptions(thing))),
  limit: withClient((client, thing) =>
    client.limit(thing.key, thing.limit, {
      algorithm: absent(thing.algorithm),
      ...cost(thing),
      http: absent(thing.http),
    }),
  ),
  peek: withClient((client, thing) => client.peek(thing.attributes ?? {}, checkOptions(thing))),
  reserve: withClient((client, thing) =>
    client.reserve(thing.attributes ?? {}, { ...checkOptions(thing), ttlMs: absent(thing.ttl_ms) }),
  ),
  commit: withClient((client, thing) => client.commit(thing.reservation, cost(thing))),
  cancel: withClient((client, thing) => client.cancel(thing.reservation)),
  release: withClient((client, thing) => client.release(thing.reservation)),
  refund: withClient((client, thing) =>
    client.refund(thing.rule, thing.attributes ?? {}, cost(thing)),
  ),
  penalize: withClient((client, thing) =>
    client.penalize(thing.rule, thing.attributes ?? {}, cost(thing)),
  ),
  reset: withClient((client, thing) => client.reset(thing.rule, thing.attributes ?? {})),
  together: async (thing) => ({ answers: await Promise.all(thing.calls.map(answerTo)) }),
  warnings: () => {
    const told = warnings;
    warnings = [];
    return { warnings: told };
  },
  client_ip: (thing) => {
    const kind = thing.header ?? 'x-forwarded-for';
    const lines = thing.headers
      .filter(([name]) => name.toLowerCase() === kind)
      .map(([, value]) => value);
    const header = lines.length === 0 ? undefined : lines.join(', ');
    const networks = new Networks(thing.trusted_proxies ?? [], 'trustedProxies');
    const ip = thing.hops
      ? clientByHops(thing.peer, header, kind, thing.hops)
      : clientBehind(thing.peer, header, kind, (address) => networks.has(address));
    return { ip: ip ?? null, key: ipKey(ip, thing.ipv6_prefix ?? 64) };
  },
  parse_limit: (thing) => {
    const limit = parseLimit(thing.limit);
    if (limit.kind === 'rate')
      return { count: limit.count, period_ms: limit.periodMs, burst: limit.burst };
    if (limit.kind === 'concurrent') return { concurrent: limit.count, lease_ms: limit.leaseMs };
    return { word: limit.kind };
  },
  pacing: (thing) => {
    const { waitMs, remaining } = readPace(
      thing.status,
      new Headers(thing.headers),
      thing.now * 1000,
    );
    return { wait_ms: waitMs, remaining };
  },
  serve: async (thing) => {
    const { server, limiter } = driverApp(clientOptions(thing.options), thing.middleware ?? {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    apps.set(thing.app, { server, limiter });
    return { port: server.address().port };
  },
  stop: async (thing) => {
    const { server, limiter } = apps.get(thing.app);
    apps.delete(thing.app);
    server.close();
    server.closeAllConnections?.();
    await once(server, 'close');
    limiter.close();
    return {};
  },
};

async function answerTo(thing) {
  try {
    const act = doers[thing.op];
    if (act === undefined) throw new Error(`no such op: ${thing.op}`);
    return await act(thing);
  } catch (error) {
    if (error instanceof OptionError) {
      return {
        error: { code: 'invalid_option', option: snake(error.option), message: error.message },
      };
    }
    const code = error instanceof WeirError ? error.code : 'internal';
    return { error: { code, option: null, message: String(error.stack ?? error) } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
for (const client of clients.values()) client.close();
for (const { server, limiter } of apps.values()) {
  server.close();
  server.closeAllConnections?.();
  limiter.close();
}
