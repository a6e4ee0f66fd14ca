// A request as a question to the service: what is known of it, on the wire.
import type { IncomingMessage } from 'node:http';

import { ipKey } from './address.js';
import {
  HTTP_WORDS,
  identityBytes,
  limitAsking,
  textBytes,
  wholeCost,
  type Asking,
} from './client.js';
import type { HttpForm } from './denial.js';
import { limitTextOf } from './limit-text.js';
import type { LimiterSettings } from './options.js';
import { pathOf } from './request.js';
import { bulk, bytesOf } from './resp.js';
import { asText, type Told } from './told.js';

const IP = '$2\r\nip\r\n';
const METHOD = '$6\r\nmethod\r\n';
const PATH = '$4\r\npath\r\n';
const HOST = '$4\r\nhost\r\n';
const COST = '$5\r\n@cost\r\n';
const EVERY_RULE = '$1\r\n*\r\n';
const IDENTITIES = [
  ['apiKey', 'api_key', '$7\r\napi_key\r\n'],
  ['user', 'user', '$4\r\nuser\r\n'],
  ['org', 'org', '$3\r\norg\r\n'],
  ['tier', 'tier', '$4\r\ntier\r\n'],
] as const;

/** The rules of the policy shall decide. */
export function policyAsking(
  req: IncomingMessage,
  ip: string | undefined,
  told: Told,
  settings: LimiterSettings,
): Asking {
  const http = formFor(req);
  let count = 4;
  let words = `$10\r\nWEIR.CHECK\r\n${told['rule'] === undefined ? EVERY_RULE : bulk(bytesOf(asText(told['rule'])))}`;
  let key = '';
  const add = (name: string, value: string): void => {
    count += 2;
    words += name + bulk(value);
  };
  for (const [option, attribute, name] of IDENTITIES) {
    const value = identityOf(told[option]);
    if (value === undefined) continue;
    add(name, value);
    if (key === '' && (attribute === 'api_key' || attribute === 'user'))
      key = `${attribute}=${value}`;
  }
  if (ip !== undefined) {
    add(IP, ip);
    if (key === '') key = `ip=${ipKey(ip, settings.ipv6Prefix)}`;
  }
  if (req.method !== undefined) add(METHOD, req.method);
  const path = pathOf(req);
  if (path !== '') add(PATH, textBytes(path));
  const host = req.headers.host ?? (req.headers[':authority'] as string | undefined);
  if (host !== undefined && host !== '') add(HOST, textBytes(host));
  for (const { name, attribute } of settings.headers) {
    const value = req.headers[name];
    if (value === undefined || value.length === 0) continue;
    // What Node.js gives is bytes already.
    add(bulk(attribute), textBytes(typeof value === 'string' ? value : value.join(', ')));
  }
  const cost = wholeCost(told['cost']);
  if (cost !== 1) add(COST, String(cost));
  return {
    command: `*${count}\r\n${words}${HTTP_WORDS[http]}`,
    key,
    limit: undefined,
    cost,
    http,
    who: null,
    takes: true,
  };
}

/** A limit in code shall. */
export function inCodeAsking(
  req: IncomingMessage,
  ip: string | undefined,
  told: Told,
  settings: LimiterSettings,
  scope: string,
): Asking {
  const { limit, algorithm, cost } = told;
  const key = identityOf(told['key']) ?? ipKey(ip, settings.ipv6Prefix);
  const text = typeof limit === 'number' ? limitTextOf(limit, settings.windowMs) : asText(limit);
  return limitAsking(`${bytesOf(scope)}|`, key, text, {
    algorithm: algorithm === undefined ? undefined : asText(algorithm),
    cost: cost as number | undefined,
    http: formFor(req),
  });
}

function formFor(req: IncomingMessage): HttpForm {
  return req.headers.accept?.includes('application/problem+json') === true ? 'problem' : 'json';
}

/** As bytes. Objects are nobody: all of them would be the same text. */
function identityOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : identityBytes(value);
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined;
}
