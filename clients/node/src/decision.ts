// The answer to a question, whoever gave it.
import { type Reply, textOf } from './resp.js';

export type Reason =
  | 'ok'
  | 'limited'
  | 'never_fits'
  | 'banned'
  | 'allow_list'
  | 'deny_list'
  | 'no_rule'
  | 'overload'
  | 'store_failure';

/** Who decided. The service: `memory`, `store`, `fallback`, `open`, `closed`. While none answers this
 * client: `fallback`, `open`, `closed`. */
export type Source = 'memory' | 'store' | 'lease' | 'fallback' | 'open' | 'closed';

/** A name or value that a newer service may have. */
type OrNewer<Known extends string> = Known | (string & Record<never, never>);

export interface Decision {
  allowed: boolean;
  /** The rule that this describes: the one nearest to exhaustion, or the one that denied. */
  rule: string | null;
  /** Its capacity, and what is left of it. */
  limit: number;
  remaining: number;
  cost: number;
  /** When this very request would pass; null if it never will. */
  retryAfterMs: number | null;
  /** When the key is as good as new. */
  resetAfterMs: number;
  /** The same in seconds since 1970. */
  resetAt: number;
  /** How long an admitted request should wait before it goes ahead: queues only. */
  delayMs: number;
  reason: OrNewer<Reason>;
  source: OrNewer<Source>;
  /** To be given to commit, cancel or release; only where there is one. */
  reservation: string | null;
  /** What an HTTP server should tell its client, if that was asked for. */
  status: number | null;
  headers: [name: string, value: string][] | null;
  body: string | null;
}

export function emptyDecision(): Decision {
  return {
    allowed: true,
    rule: null,
    limit: 0,
    remaining: 0,
    cost: 1,
    retryAfterMs: 0,
    resetAfterMs: 0,
    resetAt: 0,
    delayMs: 0,
    reason: 'ok',
    source: 'memory',
    reservation: null,
    status: null,
    headers: null,
    body: null,
  };
}

/** Undefined if it is no decision: something else answers under the service's name. */
export function decisionOf(reply: Reply): Decision | undefined {
  if (!Array.isArray(reply) || reply.length % 2 !== 0) return undefined;
  const decision = emptyDecision();
  let complete = false;
  for (let at = 0; at < reply.length; at += 2) {
    const value: unknown = reply[at + 1];
    if (reply[at] === 'allowed') {
      if (value !== 0 && value !== 1) return undefined;
      decision.allowed = value === 1;
      complete = true;
    } else if (typeof value === 'number') {
      setNumber(decision, reply[at] as string, value);
    } else if (typeof value === 'string') {
      if (value.length > 0) setText(decision, reply[at] as string, value);
    } else if (reply[at] === 'retry_after_ms') {
      decision.retryAfterMs = null;
    }
  }
  if (!complete) return undefined;
  if (decision.status !== null) {
    // An empty text was skipped above.
    decision.headers ??= [];
    decision.body ??= '';
  }
  return decision;
}

function setNumber(decision: Decision, name: string, value: number): void {
  switch (name) {
    case 'limit':
      decision.limit = value;
      break;
    case 'remaining':
      decision.remaining = value;
      break;
    case 'cost':
      decision.cost = value;
      break;
    case 'retry_after_ms':
      decision.retryAfterMs = value;
      break;
    case 'reset_after_ms':
      decision.resetAfterMs = value;
      break;
    case 'reset_at':
      decision.resetAt = value;
      break;
    case 'delay_ms':
      decision.delayMs = value;
      break;
    case 'status':
      // Anything else would make the server that takes it over throw.
      if (value >= 200 && value <= 599) decision.status = value;
      break;
    default: // A newer service may say more.
  }
}

function setText(decision: Decision, name: string, value: string): void {
  switch (name) {
    case 'rule':
      decision.rule = textOf(value);
      break;
    case 'reason':
      decision.reason = value;
      break;
    case 'source':
      decision.source = value;
      break;
    case 'reservation':
      decision.reservation = value;
      break;
    case 'headers':
      decision.headers = headersIn(value);
      break;
    case 'body':
      decision.body = textOf(value);
      break;
    default:
  }
}

/** Whole lines, each with its end. */
function headersIn(text: string): [string, string][] {
  const headers: [string, string][] = [];
  for (let begin = 0; begin < text.length; ) {
    const end = text.indexOf('\r\n', begin);
    const colon = text.indexOf(': ', begin);
    if (end < 0 || colon < 0 || colon > end) break;
    headers.push([text.slice(begin, colon), text.slice(colon + 2, end)]);
    begin = end + 2;
  }
  return headers;
}
