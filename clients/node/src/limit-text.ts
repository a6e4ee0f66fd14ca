// Limits in text, `100/min burst 50`, as the service reads them. They are read here so that a wrong
// one is an error at the start, and to decide while no service answers.
import { OptionError } from './errors.js';

export type Limit =
  | {
      readonly kind: 'rate';
      readonly count: number;
      readonly periodMs: number;
      readonly burst: number;
    }
  | { readonly kind: 'concurrent'; readonly count: number; readonly leaseMs: number }
  | { readonly kind: 'unlimited' | 'deny' };

const MAX_COUNT = 1e15;
const MAX_PER_MS = 10_000;
const MAX_CONCURRENT = 65_536;
const DAY = 86_400_000;
const MAX_PERIOD = 366 * DAY;
const DEFAULT_LEASE = 30_000;

const UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['day', DAY],
  ['week', 7 * DAY],
]);
const FACTORS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
]);

const RATE =
  /^[ \t]*(\d+)([A-Za-z]*)[ \t]*\/[ \t]*(\d*)[ \t]*([A-Za-z]+)(?:[ \t]+burst[ \t]+(\d+)([A-Za-z]*))?[ \t]*$/;
const CONCURRENT =
  /^[ \t]*(\d+)([A-Za-z]*)[ \t]+concurrent(?:[ \t]+lease[ \t]+(\d+)[ \t]*([A-Za-z]+))?[ \t]*$/;

/** Throws an OptionError under this option's name. */
export function parseLimit(text: string, option = 'limit'): Limit {
  const fail = (message: string): never => {
    throw new OptionError(option, `"${printable(text)}" is no limit: ${message}`);
  };
  const word = text.trim();
  if (word === 'unlimited' || word === 'deny') return { kind: word };
  const rate = RATE.exec(text);
  if (rate !== null) return rateOf(rate, fail);
  const concurrent = CONCURRENT.exec(text);
  if (concurrent !== null) return concurrencyOf(concurrent, fail);
  return fail('write it like 100/min, 100/min burst 50, 20 concurrent, unlimited or deny');
}

type Fail = (message: string) => never;

function rateOf(parts: RegExpExecArray, fail: Fail): Limit {
  const [, digits = '', factor = '', times = '', unit = '', burstDigits, burstFactor = ''] = parts;
  const count = countOf(digits, factor, MAX_COUNT, fail);
  const periodMs = lengthOf(times, unit, fail);
  const burst =
    burstDigits === undefined ? count : countOf(burstDigits, burstFactor, MAX_COUNT, fail);
  if (count > MAX_PER_MS * periodMs) return fail('at most 10000000 a second are allowed');
  if ((burst / count) * periodMs > MAX_PERIOD) {
    return fail('the burst takes more than 366day to fill');
  }
  return { kind: 'rate', count, periodMs, burst };
}

function concurrencyOf(parts: RegExpExecArray, fail: Fail): Limit {
  const [, digits = '', factor = '', times, unit = ''] = parts;
  const count = countOf(digits, factor, MAX_CONCURRENT, fail);
  return {
    kind: 'concurrent',
    count,
    leaseMs: times === undefined ? DEFAULT_LEASE : lengthOf(times, unit, fail),
  };
}

function countOf(digits: string, ending: string, bound: number, fail: Fail): number {
  const factor = FACTORS.get(ending);
  if (factor === undefined) return fail(`unknown ending "${ending}"; allowed are k, M and G`);
  const count = Number(digits) * factor;
  if (count < 1 || count > bound) {
    return fail(`write a count of 1 to ${bound}, or the limit "deny"`);
  }
  return count;
}

function lengthOf(digits: string, unit: string, fail: Fail): number {
  if (unit === 'month' || unit === 'year') {
    return fail(`"${unit}" needs a calendar, so it belongs into the policy of the service`);
  }
  const length = UNITS.get(unit);
  if (length === undefined) {
    return fail(`unknown period "${unit}"; allowed are ${[...UNITS.keys()].join(', ')}`);
  }
  const period = length * (digits === '' ? 1 : Number(digits));
  if (period < 1 || period > MAX_PERIOD) return fail('write a period above 0, up to 366day');
  return period;
}

/** As limit text: what express-rate-limit says by `windowMs` and a number. */
export function limitTextOf(count: number, windowMs: number): string {
  if (count === 0) return 'deny';
  for (const [unit, length] of [...UNITS].reverse()) {
    if (windowMs % length === 0) {
      const times = windowMs / length;
      return `${count}/${times === 1 ? '' : times}${unit}`;
    }
  }
  return `${count}/${windowMs}ms`;
}

function printable(text: string): string {
  return text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');
}
