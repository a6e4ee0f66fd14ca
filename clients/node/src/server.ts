// One service of the list: a connection while it is well, and a look for it now and then while it is
// not.
import type { SecureContext } from 'node:tls';

import { Connection } from './connection.js';
import { Question } from './question.js';
import { ErrorReply, encodeCommand, bytesOf, type Reply } from './resp.js';
import type { Address } from './servers.js';

/** How long it is left alone at most: at first, and in the end. */
const FIRST_LOOK_MS = 1000;
const LAST_LOOK_MS = 5000;
const PING = encodeCommand(['PING']);

export interface ServerSettings {
  readonly token: string | undefined;
  readonly secureContext: SecureContext | undefined;
  /** How long a look may take. */
  readonly deadlineMs: number;
}

export interface ServerOwner {
  answered: (question: Question, reply: Reply, server: Server) => void;
  /** It is down now. These were under way. */
  lost: (underWay: Question[], server: Server) => void;
}

/** What goes first on a connection, or to see whether there is anybody. */
class Greeting {
  due = 0;
  extended = false;

  constructor(
    readonly budget: number,
    readonly wanted: string,
  ) {}
}

type Item = Question | Greeting;

export class Server {
  isDown = false;
  /** Why it was last found to be down, and since when. */
  why = '';
  downSince = 0;

  private connection: Connection<Item> | undefined;
  /** The one that is being tried while it is down. */
  private candidate: Connection<Item> | undefined;
  private look: NodeJS.Timeout | undefined;
  private lookAfterMs = FIRST_LOOK_MS;
  private closed = false;
  private readonly greeting: string;

  constructor(
    readonly address: Address,
    /** Its place in the list. */
    readonly place: number,
    private readonly settings: ServerSettings,
    private readonly owner: ServerOwner,
  ) {
    const { token } = settings;
    this.greeting = token === undefined ? '' : encodeCommand(['AUTH', bytesOf(token)]);
  }

  get isFull(): boolean {
    return this.connection?.isFull ?? false;
  }

  ask(question: Question, now: number): void {
    this.connection ??= this.connect(now, question.budget);
    this.connection.send(question, question.command, now);
  }

  /** It has answered a question as it should, so it is looked for soon when it is gone again. */
  wasWell(): void {
    this.lookAfterMs = FIRST_LOOK_MS;
  }

  /** Leaves it alone, and looks for it in the background. */
  markDown(why: string): void {
    if (this.closed || this.isDown) return;
    const underWay = this.connection?.close() ?? [];
    this.connection = undefined;
    this.goDown(why, underWay);
  }

  /** Gives back what was under way. */
  close(): Question[] {
    this.closed = true;
    clearTimeout(this.look);
    this.candidate?.close();
    const underWay = this.connection?.close() ?? [];
    this.connection = undefined;
    return underWay.filter(isQuestion);
  }

  private connect(now: number, budget: number): Connection<Item> {
    const connection = new Connection<Item>(this.address, this.settings.secureContext, budget, {
      answered: (item, reply) => {
        if (isQuestion(item)) this.owner.answered(item, reply, this);
        else this.greeted(connection, item, reply);
      },
      lost: (why, underWay) => {
        this.lose(connection, why, underWay);
      },
    });
    if (this.greeting !== '') {
      // What is asked goes out behind it at once: one round trip, not two.
      connection.send(new Greeting(budget, 'OK'), this.greeting, now);
    }
    return connection;
  }

  private lose(connection: Connection<Item>, why: string, underWay: Item[]): void {
    if (this.closed) return;
    if (connection === this.connection) {
      this.connection = undefined;
      // One that was idle may be closed by a service that is well. Whether it is, the next to ask finds
      // out.
      if (underWay.length > 0) this.goDown(why, underWay);
    } else {
      this.lookLater();
    }
  }

  private goDown(why: string, underWay: Item[]): void {
    this.isDown = true;
    this.why = why;
    this.downSince = performance.now();
    this.lookLater();
    this.owner.lost(underWay.filter(isQuestion), this);
  }

  private greeted(connection: Connection<Item>, greeting: Greeting, reply: Reply): void {
    if (reply === greeting.wanted || isNeedless(reply)) {
      if (greeting.wanted !== 'PONG' || this.closed) return;
      this.isDown = false;
      this.connection = connection;
      this.candidate = undefined;
      return;
    }
    const why = reply instanceof ErrorReply ? reply.text : 'it does not answer as it should';
    if (connection === this.connection) {
      this.markDown(why);
    } else {
      connection.close();
      this.lookLater();
    }
  }

  private lookLater(): void {
    if (this.closed) return;
    clearTimeout(this.look);
    // Not all processes at once.
    const delay = this.lookAfterMs * (0.5 + 0.5 * Math.random());
    this.look = setTimeout(() => {
      const now = performance.now();
      const budget = this.settings.deadlineMs;
      this.candidate = this.connect(now, budget);
      this.candidate.send(new Greeting(budget, 'PONG'), PING, now);
    }, delay);
    this.look.unref();
    this.lookAfterMs = Math.min(2 * this.lookAfterMs, LAST_LOOK_MS);
  }
}

function isQuestion(item: Item): item is Question {
  return item instanceof Question;
}

/** A token for a service that wants none. */
function isNeedless(reply: Reply): boolean {
  return reply instanceof ErrorReply && /^ERR .*without any password/i.test(reply.text);
}
