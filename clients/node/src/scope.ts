// What a limit in code is counted under, unless it has a name: the route. Express tells the pattern of
// a route, but of where its router is mounted only the text that matched. A part of that which differs
// between requests is a parameter, and must not make a scope of its own for every value.
const MAX_DEPTH = 16;
/** Numbers and long hexadecimal ones are parameters at first sight. */
const ID = /^(?:\d+|[0-9a-f-]{16,})$/;

/** As much of a request as it takes; all of it is Express's. */
export interface Routed {
  baseUrl?: unknown;
  route?: unknown;
}

interface Route {
  path?: unknown;
  methods?: Readonly<Record<string, boolean>>;
}

export class Scopes {
  private readonly byRoute = new WeakMap<object, Place>();
  private readonly unrouted = new Place('');

  of({ baseUrl, route }: Routed): string {
    const base = typeof baseUrl === 'string' ? baseUrl : '';
    if (typeof route !== 'object' || route === null) return this.unrouted.under(base);
    let place = this.byRoute.get(route);
    if (place === undefined) {
      place = new Place(pathOf(route), methodsOf(route));
      this.byRoute.set(route, place);
    }
    return place.under(base);
  }
}

class Place {
  private base: string | undefined;
  private scope = '';
  /** By the number of segments. */
  private readonly patterns = new Map<number, string[]>();

  constructor(
    private readonly path: string,
    private readonly methods = '',
  ) {}

  under(base: string): string {
    if (base !== this.base) {
      this.base = base;
      this.scope = `${this.methods}${this.generalized(base)}${this.path}` || '/';
    }
    return this.scope;
  }

  private generalized(base: string): string {
    const segments = base.toLowerCase().split('/');
    if (segments.length > MAX_DEPTH) return '/**';
    const before = this.patterns.get(segments.length);
    const pattern = segments.map((segment, at) =>
      ID.test(segment) || (before !== undefined && before[at] !== segment) ? '*' : segment,
    );
    this.patterns.set(segments.length, pattern);
    return pattern.join('/');
  }
}

/** A text, an expression, or a list of them. */
function pathOf({ path = '' }: Route): string {
  return String(path as string | RegExp);
}

function methodsOf({ methods = {} }: Route): string {
  const names = Object.keys(methods).filter((name) => methods[name] === true && name !== '_all');
  return names.length === 0 ? '' : `${names.sort().join(',').toUpperCase()} `;
}
