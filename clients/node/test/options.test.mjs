import assert from 'node:assert/strict';
import { test } from 'node:test';

import express from 'express';

import { Client, ipKey, OptionError, pacedFetch, weir } from '../dist/esm/index.js';
import { collector } from './daemon.mjs';
import { call, listen } from './web.mjs';

test('Options that cannot be are errors that name them and what to write', () => {
  for (const [options, option, fix] of [
    [{ limit: '100 per minute' }, 'limit', '100/min'],
    [{ limit: 1.5 }, 'limit', 'whole'],
    [{ limit: {} }, 'limit', '100/min'],
    [{ key: () => 'x' }, 'key', 'limit'],
    [{ limit: '1/s', key: 'a', keyGenerator: () => 'b' }, 'keyGenerator', 'key'],
    [{ limit: '1/s', rule: 'per-ip' }, 'rule', 'limit'],
    [{ limit: '1/s', algorithm: 'gcra' }, 'algorithm', 'token_bucket'],
    [{ standardHeaders: 'draft-9' }, 'standardHeaders', 'draft-8'],
    [{ legacyHeaders: 'yes' }, 'legacyHeaders', 'true'],
    [{ cost: -1 }, 'cost', '0'],
    [{ headers: ['bad name'] }, 'headers', 'bad name'],
    [{ headers: 'x' }, 'headers', 'list'],
    [{ trustedProxies: ['10.0.0.0/33'] }, 'trustedProxies', '10.0.0.0/8'],
    [{ trustedProxies: ['proxy'] }, 'trustedProxies', '10.0.0.0/8'],
    [{ hops: 0 }, 'hops', '1'],
    [{ hops: 1, trustedProxies: [] }, 'hops', 'trustedProxies'],
    [{ ipv6Subnet: 16 }, 'ipv6Subnet', '32'],
    [{ windowMs: 1000 }, 'windowMs', 'limit'],
    [{ statusCode: 200 }, 'statusCode', '400'],
    [{ requestPropertyName: '' }, 'requestPropertyName', 'rateLimit'],
    [{ handler: 'no' }, 'handler', 'function'],
    [{ client: {} }, 'client', 'new Client'],
    [{ skip: 'yes' }, 'skip', 'function'],
    [{ user: { id: 7 } }, 'user', 'function'],
    [{ limit: '1/s', key: ['ip'] }, 'key', 'function'],
    [{ limit: '1/s', name: 7 }, 'name', 'text'],
    [{ ip: 'nowhere' }, 'ip', 'function'],
    [{ validate: 'no' }, 'validate', 'false'],
    [{ tls: { cert: 'client.pem' } }, 'tls', 'certificate'],
    [{ tls: 'ca.pem' }, 'tls', 'certificate'],
    [{ servers: ['localhost'] }, 'servers', '127.0.0.1:6380'],
    [{ servers: ['a:1', 'a:1'] }, 'servers', 'twice'],
    [{ deadline: 0 }, 'deadline', 'milliseconds'],
    [{ onFailure: 'ajar' }, 'onFailure', 'static'],
    [{ onFailure: 'static' }, 'staticLimit', '100/min'],
    [{ onFailure: 'static', staticLimit: '5 concurrent' }, 'staticLimit', 'rate'],
    [{ onFailure: 'static', limit: '5 concurrent' }, 'limit', 'rate'],
    [{ share: 0 }, 'share', 'processes'],
    [{ token: '' }, 'token', 'service'],
    [{ logger: {} }, 'logger', 'warn'],
    [{ tls: { ca: '/nonexistent/ca.pem' } }, 'tls', 'PEM'],
    [{ validate: { ERR_WEIR_NONE: false } }, 'validate', 'ERR_WEIR_DOUBLE_COUNT'],
  ]) {
    assert.throws(
      () => weir(options),
      (error) => {
        assert.ok(error instanceof OptionError, String(error));
        assert.equal(error.code, 'ERR_WEIR_OPTION');
        assert.equal(error.option, option);
        assert.ok(
          error.message.startsWith(`${option}: `) && error.message.includes(fix),
          error.message,
        );
        return true;
      },
      JSON.stringify(options),
    );
  }
});

test('Options that do not exist are errors, and those of express-rate-limit say what there is instead', () => {
  for (const [name, fix] of [
    ['limits', 'limit'],
    ['max', 'limit'],
    ['store', 'servers'],
    ['passOnStoreError', 'onFailure'],
    ['skipFailedRequests', 'reserve'],
    ['skipSuccessfulRequests', 'reserve'],
  ]) {
    assert.throws(() => weir({ [name]: 1 }), {
      code: 'ERR_WEIR_UNKNOWN_OPTION',
      option: name,
      message: new RegExp(fix),
    });
  }
  assert.throws(() => new Client({ server: '127.0.0.1:1' }), {
    code: 'ERR_WEIR_UNKNOWN_OPTION',
    option: 'server',
    message: /servers/,
  });
  assert.throws(() => pacedFetch({ retries: 1 }), {
    code: 'ERR_WEIR_UNKNOWN_OPTION',
    option: 'retries',
  });
  assert.throws(() => pacedFetch({ maxRetries: -1 }), {
    code: 'ERR_WEIR_OPTION',
    option: 'maxRetries',
  });
  assert.throws(() => pacedFetch({ maxWait: NaN }), { code: 'ERR_WEIR_OPTION', option: 'maxWait' });
});

test('Servers come from the options, else the environment, else are the usual one', (t) => {
  t.after(() => delete process.env.WEIR_SERVERS);
  process.env.WEIR_SERVERS = 'nonsense';
  assert.throws(() => new Client(), { option: 'servers' });
  new Client({ servers: '127.0.0.1:1,[::1]:2' }).close();
  process.env.WEIR_SERVERS = '';
  new Client().close();
  process.env.WEIR_SERVERS = '127.0.0.1:1, unix:/x';
  new Client().close();
});

test('Addresses count by what one client has of them', () => {
  assert.equal(ipKey('203.0.113.9'), '203.0.113.9');
  assert.equal(ipKey('::ffff:203.0.113.9'), '203.0.113.9');
  assert.equal(ipKey('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  assert.equal(ipKey('2001:db8:1:2:3:4:5:6', 48), '2001:db8:1::/48');
  assert.equal(ipKey('2001:db8:1:2ff:3:4:5:6', 56), '2001:db8:1:200::/56');
  assert.equal(ipKey('::1', 128), '::1');
  assert.equal(ipKey('::'), '::/64');
  assert.equal(ipKey(undefined), 'unknown');
  assert.equal(ipKey('junk'), 'unknown');
});

/** Nobody answers there, which does not matter for what is looked at. */
const nobody = { servers: ['127.0.0.1:1'] };

/** The codes of what was warned of. */
function codes({ messages }) {
  return messages.flatMap((message) => message.match(/ERR_WEIR_[A-Z0-9_]+/) ?? []);
}

async function warnedOf(
  t,
  options,
  { trustProxy, headers = {}, use = (app, limiter) => app.use(limiter) } = {},
) {
  const logger = collector();
  const limiter = weir({ ...nobody, logger, ...options });
  t.after(() => limiter.close());
  const app = express();
  if (trustProxy !== undefined) app.set('trust proxy', trustProxy);
  use(app, limiter);
  app.use((req, res) => res.send('hello'));
  const port = await listen(t, app);
  for (let round = 0; round < 3; round += 1) await call(port, '/', { headers });
  return codes(logger);
}

test('The classic mistakes are told once, by code', async (t) => {
  const forwarded = { 'x-forwarded-for': '198.51.100.1' };
  assert.deepEqual(await warnedOf(t, {}), []);
  assert.deepEqual(await warnedOf(t, {}, { trustProxy: true }), [
    'ERR_WEIR_PERMISSIVE_TRUST_PROXY',
  ]);
  assert.deepEqual(await warnedOf(t, {}, { headers: forwarded }), [
    'ERR_WEIR_UNEXPECTED_X_FORWARDED_FOR',
  ]);
  assert.deepEqual(await warnedOf(t, {}, { headers: forwarded, trustProxy: 1 }), []);
  assert.deepEqual(await warnedOf(t, { hops: 1 }, { headers: forwarded }), []);
  assert.deepEqual(await warnedOf(t, {}, { headers: { forwarded: 'for=198.51.100.1' } }), [
    'ERR_WEIR_FORWARDED_HEADER_IGNORED',
  ]);
  assert.deepEqual(
    await warnedOf(
      t,
      { proxyHeader: 'forwarded' },
      { headers: { forwarded: 'for=198.51.100.1' }, trustProxy: 1 },
    ),
    [],
  );
  assert.deepEqual(await warnedOf(t, { ip: () => '198.51.100.1:80:80' }), ['ERR_WEIR_INVALID_IP']);
  const setIp = (ip) => (app, limiter) =>
    app.use((req, res, next) => {
      Object.defineProperty(req, 'ip', { value: ip });
      next();
    }, limiter);
  assert.deepEqual(await warnedOf(t, {}, { use: setIp('nowhere') }), ['ERR_WEIR_INVALID_IP']);
  assert.deepEqual(await warnedOf(t, {}, { use: (app, limiter) => app.use(limiter, limiter) }), [
    'ERR_WEIR_DOUBLE_COUNT',
  ]);
  assert.deepEqual(
    await warnedOf(t, { limit: '5/h' }, { use: (app, limiter) => app.use(limiter, limiter) }),
    ['ERR_WEIR_DOUBLE_COUNT'],
  );
  assert.deepEqual(await warnedOf(t, { limit: '5/h', keyGenerator: (req) => req.ip }), [
    'ERR_WEIR_KEY_GEN_IPV6',
  ]);
  assert.deepEqual(await warnedOf(t, { limit: '5/h', keyGenerator: (req) => ipKey(req.ip) }), []);
});

test('A connection without an address is told of', async (t) => {
  const logger = collector();
  const limiter = weir({ ...nobody, logger, limit: '5/h' });
  t.after(() => limiter.close());
  const req = { headers: {}, method: 'GET', url: '/', socket: {} };
  const res = { headersSent: false, setHeader() {}, once() {} };
  await new Promise((resolve) => limiter(req, res, resolve));
  assert.deepEqual(codes(logger), ['ERR_WEIR_UNDEFINED_IP']);
  assert.equal(req.rateLimit.key, 'unknown');
});

test('A limiter that is made for each request is told of', async (t) => {
  const logger = collector();
  const app = express();
  app.use((req, res, next) => {
    const limiter = weir({ ...nobody, logger });
    t.after(() => limiter.close());
    limiter(req, res, next);
  });
  app.use((req, res) => res.send('hello'));
  await call(await listen(t, app));
  assert.deepEqual(codes(logger), ['ERR_WEIR_CREATED_IN_REQUEST_HANDLER']);
  const plain = await listen(t, (req, res) => {
    const limiter = weir({ ...nobody, logger });
    t.after(() => limiter.close());
    limiter(req, res, () => res.end());
  });
  await call(plain);
  assert.deepEqual(codes(logger).length, 2);
});

test('Two limiters of one name must have one limit', (t) => {
  const logger = collector();
  const name = 'shared prefix';
  for (const limit of ['5/h', '5/h', '6/h']) {
    const limiter = weir({ ...nobody, logger, name, limit });
    t.after(() => limiter.close());
  }
  assert.deepEqual(codes(logger), ['ERR_WEIR_SHARED_PREFIX']);
});

test('Looks can be left out, all of them or one', async (t) => {
  assert.deepEqual(await warnedOf(t, { validate: false }, { trustProxy: true }), []);
  const validate = { ERR_WEIR_PERMISSIVE_TRUST_PROXY: false };
  assert.deepEqual(await warnedOf(t, { validate }, { trustProxy: true }), []);
});
