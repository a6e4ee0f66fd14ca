// What decides while no service answers: a token bucket for each key, in this process (GCRA, with the
// theoretical arrival time in whole nanoseconds of a monotonic clock). It is charged for all that is
// let through while a service answers, too, so that it takes over warm.
import { emptyDecision, type Decision } from './decision.js';
import type { Limit } from './limit-text.js';

const MAX_KEYS = 65_536;
/** How many more keys give way unseen after a look at all of them found none that was fresh. */
const UNSEEN = 4096;
const NS_PER_MS = 1e6;

export type RateLimit = Limit & { kind: 'rate' };

export class Buckets {
  /** By key: when it will be as good as new. The least recently charged is first. */
  private readonly arrivals = new Map<string, number>();
  /** At the first of them. A new one would have to step over all that were deleted since the map was
   * last tidied up, which is as many as there are. */
  private oldest = this.arrivals.keys();
  private unseen = 0;

  constructor(
    private readonly share: number,
    private readonly maxKeys = MAX_KEYS,
  ) {}

  get size(): number {
    return this.arrivals.size;
  }

  /** For what a service has let through. */
  charge(limit: RateLimit, key: string, cost: number, nowMs: number): void {
    const { interval, burst } = this.shapeOf(limit);
    const now = Math.floor(nowMs * NS_PER_MS);
    const arrival = Math.max(this.arrivals.get(key) ?? 0, now) + cost * interval;
    this.store(key, Math.min(arrival, now + burst * interval), now);
  }

  /** Takes the cost if it is there, or only says whether it is. */
  take(limit: RateLimit, key: string, cost: number, nowMs: number, takes = true): Decision {
    const { interval, burst } = this.shapeOf(limit);
    const now = Math.floor(nowMs * NS_PER_MS);
    const before = Math.max(this.arrivals.get(key) ?? 0, now);
    const after = before + cost * interval;
    const excess = after - (now + burst * interval);
    const allowed = excess <= 0;
    if (allowed && takes && cost > 0) this.store(key, after, now);
    const arrival = allowed && takes ? after : before;
    const resetAfterMs = Math.ceil((arrival - now) / NS_PER_MS);
    return {
      ...emptyDecision(),
      allowed,
      limit: burst,
      remaining: Math.max(0, Math.floor((now + burst * interval - arrival) / interval)),
      cost,
      retryAfterMs: allowed ? 0 : cost > burst ? null : Math.ceil(excess / NS_PER_MS),
      resetAfterMs,
      resetAt: Math.ceil((Date.now() + resetAfterMs) / 1000),
      reason: allowed ? 'ok' : cost > burst ? 'never_fits' : 'limited',
      source: 'fallback',
    };
  }

  /** This process's share, rounded so that all of them together are never above the whole. */
  private shapeOf(limit: RateLimit): { interval: number; burst: number } {
    return {
      interval: Math.ceil((limit.periodMs * NS_PER_MS * this.share) / limit.count),
      burst: Math.max(1, Math.floor(limit.burst / this.share)),
    };
  }

  private store(key: string, arrival: number, now: number): void {
    // Deleted first, so that the order is that of the last charges.
    if (!this.arrivals.delete(key) && this.arrivals.size >= this.maxKeys) this.makeRoom(now);
    this.arrivals.set(key, arrival);
  }

  private makeRoom(now: number): void {
    if (this.unseen > 0) {
      this.unseen -= 1;
    } else {
      for (const [key, arrival] of this.arrivals) {
        if (arrival <= now) this.arrivals.delete(key);
      }
      if (this.arrivals.size < this.maxKeys) return;
      this.unseen = Math.min(UNSEEN, this.maxKeys >> 4);
    }
    let oldest = this.oldest.next();
    if (oldest.done === true) {
      this.oldest = this.arrivals.keys();
      oldest = this.oldest.next();
    }
    if (oldest.done !== true) this.arrivals.delete(oldest.value);
  }
}
