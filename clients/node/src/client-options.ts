// What a client is told when it is made. Everything that cannot be is an error then, with the name of
// the option and what to write.
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';

import { OptionError } from './errors.js';
import { Failure, type FailureMode } from './failure.js';
import { parseServers, type Address } from './servers.js';
import type { Logger } from './watch.js';

const DEFAULT_DEADLINE_MS = 200;
const MAX_DEADLINE_MS = 60_000;
const MAX_SHARE = 65_536;
const MODES: readonly string[] = ['open', 'closed', 'static'];

/** Files of PEM, or what is in them. */
export interface TlsOptions {
  /** Who vouches for the service; without it those that Node.js knows. */
  ca?: string | Buffer;
  /** What this client shows, with its key. */
  certificate?: string | Buffer;
  key?: string | Buffer;
}

export interface ClientOptions {
  /** `127.0.0.1:6380`, `[::1]:6380`, `tls://weir.example:6380`, `unix:/run/weir/resp.sock`: the first
   * that is well is asked. Otherwise those of the variable WEIR_SERVERS, comma-separated. */
  servers?: readonly string[] | string | undefined;
  token?: string | undefined;
  tls?: TlsOptions | undefined;
  /** How long a request may wait for its answer, in milliseconds. 200 */
  deadline?: number | undefined;
  /** Who decides when none answers. `open` */
  onFailure?: FailureMode | undefined;
  /** With `static`, the limit that stands in for the policy. */
  staticLimit?: string | undefined;
  /** With `static`, how many processes share a limit. 1 */
  share?: number | undefined;
  /** Takes warnings. `console` */
  logger?: Logger | undefined;
}

/** The same, looked at. */
export interface ClientSettings {
  readonly addresses: readonly Address[];
  readonly token: string | undefined;
  readonly secureContext: SecureContext | undefined;
  readonly deadlineMs: number;
  readonly failure: Failure;
  readonly logger: Logger;
}

export const CLIENT_OPTIONS: readonly string[] = [
  'servers',
  'token',
  'tls',
  'deadline',
  'onFailure',
  'staticLimit',
  'share',
  'logger',
];

const TLS_OPTIONS: readonly string[] = ['ca', 'certificate', 'key'];

export function clientSettings(options: ClientOptions): ClientSettings {
  const unknown = Object.keys(options).find((name) => !CLIENT_OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new OptionError(
      unknown,
      `there is no such option; there are ${CLIENT_OPTIONS.join(', ')}`,
      'ERR_WEIR_UNKNOWN_OPTION',
    );
  }
  const {
    token,
    deadline = DEFAULT_DEADLINE_MS,
    onFailure = 'open',
    staticLimit,
    share = 1,
  } = options;
  const logger = options.logger ?? console;
  if (token !== undefined && (typeof token !== 'string' || token === '')) {
    throw new OptionError(
      'token',
      'write the text that the service has as its token, or leave it out',
    );
  }
  if (!Number.isFinite(deadline) || deadline < 1 || deadline > MAX_DEADLINE_MS) {
    throw new OptionError(
      'deadline',
      `${String(deadline)} is not allowed; write 1 to ${MAX_DEADLINE_MS} milliseconds`,
    );
  }
  if (!MODES.includes(onFailure)) {
    throw new OptionError(
      'onFailure',
      `"${onFailure as string}" is not allowed; write 'open', 'closed' or 'static'`,
    );
  }
  if (!Number.isSafeInteger(share) || share < 1 || share > MAX_SHARE) {
    throw new OptionError(
      'share',
      `${String(share)} is not allowed; write 1 to ${MAX_SHARE}, the number of processes`,
    );
  }
  if (staticLimit !== undefined && typeof staticLimit !== 'string') {
    throw new OptionError('staticLimit', "write a limit such as '100/min'");
  }
  if (typeof logger.warn !== 'function') {
    throw new OptionError('logger', 'it has no method warn(message); console would do');
  }
  const addresses = parseServers(options.servers);
  return {
    addresses,
    token,
    secureContext:
      addresses.some(({ tls }) => tls) || options.tls
        ? secureContext(options.tls ?? {})
        : undefined,
    deadlineMs: deadline,
    failure: new Failure(onFailure, staticLimit, share),
    logger,
  };
}

function secureContext(options: TlsOptions): SecureContext {
  if (
    typeof options !== 'object' ||
    Object.keys(options).some((name) => !TLS_OPTIONS.includes(name))
  ) {
    throw new OptionError('tls', 'write { ca, certificate, key }, as far as they are needed');
  }
  const { ca, certificate, key } = options;
  try {
    return createSecureContext({
      ...(ca !== undefined && { ca: pemOf(ca) }),
      ...(certificate !== undefined && { cert: pemOf(certificate) }),
      ...(key !== undefined && { key: pemOf(key) }),
    });
  } catch (error) {
    throw new OptionError(
      'tls',
      `${(error as Error).message}; ca, certificate and key are files of PEM`,
    );
  }
}

function pemOf(given: string | Buffer): string | Buffer {
  if (typeof given !== 'string' || given.includes('-----BEGIN')) return given;
  return readFileSync(given);
}
