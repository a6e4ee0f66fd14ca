// A fetch for callers that behave: it reads what servers say about their limits, and sends no more
// than it may.
import { OptionError } from './errors.js';
import { readPace } from './pace.js';
import { Pacer } from './pacer.js';

const DEFAULT_RETRIES = 3;
const DEFAULT_MAX_WAIT_MS = 60_000;
/** Servers that are remembered; those that are idle are forgotten first. */
const MAX_ORIGINS = 1000;

type Fetch = typeof globalThis.fetch;

export interface PacedFetchOptions {
  /** What sends requests. `globalThis.fetch` */
  fetch?: Fetch | undefined;
  /** How often a request that was denied is sent again. 3 */
  maxRetries?: number | undefined;
  /** Longer waits, in milliseconds, are not waited for: the 429 is the answer. 60000 */
  maxWait?: number | undefined;
}

/** A fetch that waits as long as servers ask for, and sends again what they had no room for. */
export function pacedFetch(options: PacedFetchOptions = {}): Fetch {
  const { maxRetries = DEFAULT_RETRIES, maxWait = DEFAULT_MAX_WAIT_MS } = options;
  check(options, maxRetries, maxWait);
  const pacers = new Map<string, Pacer>();
  const paced: Fetch = async (input, init) => {
    const send = options.fetch ?? globalThis.fetch;
    const pacer = pacerFor(pacers, originOf(input), maxWait);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const retries = isReplayable(init?.body) ? maxRetries : 0;
    for (let attempt = 0; ; attempt += 1) {
      const number = await pacer.turn(signal ?? undefined, attempt > 0);
      const isLast = attempt >= retries;
      let response: Response;
      try {
        // A Request can be read once; what is sent is a copy as long as it may be needed again.
        response = await send(input instanceof Request && !isLast ? input.clone() : input, init);
      } catch (error) {
        pacer.done(number, undefined, false);
        throw error;
      }
      const pace = readPace(response.status, response.headers, Date.now());
      const isDenied = response.status === 429 || (response.status === 503 && pace.waitMs !== null);
      const waitMs = pacer.done(number, pace, isDenied);
      if (!isDenied || isLast || waitMs > maxWait) return response;
      // Else its connection would stay taken.
      await response.body?.cancel().catch(() => undefined);
    }
  };
  return paced;
}

function check(options: PacedFetchOptions, maxRetries: number, maxWait: number): void {
  const known = ['fetch', 'maxRetries', 'maxWait'];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new OptionError(
      unknown,
      `there is no such option; there are ${known.join(', ')}`,
      'ERR_WEIR_UNKNOWN_OPTION',
    );
  }
  if (options.fetch !== undefined && typeof options.fetch !== 'function') {
    throw new OptionError('fetch', 'write a function like globalThis.fetch');
  }
  if (!Number.isInteger(maxRetries) || maxRetries < 0) {
    throw new OptionError(
      'maxRetries',
      `${maxRetries} is not allowed; write a whole number from 0 on`,
    );
  }
  if (!(maxWait >= 0))
    throw new OptionError('maxWait', `${maxWait} is not allowed; write milliseconds from 0 on`);
}

/** Scheme, host and port. What has none is for fetch to refuse. */
function originOf(input: string | URL | Request): string {
  try {
    return new URL(input instanceof Request ? input.url : input).origin;
  } catch {
    return '';
  }
}

function pacerFor(pacers: Map<string, Pacer>, origin: string, maxWait: number): Pacer {
  let pacer = pacers.get(origin);
  if (pacer !== undefined) return pacer;
  if (pacers.size >= MAX_ORIGINS) {
    for (const [name, { isIdle }] of pacers) {
      if (isIdle) pacers.delete(name);
    }
  }
  pacer = new Pacer(maxWait);
  pacers.set(origin, pacer);
  return pacer;
}

/** Streams can be sent once. */
function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  return (
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof URLSearchParams ||
    body instanceof Blob ||
    body instanceof FormData
  );
}
