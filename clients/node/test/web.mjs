// Applications for tests, and calls to them.
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';

/** Listens on a free port of 127.0.0.1; ends with the test. */
export async function listen(test, handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(async () => {
    server.closeAllConnections?.();
    server.close();
    await once(server, 'close');
  });
  return server.address().port;
}

export function call(port, path = '/', { method = 'GET', headers = {}, localAddress, agent } = {}) {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const options = { host: '127.0.0.1', port, path, method, headers, localAddress, agent };
    const outgoing = request(options, (incoming) => {
      const chunks = [];
      incoming.on('data', (chunk) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        resolve({
          status: incoming.statusCode,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString(),
          elapsed: performance.now() - begin,
        });
      });
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

export function keepAlive(test) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  test.after(() => agent.destroy());
  return agent;
}
