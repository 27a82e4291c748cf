// Lifts fields of JSON payloads into user headers, so that guests and consumers downstream need not parse payloads.
// It implements world `transform` of ../../wit.

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

let settings;

export const messageHandler = {
  start(_source, config) {
    settings = parse(JSON.parse(config));
    return { payloads: true, headers: false };
  },

  handle(message) {
    let body;
    try {
      body = JSON.parse(decoder.decode(message.payload));
    } catch (error) {
      return incomplete(`the payload is not JSON: ${error.message}`);
    }
    const changes = [];
    for (const { header, path, keys } of settings.headers) {
      const value = keys.reduce(member, body);
      const field = toField(value);
      if (field !== undefined) {
        changes.push({ tag: 'set', val: { key: { tag: 'text', val: header }, value: field } });
      } else if (settings.missing === 'reject') {
        return incomplete(`${path}: ${why(value)}`);
      }
    }
    if (changes.length === 0) {
      return { tag: 'forward' };
    }
    return { tag: 'rewrite', val: { routes: [], headers: changes, payload: undefined } };
  },
};

// The settings from the `config` table. What is thrown is the error of `start`: text for the operator.
function parse(config) {
  for (const key of Object.keys(config)) {
    if (key !== 'headers' && key !== 'missing') {
      throw `config: unknown key ${key}; there are headers and missing`;
    }
  }
  const { headers, missing = 'skip' } = config;
  if (missing !== 'skip' && missing !== 'reject') {
    throw `config.missing: is ${JSON.stringify(missing)}; it can be "skip" or "reject"`;
  }
  if (typeof headers !== 'object' || headers === null || Object.keys(headers).length === 0) {
    throw 'config.headers: give at least one header and the path of its field';
  }
  return { missing, headers: Object.entries(headers).map(entry) };
}

function entry([header, path]) {
  if (!fits(header)) {
    throw `config.headers.${header}: the key of a header has 1 to 255 bytes`;
  }
  if (typeof path !== 'string' || path.split('.').includes('')) {
    throw `config.headers.${header}: is ${JSON.stringify(path)}, not keys with dots between them`;
  }
  return { header, path, keys: path.split('.') };
}

function member(value, key) {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? value[key] : undefined;
}

// The value as a header's, or undefined where a header cannot hold it.
function toField(value) {
  switch (typeof value) {
    case 'string':
      return fits(value) ? { tag: 'text', val: value } : undefined;
    case 'boolean':
      return { tag: 'boolean', val: value };
    case 'number':
      if (Number.isSafeInteger(value)) {
        return { tag: 'int64', val: BigInt(value) };
      }
      // An integer beyond 2^53 has already lost digits.
      return Number.isInteger(value) ? undefined : { tag: 'float64', val: value };
    default:
      return undefined;
  }
}

function why(value) {
  switch (typeof value) {
    case 'undefined':
      return 'is missing';
    case 'string':
      return 'does not have the 1 to 255 bytes of a header';
    case 'number':
      return 'is an integer beyond 2^53';
    default:
      return 'is no text, number or boolean';
  }
}

function fits(text) {
  const { length } = encoder.encode(text);
  return length >= 1 && length <= 255;
}

function incomplete(reason) {
  return settings.missing === 'reject' ? { tag: 'reject', val: reason } : { tag: 'forward' };
}
