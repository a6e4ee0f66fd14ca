// One connection to a service. Questions are pipelined, and those of one turn of the event loop leave
// in one write; replies come in their order. It is used until something is wrong with it, and then
// thrown away with all that was under way: replies have no ids, so a late one would be taken for the
// next.
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext } from 'node:tls';

import { NonsenseError, ReplyReader, type Reply } from './resp.js';
import type { Address } from './servers.js';

/** Far above what a service takes up at a time, so that a flood waits rather than passes undecided. */
const MAX_IN_FLIGHT = 16 * 1024;
/** So many that were answered are kept until the list is made shorter. */
const MAX_ANSWERED = 1024;
const READ_BUFFER = 16 * 1024;
const KEEP_ALIVE_MS = 30_000;
/** Node.js allows no less for one address of several. */
const LEAST_ATTEMPT_MS = 10;
/** What a process that stood still is granted on top of that, for the answer to arrive. */
const EXTENSION_MS = 10;
/** Timers are this late at times without anything being wrong. */
const LATE_MS = 3;

/** What is waited for. */
export interface Pending {
  due: number;
  budget: number;
  extended: boolean;
}

export interface Owner<Item extends Pending> {
  answered: (item: Item, reply: Reply) => void;
  /** The end of it. Said once, and never after `close`. */
  lost: (why: string, underWay: Item[]) => void;
}

export class Connection<Item extends Pending> {
  private readonly socket: Socket;
  private readonly reader = new ReplyReader((reply) => {
    this.take(reply);
  });
  private pending: Item[] = [];
  private first = 0;
  private out = '';
  private connected = false;
  private ended = false;
  private flushing = false;
  private timer: NodeJS.Timeout | undefined;
  private alarm = Infinity;

  constructor(
    address: Address,
    secureContext: SecureContext | undefined,
    /** What the first question has. */
    budget: number,
    private readonly owner: Owner<Item>,
  ) {
    this.socket = this.open(address, secureContext, budget);
    this.socket.setNoDelay(true);
    this.socket.setKeepAlive(true, KEEP_ALIVE_MS);
    // What waits for an answer holds a timer; an idle connection must not keep a program from ending.
    this.socket.unref();
    this.socket.on(address.tls ? 'secureConnect' : 'connect', () => {
      // Again: with a second address of a name comes a second handle.
      this.socket.unref();
      this.connected = true;
      this.flush();
    });
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.fail(error.code ?? error.message);
    });
    this.socket.on('close', () => {
      this.fail('the connection was closed');
    });
  }

  get isFull(): boolean {
    return this.pending.length - this.first >= MAX_IN_FLIGHT;
  }

  send(item: Item, command: string, now: number): void {
    item.due = now + item.budget;
    if (this.pending.length === 0) this.timer?.ref();
    this.pending.push(item);
    this.out += command;
    if (item.due < this.alarm) this.setAlarm(item.due, now);
    if (!this.flushing && this.connected) {
      this.flushing = true;
      // Runs when all that has come in this turn was taken up.
      setImmediate(() => {
        this.flush();
      });
    }
  }

  /** Ends it without a word to the owner; gives back what was under way. */
  close(): Item[] {
    this.ended = true;
    clearTimeout(this.timer);
    this.socket.destroy();
    const underWay = this.pending.slice(this.first);
    this.pending = [];
    this.first = 0;
    return underWay;
  }

  private open(address: Address, secureContext: SecureContext | undefined, budget: number): Socket {
    const { path, host, port } = address;
    // Of a name with several addresses the next one must have its turn before the time is over.
    const autoSelectFamilyAttemptTimeout = Math.max(LEAST_ATTEMPT_MS, Math.floor(budget / 3));
    const where =
      path !== undefined
        ? { path }
        : { host, port: port ?? 0, autoSelectFamily: true, autoSelectFamilyAttemptTimeout };
    if (address.tls) {
      const socket = connectTls({
        ...where,
        ...(secureContext && { secureContext }),
        servername: nameOf(host),
      });
      socket.on('data', (chunk: Buffer) => this.read(chunk));
      return socket;
    }
    // One buffer for all that is read: it becomes text at once.
    const buffer = Buffer.allocUnsafe(READ_BUFFER);
    return connectPlain({
      ...where,
      onread: { buffer, callback: (length) => this.read(buffer.subarray(0, length)) },
    });
  }

  private flush(): void {
    this.flushing = false;
    if (this.out === '' || this.ended) return;
    const { out } = this;
    this.out = '';
    this.socket.write(out, 'latin1');
  }

  private read(chunk: Buffer): boolean {
    if (this.ended) return false;
    try {
      this.reader.push(chunk);
    } catch (error) {
      if (!(error instanceof NonsenseError)) throw error;
      this.fail(error.message);
    }
    return true;
  }

  private take(reply: Reply): void {
    if (this.ended) return;
    const item = this.pending[this.first];
    if (item === undefined) {
      throw new NonsenseError('it answered what nobody had asked');
    }
    this.first += 1;
    if (this.first === this.pending.length) {
      this.pending.length = 0;
      this.first = 0;
      this.timer?.unref();
    } else if (this.first >= MAX_ANSWERED) {
      this.pending = this.pending.slice(this.first);
      this.first = 0;
    }
    this.owner.answered(item, reply);
  }

  private fail(why: string): void {
    if (this.ended) return;
    const underWay = this.close();
    this.owner.lost(why, underWay);
  }

  // --- Time. One timer for all that is under way: it is set for the first, and mostly finds that
  // --- answered when it rings.

  private setAlarm(due: number, now: number): void {
    clearTimeout(this.timer);
    this.alarm = due;
    this.timer = setTimeout(
      () => {
        this.ring();
      },
      Math.max(0, due - now),
    );
  }

  private ring(): void {
    const now = performance.now();
    const late = now - this.alarm;
    this.alarm = Infinity;
    this.timer = undefined;
    if (late > LATE_MS) this.extend(now, late);
    this.judgeAfterReading(now, false);
  }

  /** After the process was blocked, timers run before what has arrived is read. So read first, then
   * judge; and read once more if the process was blocked in between. A question that was sent
   * meanwhile has lost that time too, so it is extended even if nothing is read again. */
  private judgeAfterReading(since: number, isSecond: boolean): void {
    setImmediate(() => {
      const now = performance.now();
      const late = now - since;
      if (late > LATE_MS) this.extend(now, late);
      if (late > LATE_MS && !isSecond) this.judgeAfterReading(now, true);
      else this.judge(now);
    });
  }

  private extend(now: number, late: number): void {
    for (let at = this.first; at < this.pending.length; at += 1) {
      const item = this.pending[at];
      if (item === undefined || item.extended) continue;
      item.extended = true;
      item.due = Math.max(item.due, now + Math.min(item.budget, late + EXTENSION_MS));
    }
  }

  private judge(now: number): void {
    if (this.ended || this.pending.length === 0) return;
    let next = Infinity;
    for (let at = this.first; at < this.pending.length; at += 1) {
      const item = this.pending[at];
      if (item !== undefined && item.due < next) next = item.due;
    }
    // A timer may ring a fraction early.
    if (next - now < 0.5) {
      this.fail(this.connected ? 'it did not answer in time' : 'it could not be reached in time');
    } else if (next < this.alarm) {
      this.setAlarm(next, now);
    }
  }
}

/** What the certificate must be for. An address is not sent as a name. */
function nameOf(host: string | undefined): string {
  return host === undefined || /^[\d.]+$|:/.test(host) ? '' : host;
}
