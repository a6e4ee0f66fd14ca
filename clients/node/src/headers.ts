// Which headers a response gets. The service says what they are; options can leave families out, ask
// for those that the policy does not send, or for the forms of older drafts.
import type { ServerResponse } from 'node:http';

import type { Decision } from './decision.js';

/** `true`: as the policy says. */
export type StandardHeaders = boolean | 'draft-6' | 'draft-7' | 'draft-8';

export interface HeaderChoice {
  readonly standard: StandardHeaders | undefined;
  readonly legacy: boolean | undefined;
}

type Pair = readonly [name: string, value: string];

export const STANDARD_HEADERS: readonly unknown[] = [true, false, 'draft-6', 'draft-7', 'draft-8'];

/** Sets them; `withType` also that of the denial's body. */
export function setHeaders(
  res: ServerResponse,
  decision: Decision,
  choice: HeaderChoice,
  withType: boolean,
): void {
  const { headers } = decision;
  if (headers === null || res.headersSent) return;
  const asIs =
    (choice.standard === undefined || choice.standard === true) && choice.legacy === undefined;
  for (const [name, value] of asIs ? headers : chosen(decision, headers, choice)) {
    if (withType || name !== 'Content-Type') setHeader(res, name, value);
  }
}

function setHeader(res: ServerResponse, name: string, value: string): void {
  try {
    res.setHeader(name, value);
  } catch {
    // No header at all, so it did not come from a service that is well.
  }
}

function chosen(
  decision: Decision,
  headers: readonly Pair[],
  { standard, legacy }: HeaderChoice,
): Pair[] {
  const legacyPairs = headers.filter(([name]) => name.startsWith('X-RateLimit-'));
  const standardPairs = headers.filter(([name]) => name.startsWith('RateLimit'));
  const others = headers.filter(
    ([name]) => !name.startsWith('X-RateLimit-') && !name.startsWith('RateLimit'),
  );
  const counted = isCounted(decision);
  if (legacy === false) legacyPairs.length = 0;
  else if (legacy === true && legacyPairs.length === 0 && counted)
    legacyPairs.push(...legacyOf(decision));
  const policy = standardPairs.find(([name]) => name === 'RateLimit-Policy')?.[1];
  return [
    ...others,
    ...legacyPairs,
    ...standardOf(decision, standardPairs, standard, counted, policy),
  ];
}

function standardOf(
  decision: Decision,
  pairs: Pair[],
  standard: StandardHeaders | undefined,
  counted: boolean,
  policy: string | undefined,
): Pair[] {
  // What a function has told may be anything.
  if (standard === true || !STANDARD_HEADERS.includes(standard)) return pairs;
  if (standard === false || !counted) return [];
  const { limit, remaining } = decision;
  const reset = Math.ceil(
    (decision.allowed ? decision.resetAfterMs : (decision.retryAfterMs ?? 0)) / 1000,
  );
  if (standard === 'draft-8') {
    if (pairs.length > 0) return pairs;
    return [['RateLimit', `"${decision.rule ?? 'default'}";r=${remaining};t=${reset}`]];
  }
  // Older drafts have no names: "per-ip";q=200;w=60 was 200;w=60.
  const unnamed: Pair[] =
    policy === undefined ? [] : [['RateLimit-Policy', policy.replace(/"[^"]*";q=/g, '')]];
  if (standard === 'draft-7') {
    return [...unnamed, ['RateLimit', `limit=${limit}, remaining=${remaining}, reset=${reset}`]];
  }
  return [
    ...unnamed,
    ['RateLimit-Limit', String(limit)],
    ['RateLimit-Remaining', String(remaining)],
    ['RateLimit-Reset', String(reset)],
  ];
}

function legacyOf({ limit, remaining, resetAt }: Decision): Pair[] {
  return [
    ['X-RateLimit-Limit', String(limit)],
    ['X-RateLimit-Remaining', String(remaining)],
    ['X-RateLimit-Reset', String(resetAt)],
  ];
}

/** Whether a limit was counted by a service, so that there is something to tell. */
function isCounted({ reason, source }: Decision): boolean {
  const counts =
    reason === 'ok' || reason === 'limited' || reason === 'never_fits' || reason === 'banned';
  return counts && (source === 'memory' || source === 'store' || source === 'lease');
}
