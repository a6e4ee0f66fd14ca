// The middleware: (req, res, next), for Express, and for everything else that has the like.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { inCodeAsking, policyAsking } from './asking.js';
import { addressIn } from './address.js';
import type { Asking, Client } from './client.js';
import type { Decision } from './decision.js';
import { OptionError } from './errors.js';
import { setHeaders, type HeaderChoice, type StandardHeaders } from './headers.js';
import { inspectAddress, inspectConstruction, inspectCount } from './inspections.js';
import {
  checkLimit,
  clientOptionsOf,
  limiterSettings,
  type AnyRequest,
  type Denial,
  type LimiterSettings,
  type Next,
  type WeirOptions,
} from './options.js';
import { clientIp, isPreflight } from './request.js';
import { textOf } from './resp.js';
import { Scopes, type Routed } from './scope.js';
import { shareClient } from './shared-client.js';
import { asText, isPromise, Tellers, type Told } from './told.js';
import { Validations } from './validations.js';

/** What a handler finds under `req.rateLimit`. */
export interface RateLimitInfo extends Decision {
  used: number;
  resetTime: Date;
  /** Whom a limit in code has counted. */
  key: string | null;
}

export interface Limiter {
  (req: IncomingMessage, res: ServerResponse, next: Next): void;
  /** For everything that is not a request: peek, reserve, refund and so on. */
  readonly client: Client;
  /** Ends the connection, unless other limiters share it. */
  readonly close: () => void;
}

/** Options that are asked of each request, where they are functions. */
// prettier-ignore
const PER_REQUEST = [
  'limit', 'key', 'name', 'algorithm', 'rule', 'cost', 'user', 'apiKey', 'org', 'tier', 'ip',
  'standardHeaders', 'legacyHeaders',
];

/** A limiter. Without options it asks the service at 127.0.0.1:6380, or those that WEIR_SERVERS names,
 * what its policy says. */
export function weir<Request extends IncomingMessage = AnyRequest>(
  options: WeirOptions<Request> = {},
): Limiter {
  const limiter = new RequestLimiter(options as WeirOptions<never>);
  return Object.assign(
    (req: IncomingMessage, res: ServerResponse, next: Next) => {
      limiter.handle(req, res, next);
    },
    { client: limiter.client, close: limiter.close },
  );
}

class RequestLimiter {
  readonly client: Client;
  readonly close: () => void;
  private readonly settings: LimiterSettings;
  private readonly tellers: Tellers;
  private readonly scopes = new Scopes();
  private readonly validations: Validations;

  constructor(private readonly options: WeirOptions<never>) {
    if (typeof options !== 'object' || options === null)
      throw new OptionError('options', 'write an object');
    this.settings = limiterSettings(options);
    this.validations = new Validations(options.validate ?? true, options.logger ?? console);
    const { client, release } = options.client
      ? { client: options.client, release: () => undefined }
      : shareClient(clientOptionsOf(options));
    this.client = client;
    this.close = release;
    try {
      if (options.limit === undefined && client.lacksStaticLimit) {
        throw new OptionError(
          'staticLimit',
          "with onFailure: 'static' a policy needs a limit to stand in for it; write one such as '100/min'",
        );
      }
      checkLimit(options, this.settings.windowMs, client.failureMode);
    } catch (error) {
      release();
      throw error;
    }
    const { key = options.keyGenerator } = options;
    this.tellers = new Tellers({ ...options, key }, PER_REQUEST);
    inspectConstruction(this.validations, options, client);
  }

  handle(req: IncomingMessage, res: ServerResponse, next: Next): void {
    if (isPreflight(req)) {
      next();
      return;
    }
    let skipped: unknown;
    try {
      const skip = this.options.skip as unknown;
      skipped =
        typeof skip === 'function' ? (skip as (...args: unknown[]) => unknown)(req, res) : skip;
    } catch (error) {
      next(error);
      return;
    }
    if (isPromise(skipped)) {
      skipped
        .then((value) => {
          if (value) next();
          else this.limit(req, res, next);
        }, next)
        .catch(throwOutside);
    } else if (skipped) {
      next();
    } else {
      this.limit(req, res, next);
    }
  }

  private limit(req: IncomingMessage, res: ServerResponse, next: Next): void {
    let told: Told | Promise<Told>;
    try {
      told = this.tellers.of(req, res);
    } catch (error) {
      next(error);
      return;
    }
    if (isPromise(told)) {
      told.then((values) => this.decide(req, res, next, values), next).catch(throwOutside);
    } else {
      this.decide(req, res, next, told).catch(throwOutside);
    }
  }

  private async decide(
    req: IncomingMessage,
    res: ServerResponse,
    next: Next,
    told: Told,
  ): Promise<void> {
    let asking: Asking;
    try {
      asking = this.askingFor(req, told);
    } catch (error) {
      next(error);
      return;
    }
    const decision = await this.client.ask(asking);
    (req as AnyRequest)[this.settings.property] = infoOf(decision, asking);
    const choice = {
      standard: told['standardHeaders'] as StandardHeaders | undefined,
      legacy: told['legacyHeaders'] as boolean | undefined,
    };
    if (decision.allowed) this.admit(req, res, next, decision, choice);
    else await this.deny(req, res, next, decision, choice);
  }

  private askingFor(req: IncomingMessage, told: Told): Asking {
    const ip =
      typeof told['ip'] === 'string' ? addressIn(told['ip']) : clientIp(req, this.settings.proxy);
    const looked = this.validations.begin();
    if (looked) inspectAddress(this.validations, req, this.settings.proxy, ip, told['ip']);
    const asking = this.settings.inCode
      ? inCodeAsking(
          req,
          ip,
          told,
          this.settings,
          told['name'] === undefined ? this.scopes.of(req as Routed) : asText(told['name']),
        )
      : policyAsking(req, ip, told, this.settings);
    if (looked) inspectCount(this.validations, req, asking, told['rule']);
    return asking;
  }

  private admit(
    req: IncomingMessage,
    res: ServerResponse,
    next: Next,
    decision: Decision,
    choice: HeaderChoice,
  ): void {
    setHeaders(res, decision, choice, false);
    const { reservation, delayMs } = decision;
    if (reservation !== null)
      whenDone(req, res, () => {
        this.client.release(reservation).catch(() => undefined);
      });
    if (delayMs <= 0) {
      next();
      return;
    }
    // In a queue. Those who have gone meanwhile are not waited on.
    const timer = setTimeout(next, delayMs);
    whenDone(req, res, () => {
      clearTimeout(timer);
    });
  }

  private async deny(
    req: IncomingMessage,
    res: ServerResponse,
    next: Next,
    decision: Decision,
    choice: HeaderChoice,
  ): Promise<void> {
    const { handler, message } = this.options;
    const statusCode =
      (decision.status === 429 ? this.settings.statusCode : undefined) ?? decision.status ?? 429;
    const isOwn = handler === undefined && message === undefined;
    setHeaders(res, decision, choice, isOwn);
    if (handler !== undefined) {
      const denial: Denial = { ...decision, statusCode, message: decision.body ?? '' };
      res.statusCode = statusCode;
      try {
        await handler(req as never, res, next, denial);
      } catch (error) {
        next(error);
      }
      return;
    }
    if (res.headersSent) return;
    res.statusCode = statusCode;
    if (isOwn) {
      end(res, decision.body ?? '');
      return;
    }
    try {
      const body: unknown =
        typeof message === 'function'
          ? await (message as (...args: unknown[]) => unknown)(req, res)
          : message;
      // It took its time, or it has answered itself.
      if (res.headersSent) return;
      if (body === undefined) end(res, decision.body ?? '');
      else endWith(res, body);
    } catch (error) {
      next(error);
    }
  }
}

/** Written out, because a spread costs more than all the rest of it. */
function infoOf(decision: Decision, { who }: Asking): RateLimitInfo {
  return {
    allowed: decision.allowed,
    rule: decision.rule,
    limit: decision.limit,
    remaining: decision.remaining,
    cost: decision.cost,
    retryAfterMs: decision.retryAfterMs,
    resetAfterMs: decision.resetAfterMs,
    resetAt: decision.resetAt,
    delayMs: decision.delayMs,
    reason: decision.reason,
    source: decision.source,
    reservation: decision.reservation,
    status: decision.status,
    headers: decision.headers,
    body: decision.body,
    used: Math.max(0, decision.limit - decision.remaining),
    resetTime: new Date(decision.resetAt * 1000),
    key: who === null ? null : textOf(who),
  };
}

/** Those whose response has no socket yet, because an earlier one on the connection is not done. Node.js
 * tells them nothing when that connection goes. */
const queued = new WeakMap<Socket, Set<() => void>>();

/** When the response has been sent, or the client has gone. */
function whenDone(req: IncomingMessage, res: ServerResponse, act: () => void): void {
  // HTTP/2 has a stream for each, and its response does not say that it is destroyed.
  const { stream } = res as { stream?: { destroyed: boolean } };
  if (res.destroyed || req.socket.destroyed || stream?.destroyed === true) {
    act();
  } else if (res.socket === null) {
    const waiting = queuedOn(req.socket);
    const once = (): void => {
      if (waiting.delete(once)) act();
    };
    waiting.add(once);
    res.once('close', once);
  } else {
    res.once('close', act);
  }
}

function queuedOn(socket: Socket): Set<() => void> {
  let waiting = queued.get(socket);
  if (waiting === undefined) {
    const made = new Set<() => void>();
    socket.once('close', () => {
      for (const once of made) once();
    });
    queued.set(socket, made);
    waiting = made;
  }
  return waiting;
}

function endWith(res: ServerResponse, body: unknown): void {
  if (typeof body === 'string') {
    res.setHeader('Content-Type', 'text/plain; charset=utf-8');
    end(res, body);
  } else {
    res.setHeader('Content-Type', 'application/json; charset=utf-8');
    end(res, JSON.stringify(body));
  }
}

function end(res: ServerResponse, body: string): void {
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}

/** What a handler throws behind `next` is not for a promise to swallow: it goes where it would have
 * gone without this middleware. */
function throwOutside(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
