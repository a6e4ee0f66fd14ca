// The client under the middleware: every verb of the service, over a connection that all questions
// share. What is asked for a decision is never an error: while no service answers, the failure mode
// decides.
import { createHash } from 'node:crypto';

import { canonicalIp, ipKey } from './address.js';
import { clientSettings, type ClientOptions } from './client-options.js';
import type { Decision } from './decision.js';
import { tellHttp, type HttpForm } from './denial.js';
import { WeirError } from './errors.js';
import type { Failure, FailureMode } from './failure.js';
import { Fleet } from './fleet.js';
import { Question } from './question.js';
import { bulk, bytesOf, encodeCommand } from './resp.js';
import { Watch } from './watch.js';

/** Longer keys are hashed, so that one client cannot make a command that the service refuses. */
const MAX_KEY = 1024;
/** Longer texts that rules match are cut. */
const MAX_TEXT = 4096;
const MAX_COST = 1e15;

/** What is known of a request: `ip`, `user`, `api_key`, `org`, `tier`, `method`, `path`, `host`,
 * `header.NAME`, `cookie.NAME`, `query.NAME`, `descriptor.NAME`. What is empty counts as absent. */
export type Attributes = Readonly<Record<string, string | undefined>>;

export interface CheckOptions {
  /** One rule instead of all that match. */
  rule?: string | undefined;
  cost?: number | undefined;
  /** Asks for what an HTTP server should tell its client. */
  http?: HttpForm | undefined;
}

export interface LimitOptions {
  algorithm?: string | undefined;
  cost?: number | undefined;
  http?: HttpForm | undefined;
}

/** A decision that is asked for: as bytes, and what decides about it if nobody answers. */
export interface Asking {
  readonly command: string;
  /** Under which the failure mode counts it. */
  readonly key: string;
  readonly limit: string | undefined;
  readonly cost: number;
  readonly http: HttpForm | undefined;
  /** Whom a limit in code counts, without its scope. */
  readonly who: string | null;
  /** False if it only looks. */
  readonly takes: boolean;
}

export class Client {
  private readonly fleet: Fleet;
  private readonly watch: Watch;
  private readonly failure: Failure;
  private readonly deadlineMs: number;

  constructor(options: ClientOptions = {}) {
    const settings = clientSettings(options);
    this.failure = settings.failure;
    this.deadlineMs = settings.deadlineMs;
    this.watch = new Watch(settings.logger, MEANWHILE[settings.failure.mode]);
    this.fleet = new Fleet(settings.addresses, settings, {
      answered: (server) => {
        this.watch.answered(server, this.fleet.servers);
      },
    });
  }

  /** The rules of the policy decide, all or nothing. */
  check(attributes: Attributes, options: CheckOptions = {}): Promise<Decision> {
    return this.askAbout('WEIR.CHECK', attributes, options, httpWords(options.http));
  }

  /** What check would say; takes nothing. */
  peek(attributes: Attributes, options: Omit<CheckOptions, 'http'> = {}): Promise<Decision> {
    return this.askAbout('WEIR.PEEK', attributes, options, []);
  }

  /** Takes the cost until it is committed, cancelled, or the time is over. */
  reserve(
    attributes: Attributes,
    options: Omit<CheckOptions, 'http'> & { ttlMs?: number | undefined } = {},
  ): Promise<Decision> {
    const words = options.ttlMs === undefined ? [] : ['@ttl_ms', String(Math.ceil(options.ttlMs))];
    return this.askAbout('WEIR.RESERVE', attributes, options, words);
  }

  /** The limit comes with the call. */
  limit(key: string, limit: string, options: LimitOptions = {}): Promise<Decision> {
    return this.ask(limitAsking('', bytesOf(key), limit, options));
  }

  commit(reservation: string, options: { cost?: number | undefined } = {}): Promise<Decision> {
    return this.tell(['WEIR.COMMIT', bytesOf(reservation), ...costWords(options.cost)]);
  }

  cancel(reservation: string): Promise<Decision> {
    return this.tell(['WEIR.CANCEL', bytesOf(reservation)]);
  }

  /** Gives back a place under a concurrency limit. */
  release(reservation: string): Promise<Decision> {
    return this.tell(['WEIR.RELEASE', bytesOf(reservation)]);
  }

  /** Gives a cost back, takes one more, or forgets the key. All need the right to manage. */
  refund(
    rule: string,
    attributes: Attributes,
    options: { cost?: number | undefined } = {},
  ): Promise<Decision> {
    return this.manage('WEIR.REFUND', rule, attributes, options.cost);
  }

  penalize(
    rule: string,
    attributes: Attributes,
    options: { cost?: number | undefined } = {},
  ): Promise<Decision> {
    return this.manage('WEIR.PENALIZE', rule, attributes, options.cost);
  }

  reset(rule: string, attributes: Attributes): Promise<Decision> {
    return this.manage('WEIR.RESET', rule, attributes, undefined);
  }

  /** What is under way is answered by the failure mode. */
  close(): void {
    this.fleet.close();
  }

  /** A decision, whoever makes it. A promise, so that who waits goes on in its own asynchronous
   * context, not in that of the connection. */
  ask(asking: Asking): Promise<Decision> {
    return new Promise((resolve) => {
      const now = performance.now();
      const question = new Question(asking.command, true, now + this.deadlineMs, (outcome) => {
        if (outcome instanceof WeirError) {
          resolve(this.decideAlone(asking, outcome));
          return;
        }
        if (this.failure.wantsCharges && asking.takes && outcome.allowed) {
          this.failure.charge(asking.key, asking.limit, outcome.cost);
        }
        resolve(outcome);
      });
      question.budget = this.deadlineMs;
      this.fleet.ask(question, now);
    });
  }

  /** Whether it can decide about policies while nobody answers. */
  get lacksStaticLimit(): boolean {
    return this.failure.mode === 'static' && !this.failure.hasPolicyLimit;
  }

  get failureMode(): FailureMode {
    return this.failure.mode;
  }

  /** A warning, the first time that it is given. */
  warnOnce(message: string): void {
    this.watch.once(message);
  }

  private decideAlone(asking: Asking, error: WeirError): Decision {
    if (error.message !== 'the client is closed') this.watch.decidedAlone(error);
    const decision = this.failure.decide(asking);
    return asking.http === undefined ? decision : tellHttp(decision, asking.http);
  }

  private askAbout(
    verb: string,
    attributes: Attributes,
    { rule, cost, http }: CheckOptions,
    words: readonly string[],
  ): Promise<Decision> {
    const pairs = attributeWords(attributes);
    return this.ask({
      command: encodeCommand([
        verb,
        rule === undefined ? '*' : bytesOf(rule),
        ...pairs,
        ...costWords(cost),
        ...words,
      ]),
      key: policyKey(attributes),
      limit: undefined,
      cost: wholeCost(cost),
      http,
      who: null,
      takes: verb !== 'WEIR.PEEK',
    });
  }

  private manage(
    verb: string,
    rule: string,
    attributes: Attributes,
    cost: number | undefined,
  ): Promise<Decision> {
    return this.tell([verb, bytesOf(rule), ...attributeWords(attributes), ...costWords(cost)]);
  }

  /** What is sent at most once, and fails if nobody answers. */
  private tell(args: readonly string[]): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const now = performance.now();
      const question = new Question(
        encodeCommand(args),
        false,
        now + this.deadlineMs,
        (outcome) => {
          if (outcome instanceof WeirError) reject(outcome);
          else resolve(outcome);
        },
      );
      question.budget = this.deadlineMs;
      this.fleet.ask(question, now);
    });
  }
}

const MEANWHILE = {
  open: "requests pass (onFailure: 'open')",
  closed: "requests are refused (onFailure: 'closed')",
  static: "this process decides for itself (onFailure: 'static')",
};

/** A limit in code: whom it counts and what stands before that, both already bytes. */
export function limitAsking(
  scope: string,
  who: string,
  limit: string,
  { algorithm, cost, http }: LimitOptions,
): Asking {
  const key = scope + who;
  const short = key.length > MAX_KEY ? hashOf(key) : key;
  let count = 3;
  let words = bulk(short) + bulk(bytesOf(limit));
  if (algorithm !== undefined) {
    count += 1;
    words += bulk(bytesOf(algorithm));
  }
  const whole = wholeCost(cost);
  if (whole !== 1) {
    count += 2;
    words += `$5\r\n@cost\r\n${bulk(String(whole))}`;
  }
  if (http !== undefined) {
    count += 2;
    words += HTTP_WORDS[http];
  }
  return {
    command: `*${count}\r\n$10\r\nWEIR.LIMIT\r\n${words}`,
    key: short,
    limit,
    cost: whole,
    http,
    who,
    takes: true,
  };
}

/** What the words for HTTP look like on the wire. */
export const HTTP_WORDS = {
  json: '$5\r\n@http\r\n$4\r\njson\r\n',
  problem: '$5\r\n@http\r\n$7\r\nproblem\r\n',
};

/** Costs are whole, and what is none must not be free. */
export function wholeCost(cost: unknown): number {
  // As a number null, '' and [] would be 0.
  const given = typeof cost === 'string' && cost.trim() !== '' ? Number(cost) : cost;
  return typeof given === 'number' && given >= 0 ? Math.min(Math.ceil(given), MAX_COST) : 1;
}

/** The value of an attribute that somebody is known by, as bytes. */
export function identityBytes(text: string): string {
  const bytes = bytesOf(text);
  return bytes.length > MAX_KEY ? hashOf(bytes) : bytes;
}

/** The value of an attribute that rules match, cut to what one may be long. */
export function textBytes(bytes: string): string {
  return bytes.length > MAX_TEXT ? bytes.slice(0, MAX_TEXT) : bytes;
}

function hashOf(bytes: string): string {
  return `sha256:${createHash('sha256').update(bytes, 'latin1').digest('hex')}`;
}

const IDENTITIES: ReadonlySet<string> = new Set(['user', 'api_key', 'org', 'tier']);

function attributeWords(attributes: Attributes): string[] {
  const words: string[] = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === '') continue;
    // What is no address would fail the whole question.
    const known = name === 'ip' ? canonicalIp(value) : value;
    if (known === undefined) continue;
    words.push(
      bytesOf(name),
      IDENTITIES.has(name) ? identityBytes(known) : textBytes(bytesOf(known)),
    );
  }
  return words;
}

/** Whom the failure mode counts for a policy. */
function policyKey(attributes: Attributes): string {
  for (const name of ['api_key', 'user', 'ip']) {
    const value = attributes[name];
    if (value === undefined || value === '') continue;
    return `${name}=${name === 'ip' ? ipKey(value) : identityBytes(value)}`;
  }
  return '';
}

function costWords(cost: number | undefined): string[] {
  return cost === undefined ? [] : ['@cost', String(wholeCost(cost))];
}

function httpWords(http: HttpForm | undefined): string[] {
  return http === undefined ? [] : ['@http', http];
}
