// All the services of a list. A question goes to the first that is not known to be down; when that is
// lost, to the next, while its deadline lasts.
import { decisionOf, type Decision } from './decision.js';
import { errorOfReply, WeirError } from './errors.js';
import type { Question } from './question.js';
import { ErrorReply, textOf, type Reply } from './resp.js';
import { Server, type ServerSettings } from './server.js';
import type { Address } from './servers.js';

/** An attempt that could not even be sent and read is none. */
const LEAST_BUDGET_MS = 1;

/** Replies that mean that this service cannot be used, though another may. */
const UNUSABLE =
  /^(?:NOAUTH|WRONGPASS|NOPERM|LOADING|ERR unknown command|ERR max number of clients)/;

export interface FleetOwner {
  /** A service answered by a decision. */
  answered: (server: Server) => void;
}

export class Fleet {
  readonly servers: readonly Server[];
  private closed = false;

  constructor(
    addresses: readonly Address[],
    settings: ServerSettings,
    private readonly owner: FleetOwner,
  ) {
    const callbacks = {
      answered: (question: Question, reply: Reply, server: Server) => {
        this.take(question, reply, server);
      },
      lost: (underWay: Question[], server: Server) => {
        for (const question of underWay) this.moveOn(question, server, server.why);
      },
    };
    this.servers = addresses.map(
      (address, place) => new Server(address, place, settings, callbacks),
    );
  }

  /** Its `budget` must be what is left of its deadline; `why` it was not answered so far, if so. */
  ask(question: Question, now: number, why?: string): void {
    const server = this.closed ? undefined : this.choose(question);
    if (server === undefined) {
      const reason = this.closed ? 'the client is closed' : (why ?? this.reasons());
      question.settle(new WeirError('unavailable', reason));
    } else if (server.isFull) {
      question.settle(
        new WeirError('overloaded', `${server.address.text} has too many questions under way`),
      );
    } else {
      question.tried |= 1 << server.place;
      server.ask(question, now);
    }
  }

  close(): void {
    this.closed = true;
    for (const server of this.servers) {
      for (const question of server.close()) {
        question.settle(new WeirError('unavailable', 'the client is closed'));
      }
    }
  }

  /** And sets how long it may take there: an equal part of what is left for each that can be tried. */
  private choose(question: Question): Server | undefined {
    let chosen: Server | undefined;
    let number = 0;
    for (const server of this.servers) {
      if (server.isDown || (question.tried & (1 << server.place)) !== 0) continue;
      // One that is full is as good as one that says that it is busy.
      if (chosen === undefined || (chosen.isFull && !server.isFull)) chosen = server;
      number += 1;
    }
    if (chosen !== undefined) question.budget /= number;
    return chosen;
  }

  private take(question: Question, reply: Reply, server: Server): void {
    if (reply instanceof ErrorReply) {
      this.takeError(question, reply.text, server);
      return;
    }
    const decision: Decision | undefined = decisionOf(reply);
    if (decision === undefined) {
      server.markDown('what it answers is no decision');
      this.moveOn(question, server, server.why);
      return;
    }
    server.wasWell();
    this.owner.answered(server);
    question.settle(decision);
  }

  private takeError(question: Question, bytes: string, server: Server): void {
    const text = textOf(bytes);
    const busy = text.startsWith('BUSY');
    if (question.movable && (busy || UNUSABLE.test(text))) {
      if (!busy) server.markDown(text);
      this.moveOn(question, server, text);
      return;
    }
    question.settle(errorOfReply(text));
  }

  private moveOn(question: Question, server: Server, what: string): void {
    const why = `${server.address.text}: ${what}`;
    const now = performance.now();
    const left = question.deadline - now;
    if (!question.movable || left < LEAST_BUDGET_MS) {
      question.settle(new WeirError('unavailable', why));
      return;
    }
    question.budget = left;
    question.extended = false;
    this.ask(question, now, why);
  }

  private reasons(): string {
    return this.servers
      .map(({ address, why }) => (why === '' ? address.text : `${address.text}: ${why}`))
      .join('; ');
  }
}
