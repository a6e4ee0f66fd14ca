import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  bytesOf,
  encodeCommand,
  ErrorReply,
  NonsenseError,
  ReplyReader,
  textOf,
} from '../dist/esm/resp.js';
import { decisionOf } from '../dist/esm/decision.js';

function replies(chunks) {
  const got = [];
  const reader = new ReplyReader((reply) => got.push(reply));
  for (const chunk of chunks) reader.push(Buffer.from(chunk, 'latin1'));
  return got;
}

const SEVERAL =
  '+PONG\r\n*4\r\n$7\r\nallowed\r\n:1\r\n$4\r\nbody\r\n$5\r\na\r\nbc\r\n-ERR no\r\n$-1\r\n*0\r\n:-42\r\n$0\r\n\r\n*-1\r\n';
const READ = [
  'PONG',
  ['allowed', 1, 'body', 'a\r\nbc'],
  new ErrorReply('ERR no'),
  null,
  [],
  -42,
  '',
  null,
];

test('Replies are the same however they are cut', () => {
  assert.deepEqual(replies([SEVERAL]), READ);
  assert.deepEqual(replies([...SEVERAL]), READ);
  for (let at = 1; at < SEVERAL.length; at += 1) {
    assert.deepEqual(replies([SEVERAL.slice(0, at), SEVERAL.slice(at)]), READ);
  }
});

test('What is no RESP, too large or too deep is refused', () => {
  for (const text of [
    'HTTP/1.1 400 Bad Request\r\n',
    '*2000000000\r\n',
    '*-7\r\n',
    '$999999999999\r\n',
    '$70000\r\n',
    '*1\r\n*1\r\n',
    '*1\r\n-ERR x\r\n',
    ':1x\r\n',
    ':\r\n',
    ':99999999999999999999\r\n',
    '$3\r\nabcdef\r\n',
    `+${'x'.repeat(100_000)}`,
    `*1000\r\n${`$1000\r\n${'x'.repeat(1000)}\r\n`.repeat(70)}`,
  ]) {
    assert.throws(() => replies([text]), NonsenseError, text.slice(0, 40));
  }
});

test('Random bytes are replies or refused, never anything else', () => {
  const seed = Date.now() % 1_000_000;
  let state = seed;
  const random = (bound) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % bound;
  };
  const alphabet = '*$+-:\r\n0123456789abc';
  for (let round = 0; round < 3000; round += 1) {
    let text = '';
    for (let left = random(40); left > 0; left -= 1) text += alphabet[random(alphabet.length)];
    try {
      replies([text]);
    } catch (error) {
      assert.ok(
        error instanceof NonsenseError,
        `seed ${seed}: ${JSON.stringify(text)}: ${error.stack}`,
      );
    }
  }
});

test('Text becomes bytes and bytes text', () => {
  assert.equal(bytesOf('ann'), 'ann');
  assert.equal(bytesOf('é雨'), '\xc3\xa9\xe9\x9b\xa8');
  assert.equal(textOf(bytesOf('Zoë 雨 🙂')), 'Zoë 雨 🙂');
  assert.equal(encodeCommand(['A', bytesOf('é')]), '*2\r\n$1\r\nA\r\n$2\r\n\xc3\xa9\r\n');
});

test('A decision needs to say whether, and may say more than is known', () => {
  assert.equal(decisionOf(['rule', 'x']), undefined);
  assert.equal(decisionOf(['allowed', 1, 'rule']), undefined);
  assert.equal(decisionOf(['allowed', 2]), undefined);
  assert.equal(decisionOf('PONG'), undefined);
  assert.equal(decisionOf(null), undefined);
  const decision = decisionOf([
    'allowed',
    0,
    'future',
    'x',
    'retry_after_ms',
    null,
    'status',
    99,
    'rule',
    '',
  ]);
  assert.equal(decision.allowed, false);
  assert.equal(decision.retryAfterMs, null);
  assert.equal(decision.status, null);
  assert.equal(decision.rule, null);
});

test('Header lines are cut into names and values', () => {
  const { headers } = decisionOf([
    'allowed',
    1,
    'status',
    200,
    'headers',
    'A: 1\r\nB: "x";r=1: 2\r\n',
    'body',
    '',
  ]);
  assert.deepEqual(headers, [
    ['A', '1'],
    ['B', '"x";r=1: 2'],
  ]);
});
