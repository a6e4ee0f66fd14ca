// Limiters that are told the same about the service share a client, so that a program with many of
// them has one connection and one warning.
import { Client } from './client.js';
import type { ClientOptions } from './client-options.js';
import type { Logger } from './watch.js';

interface Entry {
  readonly client: Client;
  users: number;
}

const entries = new WeakMap<Logger, Map<string, Entry>>();

export interface Lease {
  readonly client: Client;
  /** Ends the client when nobody else has it. */
  readonly release: () => void;
}

export function shareClient(options: ClientOptions): Lease {
  const { logger = console, ...rest } = options;
  const key = JSON.stringify([
    Object.entries(rest).sort(),
    rest.servers === undefined ? process.env['WEIR_SERVERS'] : '',
  ]);
  let byKey = entries.get(logger);
  if (byKey === undefined) {
    byKey = new Map();
    entries.set(logger, byKey);
  }
  const entry = byKey.get(key) ?? { client: new Client(options), users: 0 };
  entry.users += 1;
  byKey.set(key, entry);
  let released = false;
  return {
    client: entry.client,
    release: () => {
      if (released) return;
      released = true;
      entry.users -= 1;
      if (entry.users > 0) return;
      byKey.delete(key);
      entry.client.close();
    },
  };
}
