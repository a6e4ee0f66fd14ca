// How HTTP tells of what was decided here, while no service answers: as the service itself would.
import type { Decision } from './decision.js';

/** The form of a denial's body. */
export type HttpForm = 'json' | 'problem';

const TYPES = 'https://iana.org/assignments/http-problem-types';

/** Sets status, headers and body. */
export function tellHttp(decision: Decision, form: HttpForm): Decision {
  if (decision.allowed) {
    decision.status = 200;
    decision.headers = [];
    decision.body = '';
    return decision;
  }
  const retryAfter = secondsUp(decision.retryAfterMs);
  decision.status = decision.reason === 'deny_list' ? 403 : 429;
  decision.headers = [
    ['Content-Type', form === 'json' ? 'application/json' : 'application/problem+json'],
    ...(retryAfter === null
      ? []
      : [['Retry-After', String(Math.max(1, retryAfter))] as [string, string]]),
    ['Cache-Control', 'no-store'],
  ];
  decision.body = JSON.stringify({ ...opening(decision, form), ...fieldsOf(decision) });
  return decision;
}

function opening(decision: Decision, form: HttpForm): Record<string, unknown> {
  const message = messageOf(decision);
  if (form === 'json') {
    return { error: decision.status === 403 ? 'forbidden' : 'rate_limited', message };
  }
  if (decision.status === 403) {
    return { type: 'about:blank', title: 'Forbidden', status: 403, detail: message };
  }
  const isFailure = decision.reason === 'store_failure';
  return {
    type: `${TYPES}#${isFailure ? 'temporary-reduced-capacity' : 'quota-exceeded'}`,
    title: isFailure ? 'Temporarily reduced capacity' : 'Quota exceeded',
    status: decision.status,
    detail: message,
    'violated-policies': ['default'],
  };
}

function messageOf({ reason, retryAfterMs }: Decision): string {
  const seconds = Math.max(1, secondsUp(retryAfterMs) ?? 1);
  const retry = `Retry after ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  switch (reason) {
    case 'store_failure':
      return `The limit cannot be checked at the moment. ${retry}`;
    case 'never_fits':
      return 'This request costs more than its limit can ever hold.';
    case 'deny_list':
      return 'This request is not allowed.';
    default:
      return `Too many requests. ${retry}`;
  }
}

function fieldsOf(decision: Decision): Record<string, unknown> {
  return {
    allowed: decision.allowed,
    rule: decision.rule,
    limit: decision.limit,
    remaining: decision.remaining,
    cost: decision.cost,
    retry_after: secondsUp(decision.retryAfterMs),
    retry_after_ms: decision.retryAfterMs,
    reset_after: secondsUp(decision.resetAfterMs),
    reset_after_ms: decision.resetAfterMs,
    reset_at: decision.resetAt,
    delay_ms: decision.delayMs,
    reason: decision.reason,
    source: decision.source,
  };
}

/** Never early. */
function secondsUp(ms: number | null): number | null {
  return ms === null ? null : Math.ceil(ms / 1000);
}
