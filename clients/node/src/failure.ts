// Who decides while no service answers: everybody passes, nobody does, or a bucket in this process.
import { Buckets } from './buckets.js';
import { emptyDecision, type Decision } from './decision.js';
import { OptionError } from './errors.js';
import { parseLimit, type Limit } from './limit-text.js';

export type FailureMode = 'open' | 'closed' | 'static';

/** A question that nobody has answered. */
export interface Undecided {
  readonly key: string;
  /** Without one a policy should have decided. */
  readonly limit: string | undefined;
  readonly cost: number;
  readonly takes: boolean;
}

const RETRY_AFTER_MS = 1000;
/** Limits that come from functions are read once each, so many of them. */
const MAX_LIMITS = 1024;

export class Failure {
  readonly mode: FailureMode;
  private readonly policyLimit: Limit | undefined;
  private readonly buckets: Buckets;
  private readonly limits = new Map<string, Limit | undefined>();

  constructor(mode: FailureMode, staticLimit: string | undefined, share: number) {
    this.mode = mode;
    if (staticLimit !== undefined) this.policyLimit = countable(staticLimit, 'staticLimit');
    this.buckets = new Buckets(share);
  }

  /** Whether allowed answers are to be told to `charge`. */
  get wantsCharges(): boolean {
    return this.mode === 'static';
  }

  get hasPolicyLimit(): boolean {
    return this.policyLimit !== undefined;
  }

  /** What a service has let through. Without a limit it was decided by a policy. */
  charge(key: string, limitText: string | undefined, cost: number): void {
    const limit = this.limitOf(limitText);
    if (limit?.kind !== 'rate') return;
    this.buckets.charge(limit, bucketOf(key, limitText), cost, performance.now());
  }

  decide({ key, limit: limitText, cost, takes }: Undecided): Decision {
    const limit = this.mode === 'static' ? this.limitOf(limitText) : undefined;
    if (limit?.kind === 'rate') {
      return this.buckets.take(limit, bucketOf(key, limitText), cost, performance.now(), takes);
    }
    const decision = { ...emptyDecision(), cost, resetAt: Math.ceil(Date.now() / 1000) };
    if (limit?.kind === 'unlimited') return { ...decision, source: 'fallback' };
    if (limit?.kind === 'deny') {
      return {
        ...decision,
        allowed: false,
        retryAfterMs: null,
        reason: 'deny_list',
        source: 'fallback',
      };
    }
    if (this.mode !== 'closed') return { ...decision, reason: 'store_failure', source: 'open' };
    return {
      ...decision,
      allowed: false,
      retryAfterMs: RETRY_AFTER_MS,
      reason: 'store_failure',
      source: 'closed',
    };
  }

  private limitOf(text: string | undefined): Limit | undefined {
    if (text === undefined) return this.policyLimit;
    if (this.limits.has(text)) return this.limits.get(text);
    if (this.limits.size >= MAX_LIMITS) this.limits.clear();
    let limit: Limit | undefined;
    try {
      limit = parseLimit(text);
    } catch {
      // The service will say what is wrong with it.
    }
    this.limits.set(text, limit);
    return limit;
  }
}

/** For limits that a bucket in one process shall stand in for. */
export function countable(text: string, option: string): Limit {
  const limit = parseLimit(text, option);
  if (limit.kind === 'concurrent') {
    throw new OptionError(
      option,
      `"${text}" cannot be counted by a process for itself; with onFailure: 'static' write a rate such as 100/min`,
    );
  }
  return limit;
}

function bucketOf(key: string, limitText: string | undefined): string {
  return limitText === undefined ? key : `${limitText}\n${key}`;
}
