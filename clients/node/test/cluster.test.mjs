// Eight processes share one limit exactly.
import assert from 'node:assert/strict';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Daemon } from './daemon.mjs';
import { call } from './web.mjs';

const WORKERS = 8;

async function startWorkers(servers) {
  cluster.setupPrimary({ exec: fileURLToPath(new URL('cluster-worker.mjs', import.meta.url)) });
  const workers = Array.from({ length: WORKERS }, () => cluster.fork({ WEIR_SERVERS: servers }));
  const ports = await Promise.all(
    workers.map(async (worker) => {
      const [port] = await once(worker, 'message');
      return port;
    }),
  );
  return { workers, ports };
}

async function stopWorkers(workers) {
  await Promise.all(
    workers.map(async (worker) => {
      const exited = once(worker, 'exit');
      worker.kill();
      await exited;
    }),
  );
}

test('Eight processes of a cluster share one limit exactly', { timeout: 60_000 }, async (t) => {
  const daemon = await Daemon.start('rules: []\n');
  t.after(() => daemon.stop());
  const { workers, ports } = await startWorkers(daemon.address);
  t.after(() => stopWorkers(workers));
  assert.equal(new Set(ports).size, WORKERS);
  // Each has a part in it before all of them compete.
  const answers = await Promise.all(ports.map((port) => call(port)));
  assert.equal(new Set(answers.map(({ body }) => body)).size, WORKERS);
  answers.push(
    ...(await Promise.all(Array.from({ length: 392 }, (_, at) => call(ports[at % WORKERS])))),
  );
  const number = (wanted) => answers.filter(({ status }) => status === wanted).length;
  assert.deepEqual([number(200), number(429)], [50, 350]);
});
