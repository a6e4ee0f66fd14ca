// The real service, for tests: `weir serve` on free ports of 127.0.0.1, stopped by its process id
// whatever becomes of the test. WEIR_PROGRAM says where the program is.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.WEIR_PROGRAM ?? join(here, '../../../build/release/weir');
if (!existsSync(program)) {
  throw new Error(`there is no ${program}; set WEIR_PROGRAM to the weir that shall be asked`);
}

export class Daemon {
  static async start(policy, { address } = {}) {
    const daemon = new Daemon();
    daemon.folder = mkdtempSync(join(tmpdir(), 'weir-node-'));
    const resp = address ?? `unix:${daemon.folder}/resp.sock`;
    const file = join(daemon.folder, 'weir.yaml');
    writeFileSync(file, `listen: { http: 127.0.0.1:0, resp: "${resp}" }\n${policy}`);
    daemon.process = spawn(program, ['serve', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'] });
    daemon.exited = once(daemon.process, 'exit');
    const log = [];
    await new Promise((resolve, reject) => {
      let lines = 0;
      const take = (line) => {
        log.push(line);
        if (line.includes('listening protocol=resp')) daemon.address = line.split('address=')[1];
        if (line === 'ready' || line.includes('listening protocol=resp')) lines += 1;
        if (lines === 2) resolve();
      };
      createInterface({ input: daemon.process.stdout }).on('line', take);
      createInterface({ input: daemon.process.stderr }).on('line', take);
      daemon.exited.then(() => reject(new Error(`it did not start:\n${log.join('\n')}`)), reject);
    });
    return daemon;
  }

  signal(name) {
    this.process.kill(name);
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  async stop() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill('SIGCONT');
      this.process.kill('SIGTERM');
      await this.exited;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What was warned of. */
export function collector() {
  const messages = [];
  return { messages, warn: (message) => messages.push(message) };
}

/** Waits for a condition, not for time. */
export async function until(condition, patienceMs = 20_000) {
  const end = performance.now() + patienceMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not in time: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
