// IP addresses in text: read in all the forms that proxies write, written in one.
import { BlockList, isIPv4, isIPv6 } from 'node:net';

import { OptionError } from './errors.js';

const DEFAULT_IPV6_PREFIX = 64;
/** Those who have no address share one key. */
export const UNKNOWN = 'unknown';

/** In its one form, or undefined if it is none: without a zone, lower case, and what is IPv4 within
 * IPv6 (::ffff:192.0.2.1) as IPv4. */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text;
  // What a listener for both families says of most clients.
  if (text.startsWith('::ffff:') && isIPv4(text.slice(7))) return text.slice(7);
  const groups = groupsOf(text);
  if (groups === undefined) return undefined;
  return mappedIpv4(groups) ?? formatIpv6(groups);
}

/** As what an address counts: IPv4 whole, IPv6 by its network, because one client has at least a /64
 * of them. What is no address is `unknown`. */
export function ipKey(ip: string | undefined, ipv6Prefix: number = DEFAULT_IPV6_PREFIX): string {
  if (ip === undefined) return UNKNOWN;
  if (isIPv4(ip)) return ip;
  const groups = groupsOf(ip);
  if (groups === undefined) return UNKNOWN;
  const mapped = mappedIpv4(groups);
  if (mapped !== undefined) return mapped;
  if (ipv6Prefix >= 128) return formatIpv6(groups);
  const masked = groups.map((group, at) => {
    const bits = Math.min(16, Math.max(0, ipv6Prefix - 16 * at));
    return group & ((0xffff << (16 - bits)) & 0xffff);
  });
  return `${formatIpv6(masked)}/${ipv6Prefix}`;
}

/** An element of a forwarding header: an address that may have a port, or undefined. */
export function addressIn(element: string): string | undefined {
  const text = element.trim();
  const bracketed = /^\[([^\]]*)\](?::(?:\d{1,5}|_[\w.-]+))?$/.exec(text);
  if (bracketed !== null) {
    const inner = bracketed[1] ?? '';
    return inner.includes(':') ? canonicalIp(inner) : undefined;
  }
  const colon = text.indexOf(':');
  // More than one is IPv6.
  if (colon > 0 && colon === text.lastIndexOf(':')) {
    return /^(?:\d{1,5}|_[\w.-]+)$/.test(text.slice(colon + 1))
      ? canonicalIp(text.slice(0, colon))
      : undefined;
  }
  return canonicalIp(text);
}

/** Addresses and networks. */
export class Networks {
  private readonly list = new BlockList();

  constructor(texts: readonly string[], option: string) {
    for (const text of texts) this.add(text, option);
  }

  /** An address in its canonical form. */
  has(ip: string): boolean {
    return this.list.check(ip, isIPv4(ip) ? 'ipv4' : 'ipv6');
  }

  private add(text: string, option: string): void {
    const [address = '', prefixText, ...more] = text.trim().split('/');
    const ip = canonicalIp(address);
    const bits = address.includes(':') ? 128 : 32;
    const prefix =
      prefixText === undefined ? bits : /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : -1;
    // A network of mapped addresses is one of IPv4.
    const offset = ip !== undefined && isIPv4(ip) ? bits - 32 : 0;
    if (ip === undefined || more.length > 0 || prefix > bits || prefix < offset) {
      throw new OptionError(
        option,
        `"${text}" is no network; write 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32`,
      );
    }
    this.list.addSubnet(ip, prefix - offset, isIPv4(ip) ? 'ipv4' : 'ipv6');
  }
}

/** The eight of IPv6, or undefined. */
function groupsOf(text: string): number[] | undefined {
  const percent = text.indexOf('%');
  const plain = percent < 0 ? text : text.slice(0, percent);
  if (!isIPv6(plain)) return undefined;
  const [head = '', tail] = plain.split('::');
  const front = groupsIn(head);
  if (tail === undefined) return front;
  const back = groupsIn(tail);
  return [...front, ...new Array<number>(8 - front.length - back.length).fill(0), ...back];
}

function groupsIn(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

function mappedIpv4(groups: readonly number[]): string | undefined {
  const [, , , , , marker, high = 0, low = 0] = groups;
  if (marker !== 0xffff || groups.slice(0, 5).some((group) => group !== 0)) return undefined;
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** As RFC 5952 says. */
function formatIpv6(groups: readonly number[]): string {
  let best = 0;
  let bestLength = 1;
  for (let at = 0; at < 8; at += 1) {
    let end = at;
    while (end < 8 && groups[end] === 0) end += 1;
    if (end - at > bestLength) {
      best = at;
      bestLength = end - at;
    }
    at = Math.max(at, end);
  }
  const words = groups.map((group) => group.toString(16));
  if (bestLength < 2) return words.join(':');
  return `${words.slice(0, best).join(':')}::${words.slice(best + bestLength).join(':')}`;
}
