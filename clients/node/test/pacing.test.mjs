import assert from 'node:assert/strict';
import { test } from 'node:test';

import express from 'express';

import { pacedFetch, weir } from '../dist/esm/index.js';
import { collector, Daemon, until } from './daemon.mjs';
import { listen } from './web.mjs';

/** A server that answers as it is told, one answer after the other, the last one for ever. */
function scripted(...answers) {
  const calls = [];
  const fetch = async (input, init) => {
    const call = { at: performance.now(), input, body: init?.body };
    calls.push(call);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer instanceof Error) throw answer;
    const [status, headers = {}] = typeof answer === 'function' ? await answer() : answer;
    return new Response(`answer ${calls.length}`, { status, headers });
  };
  return { fetch, calls };
}

const URL_ONE = 'http://one.example/';

test('With RateLimit headers a caller never earns a 429', { timeout: 60_000 }, async (t) => {
  const daemon = await Daemon.start('rules: []\n');
  t.after(() => daemon.stop());
  const limiter = weir({
    servers: [daemon.address],
    limit: '10/s burst 3',
    deadline: 5000,
    logger: collector(),
  });
  t.after(() => limiter.close());
  const statuses = [];
  const app = express();
  app.use((req, res, next) => {
    res.on('finish', () => statuses.push(res.statusCode));
    next();
  }, limiter);
  app.use((req, res) => res.send('hello'));
  const url = `http://127.0.0.1:${await listen(t, app)}/`;
  const fetch = pacedFetch();
  await (await fetch(url)).text();
  await Promise.all(Array.from({ length: 8 }, async () => (await fetch(url)).text()));
  assert.deepEqual(statuses, Array(9).fill(200));
});

test('What is denied is sent again when the server says, not before, and others wait behind it', async () => {
  const { fetch, calls } = scripted(
    [429, { 'retry-after': '1' }],
    [200, { ratelimit: '"a";r=5;t=1' }],
  );
  const paced = pacedFetch({ fetch });
  const first = paced(URL_ONE, { body: 'first', method: 'POST' });
  await until(() => calls.length === 1);
  const second = paced(URL_ONE, { body: 'second', method: 'POST' });
  assert.equal((await first).status, 200);
  assert.equal((await second).status, 200);
  assert.deepEqual(
    calls.map(({ body }) => body),
    ['first', 'first', 'second'],
  );
  const waited = calls[1].at - calls[0].at;
  assert.ok(waited >= 1000 && waited < 1400, String(waited));
});

test('After a denial they go one after the other until the server says what is left', async () => {
  let underWay = 0;
  let most = 0;
  const slowly = (headers) => async () => {
    most = Math.max(most, (underWay += 1));
    await new Promise((resolve) => setTimeout(resolve, 10));
    underWay -= 1;
    return [200, headers];
  };
  const { fetch } = scripted([429, { 'retry-after': '0' }], slowly({}), slowly({}), slowly({}));
  const paced = pacedFetch({ fetch });
  await paced(URL_ONE);
  await Promise.all([paced(URL_ONE), paced(URL_ONE), paced(URL_ONE)]);
  assert.equal(most, 1);
});

test('No more are under way than the server has left', async () => {
  let underWay = 0;
  let most = 0;
  let left = 40;
  const fetch = async () => {
    most = Math.max(most, (underWay += 1));
    await new Promise((resolve) => setTimeout(resolve, 5));
    underWay -= 1;
    left -= 1;
    return new Response('', { headers: { ratelimit: `"a";r=${Math.min(left, 4)};t=1` } });
  };
  const paced = pacedFetch({ fetch });
  await paced(URL_ONE);
  await Promise.all(Array.from({ length: 30 }, () => paced(URL_ONE)));
  assert.ok(most > 1 && most <= 4, String(most));
});

test('Waits that are too long are not waited for, and hold nobody for longer than that', async () => {
  const { fetch, calls } = scripted([429, { 'retry-after': '3600' }], [200]);
  const paced = pacedFetch({ fetch, maxWait: 300 });
  assert.equal((await paced(URL_ONE)).status, 429);
  const begin = performance.now();
  assert.equal((await paced(URL_ONE)).status, 200);
  assert.ok(performance.now() - begin >= 295);
  assert.equal(calls.length, 2);
});

test('A request is sent again so often and no more', async () => {
  const { fetch, calls } = scripted([429, { 'retry-after': '0' }]);
  assert.equal((await pacedFetch({ fetch, maxRetries: 2 })(URL_ONE)).status, 429);
  assert.equal(calls.length, 3);
  const none = scripted([429, { 'retry-after': '0' }]);
  assert.equal((await pacedFetch({ fetch: none.fetch, maxRetries: 0 })(URL_ONE)).status, 429);
  assert.equal(none.calls.length, 1);
});

test('A 503 counts only if it says when', async () => {
  const { fetch, calls } = scripted([503, { 'retry-after': '0' }], [503]);
  assert.equal((await pacedFetch({ fetch })(URL_ONE)).status, 503);
  assert.equal(calls.length, 2);
});

test('Streams are not sent again, Requests are', async () => {
  const stream = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('once'));
        controller.close();
      },
    });
  const once = scripted([429, { 'retry-after': '0' }]);
  const answer = await pacedFetch({ fetch: once.fetch })(URL_ONE, {
    method: 'POST',
    body: stream(),
    duplex: 'half',
  });
  assert.equal(answer.status, 429);
  assert.equal(once.calls.length, 1);
  const bodies = [];
  const reading = async (request) => {
    bodies.push(await request.text());
    return new Response('', {
      status: bodies.length < 3 ? 429 : 200,
      headers: { 'retry-after': '0' },
    });
  };
  const request = new Request(URL_ONE, { method: 'POST', body: 'again' });
  assert.equal((await pacedFetch({ fetch: reading })(request)).status, 200);
  assert.deepEqual(bodies, ['again', 'again', 'again']);
});

test('One that is cancelled while it waits loses nobody their turn', async () => {
  const { fetch, calls } = scripted(
    [429, { 'retry-after': '1' }],
    [200, { ratelimit: '"a";r=9;t=1' }],
  );
  const paced = pacedFetch({ fetch });
  const first = paced(URL_ONE);
  await until(() => calls.length === 1);
  const controller = new AbortController();
  const cancelled = paced(URL_ONE, { signal: controller.signal });
  const last = paced(URL_ONE);
  controller.abort(new Error('enough'));
  await assert.rejects(cancelled, /enough/);
  await assert.rejects(paced(URL_ONE, { signal: controller.signal }), /enough/);
  assert.equal((await first).status, 200);
  assert.equal((await last).status, 200);
  assert.equal(calls.length, 3);
});

test('Servers are paced each by itself, and failures hold nobody up', async () => {
  const { fetch, calls } = scripted(
    [200, { ratelimit: '"a";r=0;t=30' }],
    new Error('lost'),
    new Error('lost'),
    [200],
  );
  const paced = pacedFetch({ fetch });
  await paced(URL_ONE);
  await assert.rejects(paced('http://two.example/'), /lost/);
  await assert.rejects(paced(new URL('http://two.example/')), /lost/);
  assert.equal((await paced('http://two.example:81/')).status, 200);
  assert.equal((await paced('http://two.example/')).status, 200);
  assert.equal(calls.length, 5);
});

test('Unless it is told otherwise it is the fetch of Node.js', async (t) => {
  const url = `http://127.0.0.1:${await listen(t, (req, res) => res.end('hello'))}/`;
  assert.equal(await (await pacedFetch()(url)).text(), 'hello');
  await assert.rejects(pacedFetch()('nonsense'), TypeError);
});

/** A limit of so many that never come back, and answers in any order. */
function limited(count, lateness) {
  let left = count;
  let refused = 0;
  let asked = 0;
  const fetch = async () => {
    asked += 1;
    const late = lateness(asked);
    const isRefused = left === 0;
    if (isRefused) refused += 1;
    else left -= 1;
    const headers = { ratelimit: `"a";r=${left};t=1`, 'retry-after': '3600' };
    await new Promise((resolve) => setTimeout(resolve, late));
    return new Response('', { status: isRefused ? 429 : 200, headers });
  };
  return { fetch, refused: () => refused };
}

test('Many at once that begin together earn no 429 either', async () => {
  const server = limited(5, () => 5);
  const paced = pacedFetch({ fetch: server.fetch, maxWait: 200 });
  await Promise.all(Array.from({ length: 5 }, () => paced(URL_ONE)));
  const free = scripted([200]);
  const open = pacedFetch({ fetch: free.fetch });
  await Promise.all(Array.from({ length: 20 }, () => open(URL_ONE)));
  assert.equal(server.refused(), 0);
  const first = limited(1, () => 5);
  const one = pacedFetch({ fetch: first.fetch, maxWait: 200 });
  void Promise.all(Array.from({ length: 5 }, () => one(URL_ONE)));
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(first.refused(), 0);
});

test('An answer that was overtaken does not bring back what is gone', async () => {
  // Every third one is slow: it tells of more than there still is.
  const server = limited(12, (number) => (number % 3 === 2 ? 40 : 5));
  const paced = pacedFetch({ fetch: server.fetch, maxWait: 2000 });
  const all = Array.from({ length: 20 }, () => paced(URL_ONE));
  await new Promise((resolve) => setTimeout(resolve, 900));
  assert.equal(server.refused(), 0);
  await Promise.all(all);
});
