import assert from 'node:assert/strict';
import test from 'node:test';

import { messageHandler } from './guest.js';

const text = (val) => ({ tag: 'text', val });

function verdict(headers) {
  messageHandler.start({}, '{"keep":"eu"}');
  return messageHandler.handle({ headers }).tag;
}

test('one region is kept', () => {
  assert.equal(verdict([{ key: text('region'), value: text('eu') }]), 'forward');
  assert.equal(verdict([{ key: text('region'), value: text('us') }]), 'drop');
  assert.equal(verdict([{ key: text('region'), value: { tag: 'uint32', val: 1 } }]), 'drop');
  assert.equal(verdict([]), 'drop');
});

test('a wrong key is named', () => {
  assert.throws(
    () => messageHandler.start({}, '{"kep":"eu"}'),
    (error) => error === 'config: unknown key kep; there is keep',
  );
});
