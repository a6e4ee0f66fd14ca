// What is known of a request by itself: where it comes from and what it asks for.
import type { IncomingMessage } from 'node:http';

import { addressIn, canonicalIp, type Networks } from './address.js';
import { clientBehind, clientByHops, type ProxyHeader, type Trust } from './client-ip.js';

/** Of Express, where there is one. */
export interface Enriched {
  app?: unknown;
  originalUrl?: unknown;
}

export interface ProxySettings {
  readonly trusted: Networks | undefined;
  readonly hops: number | undefined;
  readonly header: ProxyHeader;
}

/** Who is believed about where requests come from. */
export type Believed =
  | { readonly kind: 'trust'; readonly trust: Trust }
  | { readonly kind: 'hops'; readonly hops: number }
  | { readonly kind: 'nobody' };

const NOBODY: Believed = { kind: 'nobody' };

/** What was said in the options, or else to Express. */
export function believedBy(req: IncomingMessage, { trusted, hops }: ProxySettings): Believed {
  if (trusted !== undefined) return { kind: 'trust', trust: (ip) => trusted.has(ip) };
  if (hops !== undefined) return { kind: 'hops', hops };
  const setting = expressSetting(req, 'trust proxy');
  if (setting === undefined || setting === false) return NOBODY;
  // Express takes the leftmost entry if there are fewer than proxies; that one could be forged.
  if (typeof setting === 'number') return { kind: 'hops', hops: setting };
  const trust = expressSetting(req, 'trust proxy fn');
  return typeof trust === 'function' ? { kind: 'trust', trust: trust as Trust } : NOBODY;
}

export function expressSetting(req: IncomingMessage, name: string): unknown {
  const { app } = req as Enriched;
  if (typeof app !== 'function') return undefined;
  const { get } = app as { get?: unknown };
  return typeof get === 'function' ? (get.call(app, name) as unknown) : undefined;
}

/** The client's address, in its one form. */
export function clientIp(req: IncomingMessage, settings: ProxySettings): string | undefined {
  // Whoever sets req.ip by themselves has thought about it; that of Express is on its prototype.
  if (Object.prototype.hasOwnProperty.call(req, 'ip')) {
    const { ip } = req as { ip?: unknown };
    if (typeof ip === 'string') return addressIn(ip);
  }
  const peer = req.socket.remoteAddress;
  const header = req.headers[settings.header];
  if (header === undefined) return peer === undefined ? undefined : canonicalIp(peer);
  const joined = typeof header === 'string' ? header : header.join(',');
  const believed = believedBy(req, settings);
  switch (believed.kind) {
    case 'trust':
      return clientBehind(peer, joined, settings.header, believed.trust);
    case 'hops':
      return clientByHops(peer, joined, settings.header, believed.hops);
    case 'nobody':
      return peer === undefined ? undefined : canonicalIp(peer);
  }
}

/** The path without the query; within a router of Express all of it. */
export function pathOf(req: IncomingMessage): string {
  const { originalUrl } = req as Enriched;
  const url = typeof originalUrl === 'string' ? originalUrl : (req.url ?? '');
  const query = url.indexOf('?');
  const path = query < 0 ? url : url.slice(0, query);
  return path.startsWith('/') ? path : withoutOrigin(path);
}

/** `http://shop.example/orders`, as a proxy is asked. */
function withoutOrigin(url: string): string {
  const scheme = url.indexOf('://');
  if (scheme < 0) return url;
  const slash = url.indexOf('/', scheme + 3);
  return slash < 0 ? '/' : url.slice(slash);
}

/** A browser sends it by itself, before the request that it was told to make. */
export function isPreflight(req: IncomingMessage): boolean {
  return (
    req.method === 'OPTIONS' &&
    req.headers.origin !== undefined &&
    req.headers['access-control-request-method'] !== undefined
  );
}
