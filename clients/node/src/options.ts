// What a limiter is told when it is made, and the look at it: what cannot be is an error then.
import type { IncomingMessage, ServerResponse } from 'node:http';

import { addressIn, Networks } from './address.js';
import { Client } from './client.js';
import { CLIENT_OPTIONS, type ClientOptions } from './client-options.js';
import type { Decision } from './decision.js';
import { OptionError } from './errors.js';
import { countable } from './failure.js';
import { STANDARD_HEADERS, type StandardHeaders } from './headers.js';
import { limitTextOf, parseLimit } from './limit-text.js';
import type { ProxySettings } from './request.js';
import type { Validate } from './validations.js';

/** What earlier middleware has put there is for it to type: annotate the parameter, as in
 * `(req: express.Request) => …`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyRequest = IncomingMessage & Record<string, any>;

/** A value, or a function of the request that may be asynchronous. */
export type Option<T, Request = AnyRequest> =
  | T
  | ((req: Request, res: ServerResponse) => T | Promise<T>);

export type Next = (error?: unknown) => void;

/** A denial as a `handler` gets it. */
export interface Denial extends Decision {
  statusCode: number;
  /** The body that would have been sent. */
  message: string;
}

/** A method, so that its response may be annotated as that of Express, too. */
interface Handler<Request> {
  answer(req: Request, res: ServerResponse, next: Next, denial: Denial): unknown;
}

export interface WeirOptions<Request = AnyRequest> extends ClientOptions {
  /** A client of your own, instead of the options for one. */
  client?: Client | undefined;

  /** A limit in code, `100/min burst 50`, instead of the policy. A number counts for `windowMs`. */
  limit?: Option<string | number, Request> | undefined;
  windowMs?: number | undefined;
  /** Whom a limit in code counts; the address if it is absent or gives nothing. */
  key?: Option<string | number | null | undefined, Request> | undefined;
  /** The same. */
  keyGenerator?: WeirOptions<Request>['key'];
  /** What a limit in code is counted under, instead of the route: limiters of one name share it. */
  name?: Option<string, Request> | undefined;
  algorithm?: Option<string, Request> | undefined;
  /** One rule of the policy instead of all that match. */
  rule?: Option<string | undefined, Request> | undefined;

  cost?: Option<number | undefined, Request> | undefined;
  user?: Option<string | number | null | undefined, Request> | undefined;
  apiKey?: Option<string | number | null | undefined, Request> | undefined;
  org?: Option<string | number | null | undefined, Request> | undefined;
  tier?: Option<string | number | null | undefined, Request> | undefined;
  /** The client's address, where something else knows better. */
  ip?: Option<string | undefined, Request> | undefined;
  /** Names of headers that are passed on, for policies that read them. */
  headers?: readonly string[] | undefined;

  /** Those for whom it is true are not counted. */
  skip?: Option<boolean, Request> | undefined;
  /** Answers those who are denied. */
  handler?: Handler<Request>['answer'] | undefined;
  /** The body of a denial instead of the service's: a text, what becomes JSON, or a function. */
  message?: unknown;
  /** Instead of 429. */
  statusCode?: number | undefined;
  standardHeaders?: Option<StandardHeaders, Request> | undefined;
  legacyHeaders?: Option<boolean, Request> | undefined;
  /** Under which a handler finds the decision. `rateLimit` */
  requestPropertyName?: string | undefined;

  /** Bits of an IPv6 address that make one client, for limits in code. 64 */
  ipv6Subnet?: number | undefined;
  /** Proxies that are believed, where there is no Express with its `trust proxy`. */
  trustedProxies?: readonly string[] | undefined;
  hops?: number | undefined;
  proxyHeader?: 'x-forwarded-for' | 'forwarded' | undefined;

  validate?: Validate | undefined;
}

// prettier-ignore
const OWN_OPTIONS: readonly string[] = [
  'client', 'limit', 'windowMs', 'key', 'keyGenerator', 'name', 'algorithm', 'rule', 'cost', 'user',
  'apiKey', 'org', 'tier', 'ip', 'headers', 'skip', 'handler', 'message', 'statusCode',
  'standardHeaders', 'legacyHeaders', 'requestPropertyName', 'ipv6Subnet', 'trustedProxies', 'hops',
  'proxyHeader', 'validate',
];

/** Options of express-rate-limit that have no place here, and what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  max: 'write limit',
  store: 'counts are kept by the service; say where it is by servers',
  passOnStoreError: "write onFailure: 'open', 'closed' or 'static'",
  identifier: 'the policy names its rules',
  skipSuccessfulRequests:
    'reserve and cancel through the client, see "Counting only what failed" in the README',
  skipFailedRequests:
    'reserve and cancel through the client, see "Counting only what failed" in the README',
  requestWasSuccessful:
    'reserve and cancel through the client, see "Counting only what failed" in the README',
};

// prettier-ignore
const ALGORITHMS: readonly unknown[] = [
  'token_bucket', 'leaky_bucket', 'fixed_window', 'sliding_window', 'sliding_log', 'concurrency',
];
const SOMEBODY = ['string', 'number', 'bigint', 'function'];
const NAME = ['string', 'function'];
/** Of which kind a value may be. */
const KINDS: readonly [keyof WeirOptions, kinds: readonly string[], what: string][] = [
  ['key', SOMEBODY, 'a text'],
  ['keyGenerator', SOMEBODY, 'a text'],
  ['user', SOMEBODY, 'a text'],
  ['apiKey', SOMEBODY, 'a text'],
  ['org', SOMEBODY, 'a text'],
  ['tier', SOMEBODY, 'a text'],
  ['name', NAME, 'a text'],
  ['rule', NAME, 'the name of a rule'],
  ['ip', NAME, 'an address'],
  ['skip', ['boolean', 'function'], 'true or false'],
];
const DEFAULT_WINDOW_MS = 60_000;
const MAX_HEADERS = 8;
const MAX_HOPS = 100;

/** What holds for all requests. */
export interface LimiterSettings {
  readonly windowMs: number;
  readonly inCode: boolean;
  /** Of header names as Node.js has them, and as attributes on the wire. */
  readonly headers: readonly { readonly name: string; readonly attribute: string }[];
  readonly proxy: ProxySettings;
  readonly ipv6Prefix: number;
  readonly property: string;
  readonly statusCode: number | undefined;
}

export function limiterSettings(options: WeirOptions<never>): LimiterSettings {
  checkNames(options);
  const {
    windowMs = DEFAULT_WINDOW_MS,
    ipv6Subnet = 64,
    requestPropertyName = 'rateLimit',
  } = options;
  wholeNumber('windowMs', windowMs, 1, 366 * 86_400_000);
  wholeNumber('ipv6Subnet', ipv6Subnet, 32, 128);
  if (options.statusCode !== undefined) wholeNumber('statusCode', options.statusCode, 400, 599);
  if (typeof requestPropertyName !== 'string' || requestPropertyName === '') {
    throw new OptionError('requestPropertyName', "write a name such as 'rateLimit'");
  }
  checkKinds(options);
  checkCombinations(options);
  return {
    windowMs,
    inCode: options.limit !== undefined,
    headers: headerNames(options.headers ?? []),
    proxy: proxySettings(options),
    ipv6Prefix: ipv6Subnet,
    property: requestPropertyName,
    statusCode: options.statusCode,
  };
}

/** A limit in code must be one, and one that the failure mode can count. */
export function checkLimit(
  options: WeirOptions<never>,
  windowMs: number,
  failureMode: string,
): void {
  const { limit } = options;
  if (limit === undefined || typeof limit === 'function') return;
  if (typeof limit === 'number') wholeNumber('limit', limit, 0, 1e15);
  else if (typeof limit !== 'string')
    throw new OptionError('limit', "write a text such as '100/min'");
  const text = typeof limit === 'number' ? limitTextOf(limit, windowMs) : limit;
  if (failureMode === 'static') countable(text, 'limit');
  else parseLimit(text);
}

/** Those of a client, apart. */
export function clientOptionsOf(options: WeirOptions<never>): ClientOptions {
  const entries = Object.entries(options).filter(
    ([name, value]) => CLIENT_OPTIONS.includes(name) && value !== undefined,
  );
  return Object.fromEntries(entries) as ClientOptions;
}

function checkNames(options: WeirOptions<never>): void {
  for (const name of Object.keys(options)) {
    if (OWN_OPTIONS.includes(name) || CLIENT_OPTIONS.includes(name)) continue;
    const instead = INSTEAD[name] ?? `there are ${[...OWN_OPTIONS, ...CLIENT_OPTIONS].join(', ')}`;
    throw new OptionError(name, `there is no such option; ${instead}`, 'ERR_WEIR_UNKNOWN_OPTION');
  }
}

function checkKinds(options: WeirOptions<never>): void {
  const { algorithm, standardHeaders, legacyHeaders, cost, handler, client } = options;
  if (
    typeof algorithm !== 'function' &&
    algorithm !== undefined &&
    !ALGORITHMS.includes(algorithm)
  ) {
    throw new OptionError(
      'algorithm',
      `"${algorithm}" is none; there are ${ALGORITHMS.join(', ')}`,
    );
  }
  if (
    typeof standardHeaders !== 'function' &&
    standardHeaders !== undefined &&
    !STANDARD_HEADERS.includes(standardHeaders)
  ) {
    throw new OptionError(
      'standardHeaders',
      "write true, false, 'draft-8', 'draft-7' or 'draft-6'",
    );
  }
  if (!['function', 'boolean', 'undefined'].includes(typeof legacyHeaders)) {
    throw new OptionError('legacyHeaders', 'write true or false');
  }
  if (typeof cost !== 'function' && cost !== undefined) wholeNumber('cost', cost, 0, 1e15);
  if (handler !== undefined && typeof handler !== 'function') {
    throw new OptionError('handler', 'write a function (req, res, next, denial)');
  }
  for (const [name, kinds, what] of KINDS) {
    const value: unknown = options[name];
    if (value === undefined || value === null || kinds.includes(typeof value)) continue;
    throw new OptionError(name, `write ${what}, or a function of the request`);
  }
  if (typeof options.ip === 'string' && addressIn(options.ip) === undefined) {
    throw new OptionError('ip', `"${options.ip}" is no address; write a function of the request`);
  }
  if (!['boolean', 'object', 'undefined'].includes(typeof options.validate)) {
    throw new OptionError('validate', 'write true, false or { ERR_WEIR_DOUBLE_COUNT: false }');
  }
  if (client !== undefined && !(client instanceof Client)) {
    throw new OptionError('client', 'write new Client({ servers: … })');
  }
}

function checkCombinations(options: WeirOptions<never>): void {
  const { limit, key, keyGenerator, trustedProxies, hops, client } = options;
  if (key !== undefined && keyGenerator !== undefined) {
    throw new OptionError('keyGenerator', 'it is the same as key; write one of them');
  }
  if (limit === undefined) {
    for (const name of ['key', 'keyGenerator', 'name', 'algorithm', 'windowMs'] as const) {
      if (options[name] === undefined) continue;
      throw new OptionError(
        name,
        'it belongs to a limit in code; write limit too, or leave the key to the policy and say user, apiKey or headers',
      );
    }
  } else if (options.rule !== undefined) {
    throw new OptionError('rule', 'it belongs to a policy; write either rule or limit');
  }
  if (trustedProxies !== undefined && hops !== undefined) {
    throw new OptionError('hops', 'write either hops or trustedProxies');
  }
  const doubled =
    client &&
    CLIENT_OPTIONS.find(
      (name) => name !== 'logger' && options[name as keyof ClientOptions] !== undefined,
    );
  if (doubled !== undefined) {
    throw new OptionError(doubled, 'the client that was given has its own; say it there');
  }
}

function headerNames(names: readonly string[]): { name: string; attribute: string }[] {
  if (!Array.isArray(names) || names.length > MAX_HEADERS) {
    throw new OptionError('headers', `write a list of up to ${MAX_HEADERS} names`);
  }
  return names.map((name: unknown) => {
    if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)) {
      throw new OptionError('headers', `"${String(name)}" is no name of a header`);
    }
    return { name: name.toLowerCase(), attribute: `header.${name.toLowerCase()}` };
  });
}

function proxySettings({
  trustedProxies,
  hops,
  proxyHeader = 'x-forwarded-for',
}: WeirOptions<never>): ProxySettings {
  if (
    trustedProxies !== undefined &&
    (!Array.isArray(trustedProxies) || trustedProxies.some((text) => typeof text !== 'string'))
  ) {
    throw new OptionError('trustedProxies', "write a list such as ['10.0.0.0/8']");
  }
  if (hops !== undefined) wholeNumber('hops', hops, 1, MAX_HOPS);
  if (!['x-forwarded-for', 'forwarded'].includes(proxyHeader)) {
    throw new OptionError('proxyHeader', "write 'x-forwarded-for' or 'forwarded'");
  }
  return {
    trusted:
      trustedProxies === undefined ? undefined : new Networks(trustedProxies, 'trustedProxies'),
    hops,
    header: proxyHeader,
  };
}

function wholeNumber(option: string, value: unknown, least: number, most: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most)
    return;
  throw new OptionError(
    option,
    `${String(value)} is not allowed; write a whole number, ${least} to ${most}`,
  );
}
