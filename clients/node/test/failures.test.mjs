import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'node:test';

import express from 'express';

import { Client, weir } from '../dist/esm/index.js';
import { collector, Daemon, until } from './daemon.mjs';
import { call, keepAlive, listen } from './web.mjs';

const POLICY = 'rules:\n  - { name: per-ip, key: ip, limit: 100k/h }\n';
const DEADLINE = 300;
/** What a busy machine may add. */
const SLACK = 400;

async function daemons(t, number) {
  const started = [];
  for (let at = 0; at < number; at += 1) {
    const daemon = await Daemon.start(POLICY);
    t.after(() => daemon.stop());
    started.push(daemon);
  }
  return started;
}

/** Calls from so many sides until told to stop; what came of each. */
function load(port, agent, sides) {
  const answers = [];
  let running = true;
  const done = Promise.all(
    Array.from({ length: sides }, async () => {
      while (running) answers.push(await call(port, '/', { agent }));
    }),
  );
  return {
    answers,
    stop: async () => {
      running = false;
      await done;
      return answers;
    },
  };
}

async function application(t, options) {
  const limiter = weir({ deadline: DEADLINE, ...options });
  t.after(() => limiter.close());
  const app = express();
  app.use(limiter);
  app.use((req, res) => res.send(req.rateLimit.source));
  return listen(t, app);
}

test('A daemon that is killed under load is replaced by the second, and nobody sees it', async (t) => {
  const [first, second] = await daemons(t, 2);
  const logger = collector();
  const port = await application(t, {
    servers: [first.address, second.address],
    onFailure: 'closed',
    logger,
  });
  const running = load(port, keepAlive(t), 16);
  await until(() => running.answers.length > 200);
  await first.kill();
  const killed = running.answers.length;
  await until(() => running.answers.length > killed + 500);
  const answers = await running.stop();
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  assert.ok(Math.max(...answers.map(({ elapsed }) => elapsed)) < DEADLINE + SLACK);
  assert.equal(logger.messages.length, 1, logger.messages.join('\n'));
  assert.match(logger.messages[0], /is left alone/);
});

test('A daemon that hangs under load is replaced within the deadline, and asked again when it is back', async (t) => {
  const [first, second] = await daemons(t, 2);
  const logger = collector();
  const port = await application(t, {
    servers: [first.address, second.address],
    onFailure: 'closed',
    logger,
  });
  const running = load(port, keepAlive(t), 16);
  await until(() => running.answers.length > 200);
  first.signal('SIGSTOP');
  const stopped = running.answers.length;
  await until(() => running.answers.length > stopped + 500);
  first.signal('SIGCONT');
  await until(() => logger.messages.length === 2);
  const answers = await running.stop();
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  assert.ok(Math.max(...answers.map(({ elapsed }) => elapsed)) < DEADLINE + SLACK);
  assert.match(logger.messages[0], /did not answer in time/);
  assert.match(logger.messages[1], /answers again/);
});

test('When all are killed under load every mode decides at once, and says so once', async (t) => {
  for (const [onFailure, expected] of [
    ['open', [200]],
    ['closed', [200, 429]],
    ['static', [200, 429]],
  ]) {
    const [only] = await daemons(t, 1);
    const logger = collector();
    const staticLimit = onFailure === 'static' ? '300/h' : undefined;
    const port = await application(t, { servers: [only.address], onFailure, staticLimit, logger });
    const running = load(port, keepAlive(t), 16);
    await until(() => running.answers.length > 100);
    await only.kill();
    const killed = running.answers.length;
    await until(() => running.answers.length > killed + 400);
    const answers = await running.stop();
    assert.deepEqual([...new Set(answers.map(({ status }) => status))].sort(), expected, onFailure);
    assert.ok(Math.max(...answers.map(({ elapsed }) => elapsed)) < DEADLINE + SLACK);
    assert.equal(logger.messages.length, 1, logger.messages.join('\n'));
    assert.match(logger.messages[0], /no service answers/);
  }
});

/** Keeps the event loop from turning. */
function standStill(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Asks `daemon` with a short deadline; returns the source of the answer or, if the client decided
 * alone, the reason. The first question has been answered. */
async function impatient(t, daemon) {
  const logger = collector();
  const client = new Client({
    servers: [daemon.address],
    deadline: 400,
    onFailure: 'closed',
    logger,
  });
  t.after(() => client.close());
  const ask = async () => {
    const { source } = await client.limit('still', '1M/h');
    return source === 'closed' ? logger.messages.join('; ') : source;
  };
  await ask();
  return ask;
}

test('A process that stood still does not take that for a time-out', async (t) => {
  const [daemon] = await daemons(t, 1);
  const ask = await impatient(t, daemon);
  for (let round = 0; round < 2; round += 1) {
    // Before it was written, and after.
    const before = ask();
    standStill(900);
    assert.deepEqual([round, await before], [round, 'memory']);
    const after = ask();
    await new Promise(setImmediate);
    standStill(900);
    assert.deepEqual([round, await after], [round, 'memory']);
  }
});

test('A process that stands still three times in a row does not take that for a time-out', async (t) => {
  const [daemon] = await daemons(t, 1);
  const ask = await impatient(t, daemon);
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  const sender = connect(await once(server, 'listening').then(() => server.address().port));
  const [receiver] = await once(server, 'connection');
  // 1. The timer of the first question rings late, and another timer delays the check that follows.
  // 2. So the client reads once more. What arrives then asks the second question...
  // 3. ...and blocks for longer than the deadline before that question is written.
  setTimeout(() => {
    standStill(20);
    setImmediate(() => sender.end('x'));
  }, 450);
  standStill(900);
  await once(receiver, 'data');
  const second = ask();
  standStill(900);
  assert.equal(await second, 'memory');
});

/** Takes connections, and does with them as told. */
async function impostor(t, act) {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    act(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${server.address().port}`;
}

test('More than can be under way is decided at once', async (t) => {
  const logger = collector();
  const address = await impostor(t, () => undefined);
  const client = new Client({ servers: [address], deadline: 2000, logger });
  const asked = Array.from({ length: 17_000 }, (_, at) => client.limit(`key ${at}`, '5/h'));
  const beyond = await Promise.all(asked.slice(16 * 1024));
  assert.ok(beyond.every(({ source }) => source === 'open'));
  assert.match(logger.messages[0], /has too many questions under way/);
  client.close();
  assert.ok((await Promise.all(asked)).every(({ source }) => source === 'open'));
  assert.equal(logger.messages.length, 1);
});

test('More than can be under way with one service is asked of the next', async (t) => {
  const [second] = await daemons(t, 1);
  const first = await impostor(t, () => undefined);
  const client = new Client({
    servers: [first, second.address],
    deadline: 4000,
    onFailure: 'closed',
    logger: collector(),
  });
  t.after(() => client.close());
  const asked = Array.from({ length: 17_000 }, (_, at) => client.limit(`beyond ${at}`, '5/h'));
  const answers = await Promise.all(asked);
  assert.deepEqual([...new Set(answers.map(({ source }) => source))], ['memory']);
});

test('What settles is never sent twice', async (t) => {
  let commands = 0;
  const act = (socket) =>
    socket.on('data', () => {
      commands += 1;
      socket.destroy();
    });
  const servers = [await impostor(t, act), await impostor(t, act)];
  const client = new Client({ servers, logger: collector() });
  t.after(() => client.close());
  await assert.rejects(client.commit('0123456789abcdef'), { code: 'unavailable' });
  assert.equal(commands, 1);
});

test('A service that only greets is left alone for longer and longer, without a word each time', async (t) => {
  const logger = collector();
  let greeted = 0;
  const address = await impostor(t, (socket) => {
    socket.on('data', (data) => {
      const isPing = data.includes('PING');
      greeted += isPing ? 1 : 0;
      socket.write(isPing ? '+PONG\r\n' : "-ERR unknown command 'WEIR.LIMIT'\r\n");
    });
  });
  const client = new Client({ servers: [address], logger });
  t.after(() => client.close());
  await until(async () => {
    assert.equal((await client.limit('key', '5/h')).source, 'open');
    return greeted >= 2;
  });
  assert.equal(logger.messages.length, 1, logger.messages.join('\n'));
});

test('What nobody had asked for, and what ends in the middle, is survived', async (t) => {
  for (const say of ['+PONG\r\n', '*2\r\n$7\r\nallo', '*3\r\n:1\r\n:1\r\n:1\r\n', '\0\0\0']) {
    const address = await impostor(t, (socket) => socket.end(say));
    const client = new Client({ servers: [address], logger: collector() });
    const answers = await Promise.all([client.limit('a', '5/h'), client.limit('b', '5/h')]);
    assert.ok(answers.every(({ source }) => source === 'open'));
    client.close();
  }
});

test('A program ends by itself, whether services answer or not', async (t) => {
  const [daemon] = await daemons(t, 1);
  for (const [address, source] of [
    [daemon.address, 'memory'],
    ['127.0.0.1:1', 'open'],
  ]) {
    const program = `
      import { Client, weir } from ${JSON.stringify(new URL('../dist/esm/index.js', import.meta.url).href)};
      weir({ servers: [${JSON.stringify(address)}], limit: '5/h' });
      const client = new Client({ servers: [${JSON.stringify(address)}], logger: { warn() {} } });
      console.log((await client.limit('key', '5/h')).source);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      timeout: 10_000,
    });
    assert.equal((await run).stdout, `${source}\n`);
  }
});

/** What a program prints, and how long it takes, if `localhost` is first `::1` and then 127.0.0.1. */
async function runProgram(text) {
  const program = `
    import dns from 'node:dns';
    dns.lookup = (name, options, tell) =>
      setImmediate(tell, null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
      ]);
    import { Client } from ${JSON.stringify(new URL('../dist/esm/index.js', import.meta.url).href)};
    ${text}`;
  const begin = performance.now();
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', program],
    { timeout: 20_000 },
  );
  return { stdout, elapsed: performance.now() - begin };
}

test('A program ends by itself also when the second address of a name answers', async (t) => {
  const daemon = await Daemon.start(POLICY, { address: '127.0.0.1:0' });
  t.after(() => daemon.stop());
  const port = Number(daemon.address.split(':')[1]);
  const { stdout } = await runProgram(`
    const client = new Client({ servers: ['localhost:${port}'], deadline: 5000 });
    console.log((await client.limit('key', '5/h')).source);`);
  assert.equal(stdout, 'memory\n');
});

test('A program does not wait for the deadline of what was answered', async (t) => {
  const [daemon] = await daemons(t, 1);
  const { stdout, elapsed } = await runProgram(`
    const client = new Client({ servers: [${JSON.stringify(daemon.address)}], deadline: 15000 });
    console.log((await client.limit('key', '5/h')).source);`);
  assert.equal(stdout, 'memory\n');
  assert.ok(elapsed < 10_000, String(elapsed));
});

test('A connection that was closed while it was idle is made anew, and nobody is told', async (t) => {
  const logger = collector();
  const allowed = '*2\r\n$7\r\nallowed\r\n:1\r\n';
  let connections = 0;
  let closed = 0;
  const address = await impostor(t, (socket) => {
    connections += 1;
    socket.on('data', () => socket.end(allowed));
    socket.on('close', () => (closed += 1));
  });
  const client = new Client({ servers: [address], onFailure: 'closed', logger });
  t.after(() => client.close());
  for (let round = 1; round <= 5; round += 1) {
    assert.equal((await client.limit('key', '5/h')).source, 'memory');
    await until(() => closed === round);
  }
  assert.equal(connections, 5);
  assert.deepEqual(logger.messages, []);
});

test('While nobody answers a bucket is only looked at by a peek', async (t) => {
  const client = new Client({
    servers: ['127.0.0.1:1'],
    onFailure: 'static',
    staticLimit: '2/h',
    logger: collector(),
  });
  t.after(() => client.close());
  for (let round = 0; round < 5; round += 1) {
    assert.equal((await client.peek({ user: 'ann' })).remaining, 2);
  }
  const reserved = await client.reserve({ user: 'ann' });
  assert.deepEqual([reserved.remaining, reserved.reservation], [1, null]);
  assert.equal((await client.check({ user: 'ann' })).allowed, true);
  assert.equal((await client.peek({ user: 'ann' })).allowed, false);
});

test('While nobody answers those with IPv6 are counted by their network, too', async (t) => {
  const client = new Client({
    servers: ['127.0.0.1:1'],
    onFailure: 'static',
    staticLimit: '1/h',
    logger: collector(),
  });
  t.after(() => client.close());
  assert.equal((await client.check({ ip: '2001:db8::1' })).allowed, true);
  assert.equal((await client.check({ ip: '2001:db8::2' })).allowed, false);
  assert.equal((await client.check({ ip: '2001:db8:0:1::2' })).allowed, true);
  const limiter = weir({ client, ip: (req) => req.headers['x-ip'], validate: false });
  const port = await listen(t, (req, res) => limiter(req, res, () => res.end()));
  const statuses = [];
  for (const ip of ['2001:db8:5::1', '2001:db8:5::2', '2001:db8:6::1']) {
    statuses.push((await call(port, '/', { headers: { 'x-ip': ip } })).status);
  }
  assert.deepEqual(statuses, [200, 429, 200]);
});
