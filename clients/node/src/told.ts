// Options that may be functions of the request: those that are not are taken as they are, and nothing
// waits unless one of them does.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The values of one request, by option. */
export type Told = Readonly<Record<string, unknown>>;

type Asked = (req: IncomingMessage, res: ServerResponse) => unknown;

export class Tellers {
  private readonly fixed: Told;
  private readonly functions: [name: string, ask: Asked][] = [];

  constructor(options: object, names: readonly string[]) {
    const fixed: Record<string, unknown> = {};
    for (const name of names) {
      const value = (options as Record<string, unknown>)[name];
      if (typeof value === 'function') this.functions.push([name, value as Asked]);
      fixed[name] = typeof value === 'function' ? undefined : (value ?? undefined);
    }
    this.fixed = fixed;
  }

  of(req: IncomingMessage, res: ServerResponse): Told | Promise<Told> {
    if (this.functions.length === 0) return this.fixed;
    const told: Record<string, unknown> = { ...this.fixed };
    let isAsync = false;
    try {
      for (const [name, ask] of this.functions) {
        const value = ask(req, res);
        isAsync ||= isPromise(value);
        // Nothing is nothing, however it is written.
        told[name] = value ?? undefined;
      }
    } catch (error) {
      // Those that were asked before it may fail, too, and nobody would hear of it.
      if (isAsync) settled(told).catch(() => undefined);
      throw error;
    }
    return isAsync ? settled(told) : told;
  }
}

async function settled(told: Record<string, unknown>): Promise<Told> {
  const names = Object.keys(told);
  // All at once, so that none that fails is left without anybody to hear of it.
  const values = await Promise.all(names.map((name) => told[name]));
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? undefined]));
}

/** What a function has told, where a text is wanted. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
