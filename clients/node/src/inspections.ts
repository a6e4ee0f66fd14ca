// Looks at limiters and requests for the classic mistakes.
import type { IncomingMessage } from 'node:http';

import type { Asking, Client } from './client.js';
import type { WeirOptions } from './options.js';
import { believedBy, expressSetting, type ProxySettings } from './request.js';
import { asText } from './told.js';
import { isWithinRequest, usesRawAddress, type Validations } from './validations.js';

/** Which limit a name stands for, for each client; so many names are remembered. */
const namesOf = new WeakMap<Client, Map<string, string>>();
const MAX_NAMES = 1000;

const COUNTED = Symbol('weir.counted');

export function inspectConstruction(
  validations: Validations,
  options: WeirOptions<never>,
  client: Client,
): void {
  const { key = options.keyGenerator, name, limit, windowMs } = options;
  if (isWithinRequest()) {
    validations.warn(
      'ERR_WEIR_CREATED_IN_REQUEST_HANDLER',
      'a limiter was made while a request was handled; make it once, when the program starts',
    );
  }
  if (usesRawAddress(key)) {
    validations.warn(
      'ERR_WEIR_KEY_GEN_IPV6',
      'the key is made of req.ip as it is, and a client with IPv6 has 2^64 of them; write ipKey(req.ip)',
    );
  }
  if (typeof name !== 'string' || typeof limit === 'function' || limit === undefined) return;
  const names = namesOf.get(client) ?? new Map<string, string>();
  namesOf.set(client, names);
  const text = `${limit} ${String(windowMs ?? '')}`;
  const before = names.get(name);
  if (before === undefined) {
    if (names.size < MAX_NAMES) names.set(name, text);
  } else if (before !== text) {
    validations.warn(
      'ERR_WEIR_SHARED_PREFIX',
      `two limiters are named "${name}" and have different limits, but count together; give each its own name`,
    );
  }
}

export function inspectAddress(
  validations: Validations,
  req: IncomingMessage,
  proxy: ProxySettings,
  ip: string | undefined,
  told: unknown,
): void {
  const trust = expressSetting(req, 'trust proxy');
  if (trust === true && proxy.trusted === undefined && proxy.hops === undefined) {
    validations.warn(
      'ERR_WEIR_PERMISSIVE_TRUST_PROXY',
      "'trust proxy' is true, so that everybody can write the address they like into X-Forwarded-For; name your proxies or their number",
    );
  }
  if (told === undefined) inspectForwarding(validations, req, proxy);
  if (ip === undefined) inspectMissing(validations, req, told);
}

function inspectForwarding(
  validations: Validations,
  req: IncomingMessage,
  proxy: ProxySettings,
): void {
  const isBelieved = believedBy(req, proxy).kind !== 'nobody';
  if (
    req.headers['x-forwarded-for'] !== undefined &&
    !isBelieved &&
    proxy.header === 'x-forwarded-for'
  ) {
    validations.warn(
      'ERR_WEIR_UNEXPECTED_X_FORWARDED_FOR',
      "there is an X-Forwarded-For, but no proxy is believed; if there is one, all clients count as one: set 'trust proxy', or trustedProxies",
    );
  }
  if (
    req.headers.forwarded !== undefined &&
    proxy.header !== 'forwarded' &&
    !(isBelieved && req.headers['x-forwarded-for'] !== undefined)
  ) {
    validations.warn(
      'ERR_WEIR_FORWARDED_HEADER_IGNORED',
      "there is a Forwarded header, which is not read; if your proxy writes it, say proxyHeader: 'forwarded'",
    );
  }
}

function inspectMissing(validations: Validations, req: IncomingMessage, told: unknown): void {
  const own: unknown = Object.prototype.hasOwnProperty.call(req, 'ip')
    ? (req as { ip?: unknown }).ip
    : undefined;
  const given = told ?? own;
  if (given !== undefined) {
    validations.warn(
      'ERR_WEIR_INVALID_IP',
      `${asText(given).slice(0, 64)} is no address; all who have none count as one`,
    );
  } else {
    validations.warn(
      'ERR_WEIR_UNDEFINED_IP',
      'a request has no address (a unix socket, or a connection that is gone); all of those count as one',
    );
  }
}

/** The same key twice in one request is counted twice. */
export function inspectCount(
  validations: Validations,
  req: IncomingMessage,
  asking: Asking,
  rule: unknown,
): void {
  const marked = req as IncomingMessage & { [COUNTED]?: string[] };
  const counted = (marked[COUNTED] ??= []);
  const what =
    asking.limit === undefined ? `the policy (${asText(rule ?? '*')})` : `"${asking.key}"`;
  if (counted.includes(what)) {
    validations.warn(
      'ERR_WEIR_DOUBLE_COUNT',
      `${what} was counted twice for one request; use one limiter, or give them different names`,
    );
  }
  counted.push(what);
}
