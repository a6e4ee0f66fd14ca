// Who is connected, and who that speaks for. A header is believed only as far as those who wrote it
// are; of what is left of that, everything could be forged.
import { addressIn, canonicalIp } from './address.js';

export type ProxyHeader = 'x-forwarded-for' | 'forwarded';

/** Whether an address, so many steps from this process, is one of our proxies. */
export type Trust = (ip: string, step: number) => boolean;

/** The rightmost address that is not one of ours; the peer, if that is not. What does not parse is
 * never skipped: whoever stands before it is not known. */
export function clientBehind(
  peer: string | undefined,
  header: string | undefined,
  kind: ProxyHeader,
  trust: Trust,
): string | undefined {
  let client = peer === undefined ? undefined : canonicalIp(peer);
  if (client === undefined || header === undefined || !trust(client, 0)) return client;
  const elements = elementsOf(header, kind);
  for (let at = elements.length - 1; at >= 0; at -= 1) {
    const next = elements[at];
    if (next === undefined) return client;
    client = next;
    if (!trust(client, elements.length - at)) return client;
  }
  return client;
}

/** The one that the outermost of so many proxies saw. Fewer entries than proxies were not written by
 * them. */
export function clientByHops(
  peer: string | undefined,
  header: string | undefined,
  kind: ProxyHeader,
  hops: number,
): string | undefined {
  const elements = header === undefined ? [] : elementsOf(header, kind);
  return elements[elements.length - hops] ?? (peer === undefined ? undefined : canonicalIp(peer));
}

/** Undefined for what is no address. */
function elementsOf(header: string, kind: ProxyHeader): (string | undefined)[] {
  if (kind === 'x-forwarded-for') return header.split(',').map(addressIn);
  return splitUnquoted(header, ',').map(forwardedFor);
}

const PAIR = /^\s*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*$/;

/** RFC 7239: `for=192.0.2.60;proto=http;by=203.0.113.43`, or `for="[2001:db8::17]:4711"`. Nothing in
 * it may be malformed: a quote that a client leaves open makes what a proxy appends a part of the
 * client's own element. */
function forwardedFor(element: string): string | undefined {
  let found: string | undefined;
  for (const text of splitUnquoted(element, ';')) {
    const pair = PAIR.exec(text);
    if (pair === null) return undefined;
    const [, name = '', quoted, token] = pair;
    if (name.toLowerCase() !== 'for') continue;
    if (found !== undefined) return undefined;
    found = quoted?.replace(/\\(.)/g, '$1') ?? token ?? '';
  }
  return found === undefined ? undefined : addressIn(found);
}

function splitUnquoted(text: string, separator: string): string[] {
  const parts: string[] = [];
  let begin = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '\\' && quoted) at += 1;
    else if (character === '"') quoted = !quoted;
    else if (character === separator && !quoted) {
      parts.push(text.slice(begin, at));
      begin = at + 1;
    }
  }
  parts.push(text.slice(begin));
  return parts;
}
