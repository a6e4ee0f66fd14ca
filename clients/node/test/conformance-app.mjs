// The application that the conformance lists talk to over HTTP, with Express.
import { createServer } from 'node:http';

import express from 'express';

import { weir } from '../dist/esm/index.js';

const fromHeader = (name) => (name === undefined ? undefined : (req) => req.headers[name]);

export function driverApp(clientOptions, middleware) {
  const { user, tier, api_key, cost, headers, limit, key, exempt, trusted_proxies, hops } =
    middleware;
  const limiter = weir({
    ...clientOptions,
    user: fromHeader(user),
    tier: fromHeader(tier),
    apiKey: fromHeader(api_key),
    cost:
      cost && ((req) => (req.headers[cost] === undefined ? undefined : Number(req.headers[cost]))),
    headers,
    limit,
    key: fromHeader(key),
    skip: exempt && ((req) => req.path === exempt),
    ...(middleware.rate_limit_headers === false && {
      standardHeaders: false,
      legacyHeaders: false,
    }),
  });
  const app = express();
  if (trusted_proxies !== undefined) app.set('trust proxy', trusted_proxies);
  if (hops !== undefined) app.set('trust proxy', hops);
  app.use(limiter);
  app.all('/status/:code', (req, res) => res.status(Number(req.params.code)).send('hello'));
  app.all('/boom', () => {
    throw new Error('boom');
  });
  app.all('/slow', (req, res) => setTimeout(() => res.send('hello'), Number(req.query.ms)));
  app.all('/own-headers', (req, res) => res.set('RateLimit', '"mine";r=1;t=1').send('hello'));
  app.all('/client', (req, res) => res.json(req.rateLimit));
  app.use((req, res) => res.send('hello'));
  app.use((error, req, res, _next) => {
    res.status(500).send(error.message);
  });
  return { server: createServer(app), limiter };
}
