// What a response says to a caller that wants to behave: how much is left, and how long to wait.

/** As of the Headers of fetch. */
export interface HeaderSource {
  get: (name: string) => string | null;
}

export interface Pace {
  /** How long to send nothing; null if it does not say. */
  readonly waitMs: number | null;
  /** How many requests are left; null if it does not say. */
  readonly remaining: number | null;
}

/** Above it a reset is an instant, not a length. */
const EPOCH_SECONDS = 1e9;
const MAX_DIGITS = 15;

export function readPace(status: number, headers: HeaderSource, nowMs: number): Pace {
  // What comes from a cache was said to somebody else.
  const isCached = Number(headers.get('age') ?? 0) > 0;
  const told = isCached ? null : (standardPace(headers) ?? legacyPace(headers, nowMs));
  const retryAfterMs = retryAfter(headers, nowMs);
  if (status === 429 || (status === 503 && retryAfterMs !== null)) {
    return { waitMs: retryAfterMs ?? told?.resetMs ?? null, remaining: 0 };
  }
  if (told === null) return { waitMs: null, remaining: null };
  return { waitMs: told.remaining === 0 ? told.resetMs : null, remaining: told.remaining };
}

interface Told {
  readonly remaining: number;
  readonly resetMs: number | null;
}

/** `RateLimit: "per-user";r=4;t=6, …`: the one with the least left. */
function standardPace(headers: HeaderSource): Told | null {
  const text = headers.get('ratelimit');
  const items = text === null ? null : itemsOf(text);
  if (items === null) return null;
  let least: Told | null = null;
  for (const item of items) {
    const remaining = wholeNumber(item.get('r'));
    const seconds = item.has('t') ? wholeNumber(item.get('t')) : null;
    // One that is not as it should be spoils the whole field.
    if (remaining === null || (item.has('t') && seconds === null)) return null;
    const told = { remaining, resetMs: seconds === null ? null : seconds * 1000 };
    if (least === null || isTighter(told, least)) least = told;
  }
  return least;
}

function isTighter(one: Told, other: Told): boolean {
  if (one.remaining !== other.remaining) return one.remaining < other.remaining;
  return (one.resetMs ?? 0) > (other.resetMs ?? 0);
}

function legacyPace(headers: HeaderSource, nowMs: number): Told | null {
  const remaining = wholeNumber(headers.get('x-ratelimit-remaining')?.trim());
  if (remaining === null) return null;
  const reset = wholeNumber(headers.get('x-ratelimit-reset')?.trim());
  if (reset === null) return { remaining, resetMs: null };
  return {
    remaining,
    resetMs: reset > EPOCH_SECONDS ? Math.max(0, reset * 1000 - nowMs) : reset * 1000,
  };
}

/** In seconds, or a date. */
function retryAfter(headers: HeaderSource, nowMs: number): number | null {
  const text = headers.get('retry-after')?.trim();
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Math.min(Number(text), 10 ** MAX_DIGITS) * 1000;
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && text.length <= MAX_DIGITS && /^\d+$/.test(text)
    ? Number(text)
    : null;
}

// --- Structured fields (RFC 9651), as much of them as a list of items with parameters takes.

const BARE_ITEM =
  /(?:"(?:[^"\\]|\\["\\])*"|:[A-Za-z0-9+/=]*:|\?[01]|-?\d+(?:\.\d+)?|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*)/y;
const KEY = /[ \t]*;[ ]*([a-z*][a-z0-9_.*-]*)/y;
const COMMA = /[ \t]*,[ \t]*/y;

/** The parameters of each item, or null if it is no such list. */
function itemsOf(text: string): Map<string, string>[] | null {
  const items: Map<string, string>[] = [];
  const whole = text.trim();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(whole);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  for (;;) {
    if (take(BARE_ITEM) === null) return null;
    const parameters = new Map<string, string>();
    for (let key = take(KEY); key !== null; key = take(KEY)) {
      let value = '?1';
      if (whole[at] === '=') {
        at += 1;
        const match = take(BARE_ITEM);
        if (match === null) return null;
        value = match[0];
      }
      parameters.set(key[1] ?? '', value);
    }
    items.push(parameters);
    if (at === whole.length) return items;
    if (take(COMMA) === null) return null;
  }
}
