import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';

import express4 from 'express4';
import express5 from 'express';

import { Client, weir } from '../dist/esm/index.js';
import { collector, Daemon, until } from './daemon.mjs';
import { call, listen } from './web.mjs';

const POLICY = `
rules:
  - { name: export, match: { path: /export }, key: ip, limit: 1 concurrent }
  - { name: queue, match: { path: /queue }, key: ip, limit: 10/s burst 5, algorithm: leaky_bucket, queue: true }
  - { name: per-user, match: { user: present }, key: user, limit: 3/h }
  - { name: per-ip, match: { path: /counted/** }, key: ip, limit: 2/h }
  - { name: grüße, match: { path: /words }, key: ip, limit: 1/h, message: "Zu viele, Zoë" }
`.replace('grüße', 'words');

let daemon;
let quiet;
before(async () => {
  daemon = await Daemon.start(POLICY);
  quiet = { servers: [daemon.address], deadline: 5000, logger: collector() };
});
after(() => daemon.stop());

/** A limiter that ends with its test. */
function limiter(t, options = {}) {
  const made = weir({ ...quiet, ...options });
  t.after(() => made.close());
  return made;
}

let names = 0;
const fresh = () => `name ${(names += 1)}`;

for (const [version, express] of [
  ['Express 4', express4],
  ['Express 5', express5],
]) {
  describe(version, () => {
    test('A limit in code is counted, told and enforced', async (t) => {
      const app = express();
      app.use(limiter(t, { limit: '2/h', name: fresh() }));
      app.get('/', (req, res) => res.json(req.rateLimit));
      const port = await listen(t, app);
      const first = await call(port);
      assert.equal(first.status, 200);
      assert.equal(first.headers['ratelimit-policy'], '"default";q=2;w=3600');
      const info = JSON.parse(first.body);
      assert.deepEqual(
        [info.allowed, info.limit, info.used, info.remaining, info.key, info.rule, info.source],
        [true, 2, 1, 1, '127.0.0.1', null, 'memory'],
      );
      assert.ok(Math.abs(Date.parse(info.resetTime) - Date.now() - 1_800_000) < 10_000);
      await call(port);
      const denied = await call(port);
      assert.equal(denied.status, 429);
      assert.ok(Number(denied.headers['retry-after']) >= 1790);
      assert.equal(denied.headers['content-type'], 'application/json');
      assert.equal(JSON.parse(denied.body).error, 'rate_limited');
    });

    test('Routes do not share a limit, unless they have the same name', async (t) => {
      const app = express();
      const router = express.Router();
      const name = fresh();
      const scope = fresh().replace(' ', '-');
      app.get(`/${scope}/a`, limiter(t, { limit: '1/h' }), (req, res) => res.send('a'));
      router.get('/a', limiter(t, { limit: '1/h' }), (req, res) => res.send('nested'));
      app.use(`/${scope}/nested`, router);
      app.get('/x', limiter(t, { limit: '1/h', name }), (req, res) => res.send('x'));
      app.get('/y', limiter(t, { limit: '1/h', name }), (req, res) => res.send('y'));
      const port = await listen(t, app);
      const statuses = [];
      for (const path of [`/${scope}/a`, `/${scope}/nested/a`, `/${scope}/a`, '/x', '/y']) {
        statuses.push((await call(port, path)).status);
      }
      assert.deepEqual(statuses, [200, 200, 429, 200, 429]);
    });

    test('trust proxy decides who is believed, and nobody is without it', async (t) => {
      for (const [setting, expected] of [
        [false, [200, 429, 429]],
        [1, [200, 200, 429]],
        ['loopback', [200, 200, 429]],
        [2, [200, 429, 429]],
      ]) {
        const app = express();
        app.set('trust proxy', setting);
        app.use(limiter(t, { limit: '1/h', name: fresh(), validate: false }));
        app.get('/', (req, res) => res.send('hello'));
        const port = await listen(t, app);
        const statuses = [];
        for (const forwarded of ['198.51.100.1', '198.51.100.2', '198.51.100.2:4711']) {
          statuses.push(
            (await call(port, '/', { headers: { 'x-forwarded-for': forwarded } })).status,
          );
        }
        assert.deepEqual(statuses, expected, String(setting));
      }
    });

    test('What the functions of an application throw goes to its error handler', async (t) => {
      for (const name of ['limit', 'key', 'cost', 'skip', 'handler', 'message']) {
        for (const fail of [
          () => {
            throw new Error('mine');
          },
          () => Promise.reject(new Error('mine')),
        ]) {
          const app = express();
          const limit = ['handler', 'message'].includes(name) ? 'deny' : '9/h';
          app.use(limiter(t, { limit, [name]: fail }));
          app.get('/', (req, res) => res.send('hello'));
          app.use((error, req, res, _next) => res.status(500).send(error.message));
          const answer = await call(await listen(t, app));
          assert.deepEqual([answer.status, answer.body], [500, 'mine'], name);
        }
      }
    });
  });
}

test('No Express is needed', async (t) => {
  const limit = limiter(t, { limit: '1/h', name: fresh(), trustedProxies: ['127.0.0.0/8'] });
  const port = await listen(t, (req, res) => {
    limit(req, res, () => res.end(`hello ${req.rateLimit.remaining}`));
  });
  const headers = { 'x-forwarded-for': '198.51.100.1' };
  assert.equal((await call(port, '/', { headers })).body, 'hello 0');
  assert.equal((await call(port, '/', { headers })).status, 429);
  assert.equal((await call(port)).status, 200);
});

test('Every option may be a function, and asynchronous', async (t) => {
  const name = fresh();
  const later = (value) => async () => value;
  const app = express5();
  app.use(
    limiter(t, {
      limit: later('10/h'),
      key: later('ann'),
      name: later(name),
      algorithm: later('fixed_window'),
      cost: later(4),
      skip: async (req) => req.path === '/free',
      standardHeaders: later('draft-7'),
      legacyHeaders: later(false),
      message: async () => ({ sorry: true }),
    }),
  );
  app.use((req, res) => res.json(req.rateLimit ?? null));
  const port = await listen(t, app);
  assert.equal((await call(port, '/free')).body, 'null');
  const answer = await call(port);
  const info = JSON.parse(answer.body);
  assert.deepEqual([info.limit, info.remaining, info.cost, info.key], [10, 6, 4, 'ann']);
  assert.match(answer.headers.ratelimit, /^limit=10, remaining=6, reset=\d+$/);
  assert.equal(answer.headers['ratelimit-policy'], '10;w=3600');
  assert.equal(answer.headers['x-ratelimit-limit'], undefined);
  await call(port);
  const denied = await call(port);
  assert.deepEqual([denied.status, denied.body], [429, '{"sorry":true}']);
});

test('A handler is told whom the limit has counted, as it was written', async (t) => {
  const app = express5();
  app.use(limiter(t, { limit: '9/h', name: `a|b ${fresh()}`, key: () => 'Zoë|雨' }));
  app.use((req, res) => res.json(req.rateLimit.key));
  assert.equal(JSON.parse((await call(await listen(t, app))).body), 'Zoë|雨');
});

test('The options of express-rate-limit for a window are understood', async (t) => {
  const app = express5();
  app.use(
    limiter(t, {
      windowMs: 15 * 60 * 1000,
      limit: 100,
      name: fresh(),
      standardHeaders: 'draft-6',
      legacyHeaders: true,
    }),
  );
  app.use((req, res) => res.send('hello'));
  const { headers } = await call(await listen(t, app));
  assert.equal(headers['ratelimit-policy'], '100;w=900');
  assert.equal(headers['ratelimit-limit'], '100');
  assert.equal(headers['ratelimit-remaining'], '99');
  assert.match(headers['ratelimit-reset'], /^\d+$/);
  assert.equal(headers['x-ratelimit-remaining'], '99');
});

test('A handler answers in its own way, with what it is told', async (t) => {
  const app = express5();
  app.use(
    limiter(t, {
      limit: 'deny',
      statusCode: 418,
      handler: (req, res, next, denial) =>
        res.status(denial.statusCode).send(`no: ${denial.reason}`),
    }),
  );
  const answer = await call(await listen(t, app));
  assert.deepEqual([answer.status, answer.body], [403, 'no: deny_list']);
  assert.match(answer.headers['content-type'], /^text\/html/);
});

test('Identities, headers and costs reach the policy', async (t) => {
  const app = express5();
  app.use(
    limiter(t, {
      user: async (req) => req.headers['x-login'],
      cost: (req) => Number(req.query.cost ?? 1),
    }),
  );
  app.use((req, res) => res.json(req.rateLimit));
  const port = await listen(t, app);
  const user = `Zoë ${fresh()}`;
  const headers = { 'x-login': Buffer.from(user).toString('latin1') };
  assert.equal(JSON.parse((await call(port, '/?cost=2', { headers })).body).remaining, 1);
  assert.equal((await call(port, '/?cost=2', { headers })).status, 429);
  // What is no cost is not free.
  assert.equal(JSON.parse((await call(port, '/?cost=NaN', { headers })).body).remaining, 0);
});

test('CORS headers stay on a denial, and preflights pass', async (t) => {
  const app = express5();
  app.use((req, res, next) => {
    res.set('Access-Control-Allow-Origin', '*');
    next();
  });
  app.use(limiter(t, { limit: 'deny' }));
  app.use((req, res) => res.send('hello'));
  const port = await listen(t, app);
  const denied = await call(port);
  assert.deepEqual([denied.status, denied.headers['access-control-allow-origin']], [403, '*']);
  const headers = { origin: 'https://shop.example', 'access-control-request-method': 'POST' };
  assert.equal((await call(port, '/', { method: 'OPTIONS', headers })).status, 200);
  assert.equal((await call(port, '/', { method: 'OPTIONS' })).status, 403);
});

test('Letters beyond ASCII arrive in a denial as they were written', async (t) => {
  const app = express5();
  app.use(limiter(t));
  app.use((req, res) => res.send('hello'));
  const port = await listen(t, app);
  await call(port, '/words');
  const denied = await call(port, '/words');
  assert.equal(JSON.parse(denied.body).message, 'Zu viele, Zoë');
  assert.equal((await call(port, '/words', { method: 'HEAD' })).body, '');
});

test('A place is given back when the client hangs up', async (t) => {
  const app = express5();
  app.use(limiter(t));
  let entered;
  app.get('/export', (req, res) => {
    if (req.query.hang) entered();
    else res.send('done');
  });
  const port = await listen(t, app);
  for (let round = 0; round < 3; round += 1) {
    const inside = new Promise((resolve) => (entered = resolve));
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /export?hang=1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await inside;
    assert.equal((await call(port, '/export')).status, 429);
    socket.destroy();
    await until(async () => (await call(port, '/export')).status === 200);
  }
});

test('Places of requests that were pipelined are given back when the client hangs up', async (t) => {
  const limit = limiter(t, { limit: '3 concurrent lease 60s', name: 'pipelined', key: 'all' });
  let entered = 0;
  const port = await listen(t, (req, res) => limit(req, res, () => (entered += 1)));
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3));
  await until(() => entered === 3);
  const free = async () => {
    const decision = await limit.client.limit('pipelined|all', '3 concurrent lease 60s');
    if (decision.allowed) await limit.client.release(decision.reservation);
    return decision.allowed ? decision.remaining + 1 : 0;
  };
  assert.equal(await free(), 0);
  socket.destroy();
  await until(async () => (await free()) === 3, 5000);
});

test('Places are given back when a stream of HTTP/2 ends before the decision', async (t) => {
  const limit = limiter(t, { limit: '3 concurrent lease 60s', name: 'streams', key: 'all' });
  let entered = 0;
  const server = createHttp2Server((req, res) => {
    req.stream.once('close', () => limit(req, res, () => (entered += 1)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connectHttp2(`http://127.0.0.1:${server.address().port}`);
  t.after(() => {
    session.destroy();
    server.close();
  });
  for (let round = 1; round <= 6; round += 1) {
    const stream = session.request();
    stream.on('error', () => undefined);
    setTimeout(() => stream.close(8), 20);
    await until(() => entered === round, 5000);
  }
});

test('A queue delays, and does not go on for those who have left', async (t) => {
  const app = express5();
  app.use(limiter(t));
  let handled = 0;
  app.get('/queue', (req, res) => {
    handled += 1;
    res.send('done');
  });
  const port = await listen(t, app);
  const begin = performance.now();
  const answers = await Promise.all([
    call(port, '/queue'),
    call(port, '/queue'),
    call(port, '/queue'),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.ok(performance.now() - begin >= 190);
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('GET /queue HTTP/1.1\r\nHost: x\r\n\r\n');
  const last = call(port, '/queue');
  socket.destroy();
  assert.equal((await last).status, 200);
  assert.ok(handled <= 5);
});

test('A request goes on in its own asynchronous context', async (t) => {
  const storage = new AsyncLocalStorage();
  const app = express5();
  app.use((req, res, next) => storage.run(req.url, next));
  app.use(limiter(t, { limit: '1M/s', name: fresh() }));
  app.use((req, res) => res.send(storage.getStore()));
  const port = await listen(t, app);
  const paths = Array.from({ length: 20 }, (_, at) => `/${at}`);
  const answers = await Promise.all(paths.map((path) => call(port, path)));
  assert.deepEqual(
    answers.map(({ body }) => body),
    paths,
  );
});

test('Huge keys, paths and headers do not cost anybody the connection', async (t) => {
  const logger = collector();
  const app = express5();
  const huge = 'x'.repeat(200_000);
  app.use(limiter(t, { logger, limit: '2/h', name: fresh(), key: () => huge }));
  app.use((req, res) => res.send(req.rateLimit.source));
  const port = await listen(t, app);
  assert.equal((await call(port)).body, 'memory');
  assert.equal((await call(port)).body, 'memory');
  assert.equal((await call(port)).status, 429);
  const plain = express5();
  plain.use(limiter(t, { logger, headers: ['x-a', 'x-b'], user: () => huge }));
  plain.use((req, res) => res.send(req.rateLimit.source));
  const second = await listen(t, plain);
  const headers = { 'x-a': 'a'.repeat(6000), 'x-b': 'b'.repeat(6000) };
  assert.equal((await call(second, `/${'p'.repeat(2000)}`, { headers })).body, 'memory');
  assert.deepEqual(logger.messages, []);
});

test('Limiters that are told the same share a connection, and the last one ends it', async (t) => {
  const one = limiter(t);
  const two = limiter(t, { limit: '5/h' });
  const other = limiter(t, { deadline: 4000 });
  assert.equal(one.client, two.client);
  assert.notEqual(one.client, other.client);
  one.close();
  one.close();
  assert.equal((await two.client.limit('shared', '5/h')).source, 'memory');
  two.close();
  assert.equal((await two.client.limit('shared', '5/h')).source, 'open');
});

test('A client of your own can be given', async (t) => {
  const client = new Client(quiet);
  t.after(() => client.close());
  const made = weir({ client, limit: '1/h', name: fresh() });
  assert.equal(made.client, client);
  made.close();
  assert.equal((await client.limit('own', '5/h')).source, 'memory');
});

test('Attempts are counted only if they failed, by a reservation', async (t) => {
  const { client } = limiter(t);
  const user = fresh();
  const app = express5();
  app.post('/login', async (req, res, next) => {
    const attempt = await client.reserve({ user }, { rule: 'per-user', ttlMs: 60_000 });
    if (!attempt.allowed) return res.sendStatus(429);
    res.on('close', () => {
      const failed = res.statusCode >= 400;
      (failed ? client.commit(attempt.reservation) : client.cancel(attempt.reservation)).catch(
        assert.fail,
      );
    });
    return next();
  });
  app.post('/login', (req, res) => res.sendStatus(Number(req.query.status)));
  const port = await listen(t, app);
  const left = async () => (await client.peek({ user }, { rule: 'per-user' })).remaining;
  for (let round = 0; round < 5; round += 1)
    await call(port, '/login?status=200', { method: 'POST' });
  await until(async () => (await left()) === 3);
  for (let round = 0; round < 3; round += 1)
    await call(port, '/login?status=401', { method: 'POST' });
  assert.equal((await call(port, '/login?status=200', { method: 'POST' })).status, 429);
});

test('What is no cost is not free, whatever a function says', async (t) => {
  for (const [cost, expected] of [
    [null, 1],
    ['', 1],
    [' ', 1],
    [[], 1],
    [false, 1],
    [-1, 1],
    [5n, 1],
    [0, 0],
    [1.5, 2],
    ['3', 3],
  ]) {
    const limit = limiter(t, { limit: '9/h', name: fresh(), cost: () => cost });
    const port = await listen(t, (req, res) =>
      limit(req, res, (error) => res.end(String(error ?? req.rateLimit.cost))),
    );
    assert.equal((await call(port)).body, String(expected), typeof cost);
  }
});

test('Functions that tell nothing are as if they were not there', async (t) => {
  for (const nothing of [() => null, async () => null, () => undefined]) {
    const limit = limiter(t, {
      limit: '9/h',
      key: nothing,
      name: nothing,
      algorithm: nothing,
      ip: nothing,
      standardHeaders: nothing,
      legacyHeaders: nothing,
    });
    const port = await listen(t, (req, res) =>
      limit(req, res, () => res.end(req.rateLimit.source)),
    );
    const answer = await call(port);
    assert.equal(answer.body, 'memory');
    assert.match(answer.headers.ratelimit, /^"default";r=/);
    const rules = limiter(t, { rule: nothing, user: nothing });
    const second = await listen(t, (req, res) =>
      rules(req, res, () => res.end(req.rateLimit.source)),
    );
    assert.equal((await call(second)).body, 'memory');
  }
});

test('What is truthy is skipped, as in express-rate-limit', async (t) => {
  for (const skip of [() => 'internal', async () => 1]) {
    const limit = limiter(t, { limit: 'deny', skip });
    const port = await listen(t, (req, res) => limit(req, res, () => res.end('hello')));
    assert.equal((await call(port)).status, 200);
  }
});

test('A message that is none, or comes when all is said, does no harm', async (t) => {
  const none = limiter(t, { limit: 'deny', message: () => undefined });
  const errors = [];
  const port = await listen(t, (req, res) => none(req, res, (error) => errors.push(error)));
  assert.equal((await call(port)).status, 403);
  const late = limiter(t, {
    limit: 'deny',
    message: async (req, res) => {
      res.writeHead(418).end('mine');
      return 'late';
    },
  });
  const second = await listen(t, (req, res) => late(req, res, (error) => errors.push(error)));
  assert.equal((await call(second)).body, 'mine');
  assert.deepEqual(errors, []);
});
