import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Buckets } from '../dist/esm/buckets.js';
import { limitTextOf, parseLimit } from '../dist/esm/limit-text.js';

const MINUTE = 60_000;

test('A bucket gives its burst at once and the rest in time', () => {
  const buckets = new Buckets(1);
  const limit = parseLimit('60/min burst 3');
  for (const remaining of [2, 1, 0]) {
    assert.equal(buckets.take(limit, 'ann', 1, 1000).remaining, remaining);
  }
  const denied = buckets.take(limit, 'ann', 1, 1000);
  assert.deepEqual([denied.allowed, denied.retryAfterMs, denied.reason], [false, 1000, 'limited']);
  assert.equal(buckets.take(limit, 'ann', 1, 1999.999).allowed, false);
  assert.equal(buckets.take(limit, 'ann', 1, 2000).allowed, true);
  assert.equal(buckets.take(limit, 'bob', 1, 2000).remaining, 2);
});

test('A process takes its share, and at least one', () => {
  const buckets = new Buckets(4);
  const limit = parseLimit('8/min burst 9');
  assert.equal(buckets.take(limit, 'ann', 1, 0).limit, 2);
  assert.equal(buckets.take(limit, 'ann', 1, 0).allowed, true);
  assert.equal(buckets.take(limit, 'ann', 1, 0).retryAfterMs, MINUTE / 2);
  assert.equal(buckets.take(parseLimit('1/min'), 'bob', 1, 0).limit, 1);
});

test('What costs more than a bucket holds never fits', () => {
  const decision = new Buckets(1).take(parseLimit('5/min'), 'ann', 6, 0);
  assert.deepEqual(
    [decision.allowed, decision.reason, decision.retryAfterMs],
    [false, 'never_fits', null],
  );
});

test('What a service let through is charged, at most to the brim', () => {
  const buckets = new Buckets(1);
  const limit = parseLimit('3/min');
  buckets.charge(limit, 'ann', 2, 0);
  assert.equal(buckets.take(limit, 'ann', 1, 0).remaining, 0);
  buckets.charge(limit, 'ann', 1000, 0);
  assert.equal(buckets.take(limit, 'ann', 1, MINUTE / 3).allowed, true);
});

test('Of too many keys those that are fresh go first, then the least recently charged', () => {
  const buckets = new Buckets(1, 4);
  const slow = parseLimit('1/h');
  const fast = parseLimit('1/s');
  buckets.take(slow, 'oldest', 1, 0);
  buckets.take(fast, 'fresh soon', 1, 0);
  buckets.take(slow, 'third', 1, 0);
  buckets.take(slow, 'fourth', 1, 0);
  buckets.take(slow, 'fifth', 1, 2000);
  assert.equal(buckets.size, 4);
  assert.equal(buckets.take(slow, 'oldest', 1, 2000).allowed, false);
  buckets.charge(slow, 'oldest', 1, 2000);
  buckets.take(slow, 'sixth', 1, 2000);
  assert.equal(buckets.size, 4);
  assert.equal(buckets.take(slow, 'oldest', 1, 2000).allowed, false);
  assert.equal(buckets.take(slow, 'third', 1, 2000).allowed, true);
});

test('A flood of keys is taken in bounded time', () => {
  const buckets = new Buckets(1);
  const limit = parseLimit('1/h');
  const begin = performance.now();
  for (let at = 0; at < 300_000; at += 1) buckets.take(limit, `key ${at}`, 1, 0);
  assert.equal(buckets.size, 65_536);
  assert.ok(performance.now() - begin < 5000);
});

test('A window and a number become the text of a limit', () => {
  for (const [count, windowMs, text] of [
    [100, 15 * MINUTE, '100/15min'],
    [5, 1000, '5/s'],
    [5, 1500, '5/1500ms'],
    [1000, 86_400_000, '1000/day'],
    [1000, 7 * 86_400_000, '1000/week'],
    [0, 1000, 'deny'],
  ]) {
    assert.equal(limitTextOf(count, windowMs), text);
    parseLimit(text);
  }
});
