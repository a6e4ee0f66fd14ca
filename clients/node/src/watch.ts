// What is said about services that come and go: one warning when it begins, one when it ends, and
// never one for each request.
import type { WeirError } from './errors.js';
import type { Server } from './server.js';

/** Whatever takes warnings; `console` does. */
export interface Logger {
  warn: (message: string) => void;
}

/** So many different replies are told of; then the service says too many different things. */
const MAX_TOLD = 64;

export class Watch {
  /** The place in the list of the one that answers. */
  private place = 0;
  private alone: { since: number; number: number } | undefined;
  private readonly told = new Set<string>();

  constructor(
    private readonly logger: Logger,
    /** What becomes of requests meanwhile, for people. */
    private readonly meanwhile: string,
  ) {}

  answered(server: Server, servers: readonly Server[]): void {
    if (this.alone === undefined && server.place === this.place) return;
    if (this.alone !== undefined) {
      const { since, number } = this.alone;
      this.alone = undefined;
      this.place = server.place;
      this.warn(
        `${server.address.text} answers again, after ${secondsSince(since)}; ` +
          `${number} ${number === 1 ? 'request was' : 'requests were'} decided without a service`,
      );
      return;
    }
    const before = servers[this.place];
    // One that was merely too busy for this question is asked the next one.
    if (before === undefined || (server.place > this.place && !before.isDown)) return;
    this.place = server.place;
    this.warn(
      server.place > before.place
        ? `${before.address.text} is left alone (${before.why}); asking ${server.address.text}`
        : `${server.address.text} answers again, after ${secondsSince(server.downSince)}, and is asked`,
    );
  }

  /** A request was decided here, for this reason. */
  decidedAlone(error: WeirError): void {
    if (error.code !== 'unavailable') {
      this.once(`${error.message}; ${this.meanwhile}`);
    } else if (this.alone !== undefined) {
      this.alone.number += 1;
    } else {
      this.alone = { since: performance.now(), number: 1 };
      this.warn(`no service answers (${error.message}); ${this.meanwhile} until one does`);
    }
  }

  once(message: string): void {
    if (this.told.has(message) || this.told.size >= MAX_TOLD) return;
    this.told.add(message);
    this.warn(message);
  }

  private warn(message: string): void {
    try {
      this.logger.warn(`weir: ${message}`);
    } catch {
      // A logger that fails must not take requests with it.
    }
  }
}

function secondsSince(begin: number): string {
  return `${((performance.now() - begin) / 1000).toFixed(1)} s`;
}
