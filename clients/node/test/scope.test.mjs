import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Scopes } from '../dist/esm/scope.js';

const route = (path, ...methods) => ({
  path,
  methods: Object.fromEntries(methods.map((name) => [name, true])),
});

test('A scope is the route, with its methods and where it is mounted', () => {
  const scopes = new Scopes();
  assert.equal(scopes.of({}), '/');
  assert.equal(scopes.of({ baseUrl: '' }), '/');
  assert.equal(scopes.of({ baseUrl: '/api' }), '/api');
  assert.equal(
    scopes.of({ baseUrl: '/api', route: route('/orders/:id', 'post', 'get') }),
    'GET,POST /api/orders/:id',
  );
  assert.equal(scopes.of({ baseUrl: '', route: route('/orders', '_all') }), '/orders');
  assert.equal(scopes.of({ baseUrl: '', route: route(/^\/x/, 'get') }), 'GET /^\\/x/');
});

test('Parameters of a mount make no scopes of their own', () => {
  const scopes = new Scopes();
  const list = route('/list', 'get');
  assert.equal(scopes.of({ baseUrl: '/users/42', route: list }), 'GET /users/*/list');
  scopes.of({ baseUrl: '/users/ann', route: list });
  for (const name of ['bob', 'Carl', 'users', '*']) {
    assert.equal(scopes.of({ baseUrl: `/users/${name}`, route: list }), 'GET /users/*/list');
  }
  const seen = new Set();
  const one = new Scopes();
  for (let at = 0; at < 1000; at += 1) seen.add(one.of({ baseUrl: `/t/x${at}`, route: list }));
  assert.deepEqual([...seen], ['GET /t/x0/list', 'GET /t/*/list']);
});

test('The case that a client writes a mount in makes no difference', () => {
  const scopes = new Scopes();
  assert.equal(scopes.of({ baseUrl: '/API' }), '/api');
  assert.equal(scopes.of({ baseUrl: '/aPi' }), '/api');
});

test('A mount of any depth has one scope', () => {
  assert.equal(new Scopes().of({ baseUrl: '/a'.repeat(40) }), '/**');
});
