// Where services are, in text: `127.0.0.1:6380`, `[::1]:6380`, `tls://weir.example:6380`,
// `unix:/run/weir/resp.sock`.
import { OptionError } from './errors.js';

/** As many as fit into the set of those that a question has been sent to. */
const MAX_SERVERS = 30;
const DEFAULT_SERVERS = '127.0.0.1:6380';
const FORMS = '127.0.0.1:6380, [::1]:6380, tls://weir.example:6380 or unix:/run/weir/resp.sock';

export interface Address {
  /** As it was written, for people. */
  readonly text: string;
  readonly tls: boolean;
  readonly path?: string;
  readonly host?: string;
  readonly port?: number;
}

export function parseServers(servers: readonly string[] | string | undefined): Address[] {
  // A variable that is set to nothing is as good as none.
  const { WEIR_SERVERS: named = '' } = process.env;
  const given = servers ?? (named === '' ? DEFAULT_SERVERS : named);
  const list: readonly unknown[] = typeof given === 'string' ? given.split(',') : given;
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_SERVERS) {
    throw new OptionError('servers', `write 1 to ${MAX_SERVERS} addresses such as ${FORMS}`);
  }
  const addresses = list.map(parseAddress);
  const texts = addresses.map(({ text }) => text);
  const twice = texts.find((text, at) => texts.indexOf(text) !== at);
  if (twice !== undefined)
    throw new OptionError('servers', `"${twice}" is there twice; name it once`);
  return addresses;
}

function parseAddress(given: unknown): Address {
  if (typeof given !== 'string') {
    throw new OptionError('servers', `an address is a text, such as ${FORMS}`);
  }
  const text = given.trim();
  const wrong = new OptionError('servers', `"${text}" is no address; write ${FORMS}`);
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    if (path === '') throw wrong;
    return { text, tls: false, path };
  }
  const tls = text.startsWith('tls://');
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:/[\]\s@?#]+)):(\d{1,5})$/.exec(
    tls ? text.slice('tls://'.length) : text,
  );
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3]);
  if (host === undefined || !(port >= 1 && port <= 65_535)) throw wrong;
  return { text, tls, host, port };
}
