import assert from 'node:assert/strict';
import test from 'node:test';

import { messageHandler } from './guest.js';

const encoder = new TextEncoder();

function verdict(config, payload) {
  messageHandler.start({}, JSON.stringify(config));
  return messageHandler.handle({ payload: encoder.encode(payload) });
}

function headers(config, payload) {
  const { tag, val } = verdict(config, payload);
  assert.equal(tag, 'rewrite');
  assert.deepEqual(val.routes, []);
  assert.equal(val.payload, undefined);
  return val.headers.map((change) => [change.val.key.val, change.val.value]);
}

test('fields become headers of their kind', () => {
  const config = { headers: { who: 'customer.id', total: 'total', paid: 'paid', items: 'items.length' } };
  const payload = '{"customer":{"id":"c-1"},"total":12.5,"paid":true,"items":{"length":3}}';
  assert.deepEqual(headers(config, payload), [
    ['who', { tag: 'text', val: 'c-1' }],
    ['total', { tag: 'float64', val: 12.5 }],
    ['paid', { tag: 'boolean', val: true }],
    ['items', { tag: 'int64', val: 3n }],
  ]);
});

test('what a header cannot hold is skipped or rejected', () => {
  for (const [payload, reason] of [
    ['{}', 'a: is missing'],
    ['[]', 'a: is missing'],
    ['{"a":null}', 'a: is no text, number or boolean'],
    ['{"a":""}', 'a: does not have the 1 to 255 bytes of a header'],
    [`{"a":"${'é'.repeat(128)}"}`, 'a: does not have the 1 to 255 bytes of a header'],
    ['{"a":9007199254740993}', 'a: is an integer beyond 2^53'],
  ]) {
    assert.deepEqual(verdict({ headers: { h: 'a' } }, payload), { tag: 'forward' });
    assert.deepEqual(verdict({ headers: { h: 'a' }, missing: 'reject' }, payload), { tag: 'reject', val: reason });
  }
  const some = headers({ headers: { h: 'a', i: 'b' } }, '{"b":1}');
  assert.deepEqual(some, [['i', { tag: 'int64', val: 1n }]]);
});

test('members of the prototype are no fields', () => {
  assert.deepEqual(verdict({ headers: { h: 'constructor.name' } }, '{}'), { tag: 'forward' });
});

test('what is not JSON is forwarded or rejected', () => {
  assert.deepEqual(verdict({ headers: { h: 'a' } }, 'plain'), { tag: 'forward' });
  const { tag, val } = verdict({ headers: { h: 'a' }, missing: 'reject' }, 'plain');
  assert.equal(tag, 'reject');
  assert.match(val, /^the payload is not JSON: /);
});

test('errors name the key', () => {
  for (const [config, expected] of [
    [{}, /^config.headers: /],
    [{ headers: {} }, /^config.headers: /],
    [{ headers: { a: 1 } }, /^config.headers.a: is 1/],
    [{ headers: { a: 'b..c' } }, /^config.headers.a: /],
    [{ headers: { '': 'b' } }, /1 to 255 bytes/],
    [{ headers: { a: 'b' }, missing: 'drop' }, /^config.missing: is "drop"/],
    [{ headders: { a: 'b' } }, /unknown key headders/],
  ]) {
    assert.throws(
      () => messageHandler.start({}, JSON.stringify(config)),
      (error) => expected.test(error),
    );
  }
});
