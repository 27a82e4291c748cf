// Keeps the messages whose header `region` is the configured one. It implements world `transform` of the contract in wit.

let settings;

export const messageHandler = {
  // What is thrown is shown to the operator, and the guest is not used.
  start(_source, config) {
    const { keep, ...others } = JSON.parse(config);
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      throw `config: unknown key ${unknown}; there is keep`;
    }
    if (typeof keep !== 'string') {
      throw 'config.keep: give the region to keep, as text';
    }
    settings = { keep };
    return { payloads: false, headers: true };
  },

  handle(message) {
    const header = message.headers.find(({ key }) => key.tag === 'text' && key.val === 'region');
    const kept = header?.value.tag === 'text' && header.value.val === settings.keep;
    return { tag: kept ? 'forward' : 'drop' };
  },
};
