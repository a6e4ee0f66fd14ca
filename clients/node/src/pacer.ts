// When requests to one server may be sent: as many as it has left for us at a time, none before their
// time, and first come, first served.
import type { Pace } from './pace.js';

/** What is waited after a denial that does not say how long, at first; then twice that. */
const FIRST_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;
const JITTER_MS = 50;
/** What a timer can count; a longer wait is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

interface Waiter {
  readonly send: (number: number) => void;
  /** It is sent then, whatever the server has said. */
  readonly latest: number;
}

export class Pacer {
  private readonly queue: Waiter[] = [];
  private inFlight = 0;
  /** How many more may be sent before the next response: one before the first. */
  private allowance = 1;
  private sent = 0;
  /** Requests from this number on were sent after that was told. What is said to earlier ones may be
   * older, and counts only if it is less. */
  private knownSince = 0;
  private blockedUntil = 0;
  /** After a denial they go one after the other, until the server has said what is left. */
  private oneByOne = false;
  private backoffMs = FIRST_BACKOFF_MS;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly maxWaitMs: number) {}

  /** Whether forgetting it would change anything. */
  get isIdle(): boolean {
    return this.inFlight === 0 && this.queue.length === 0 && performance.now() >= this.blockedUntil;
  }

  /** Resolves to its number when it is this request's turn; whoever got it must call `done` once. One
   * that is sent again goes before those who have not been sent yet. */
  turn(signal: AbortSignal | undefined, isAgain: boolean): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        this.queue.splice(this.queue.indexOf(waiter), 1);
        reject(signal?.reason as Error);
        this.pump();
      };
      const waiter: Waiter = {
        send: (number) => {
          signal?.removeEventListener('abort', onAbort);
          resolve(number);
        },
        latest: performance.now() + this.maxWaitMs,
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      if (isAgain) this.queue.unshift(waiter);
      else this.queue.push(waiter);
      this.pump();
    });
  }

  /** A response, or none if the request failed. Says how long those who are denied must wait. */
  done(number: number, pace: Pace | undefined, isDenied: boolean): number {
    this.inFlight -= 1;
    let waitMs = 0;
    if (isDenied) {
      waitMs = pace?.waitMs ?? this.backoffMs;
      this.backoffMs = Math.min(2 * this.backoffMs, MAX_BACKOFF_MS);
      this.oneByOne = true;
      this.block(waitMs);
    } else if (pace !== undefined) {
      this.backoffMs = FIRST_BACKOFF_MS;
      if (pace.remaining !== null) this.told(number, pace.remaining);
      // It says nothing about it, and never did.
      else if (this.knownSince === 0) this.allowance = Infinity;
      if (pace.waitMs !== null) this.block(pace.waitMs);
    }
    this.pump();
    return waitMs;
  }

  private told(number: number, remaining: number): void {
    this.oneByOne = false;
    // Those under way may not have been counted yet.
    const allowance = Math.max(0, remaining - this.inFlight);
    if (number >= this.knownSince) {
      this.allowance = allowance;
      this.knownSince = this.sent;
    } else {
      this.allowance = Math.min(this.allowance, allowance);
    }
  }

  /** Never less than was asked for, and not all callers at once. */
  private block(waitMs: number): void {
    const withJitter = waitMs * (1 + 0.1 * Math.random()) + JITTER_MS * Math.random();
    this.blockedUntil = Math.max(this.blockedUntil, performance.now() + withJitter);
  }

  private pump(): void {
    const now = performance.now();
    for (let [first] = this.queue; first !== undefined; [first] = this.queue) {
      if (!this.maySend(now) && now < first.latest) {
        this.wakeAt(
          Math.min(first.latest, now < this.blockedUntil ? this.blockedUntil : Infinity),
          now,
        );
        return;
      }
      this.queue.shift();
      this.inFlight += 1;
      this.allowance = Math.max(0, this.allowance - 1);
      first.send(this.sent);
      this.sent += 1;
    }
    clearTimeout(this.timer);
  }

  private maySend(now: number): boolean {
    if (now < this.blockedUntil) return false;
    // One at a time finds out; otherwise nobody would ever be told of more.
    if (this.inFlight === 0) return true;
    return !this.oneByOne && this.allowance > 0;
  }

  private wakeAt(when: number, now: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        this.pump();
      },
      Math.min(Math.ceil(when - now), MAX_TIMER_MS),
    );
  }
}
