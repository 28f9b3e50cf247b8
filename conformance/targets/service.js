// What the targets in JavaScript share: the effects of the business and their
// counter, the business itself, and an end that leaves nothing behind.
'use strict';
const { randomBytes } = require('node:crypto');

let total = 0;
const byReference = new Map();
function effect(reference) {
  total += 1;
  byReference.set(reference, (byReference.get(reference) || 0) + 1);
  return total;
}

exports.count = (req, res) => res.json({ count: byReference.get(req.query.ref) || 0, total });

// act does the work of one operation as the query says, and gives its status,
// headers and body. A crash and a failure have an effect that is counted in total
// alone.
exports.act = async (kind, query, body) => {
  if (query.sleep) await new Promise((go) => setTimeout(go, Number(query.sleep)));
  if (query.crash) { effect(''); throw new Error('this crash was asked for'); }
  if (query.fail) return { status: Number(query.fail), headers: {}, body: { error: 'asked for', number: effect('') } };
  const reference = (body && body.reference) || kind;
  const id = `${kind}_${effect(reference)}`;
  return { status: 201, headers: { location: `/${kind}/${id}`, 'set-cookie': `visit=visit-of-${id}` }, body: { id, reference } };
};

const [host, port] = (process.env.ADDR || '127.0.0.1:0').split(':');
const closers = [];

// atEnd names what has to be removed when the target is told to stop.
exports.atEnd = (close) => closers.push(close);

exports.listen = (app) => {
  const server = app.listen(Number(port), host, () => console.log(`listening on http://${host}:${server.address().port}`));
  const end = async () => {
    try { for (const close of closers) await close(); } finally { process.exit(0); }
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
};

// redis connects with a prefix of this process before every key, under the names
// of node-redis, and removes those keys in the end.
exports.redis = async (createClient) => {
  const client = createClient({ url: 'redis://127.0.0.1:6379' });
  await client.connect();
  const prefix = `once_target_${randomBytes(6).toString('hex')}:`;
  const spell = (key) => (Array.isArray(key) ? key.map((one) => prefix + one) : prefix + key);
  exports.atEnd(async () => {
    for await (const found of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 1000 })) await client.del(found);
    await client.quit();
  });
  return new Proxy(client, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== 'function') return value;
      if (!['get', 'set', 'del', 'expire', 'exists'].includes(name)) return value.bind(target);
      return (key, ...rest) => value.call(target, spell(key), ...rest);
    },
  });
};
