// express-idempotency behind the routes that the conformance suite drives, in
// memory, or with its redis adapter: node server.js redis.
'use strict';
const express = require('express');
const { idempotency, getSharedIdempotencyService } = require('express-idempotency');

let total = 0;
const byReference = new Map();
function effect(reference) {
  total += 1;
  byReference.set(reference, (byReference.get(reference) || 0) + 1);
  return total;
}

const app = express();
app.get('/_effects', (req, res) => res.json({ count: byReference.get(req.query.ref) || 0, total }));
app.use(express.json({ limit: '1mb' }));
const middleware = new Promise((ready) => {
  if (!process.argv.includes('redis')) { ready(idempotency()); return; }
  const RedisAdapter = require('express-idempotency-redis-adapter').default;
  const { redis } = require('../service.js');
  redis(require('@redis/client').createClient).then((client) => ready(idempotency({ dataAdapter: new RedisAdapter({ connectionInstance: client }) })));
});
app.post('*', (req, res, next) => middleware.then((handle) => handle(req, res, next))); // as its README has it; its handlers ask isHit

function create(kind) {
  return async (req, res, next) => {
    if (getSharedIdempotencyService().isHit(req)) return;
    if (req.query.sleep) await new Promise((go) => setTimeout(go, Number(req.query.sleep)));
    if (req.query.empty) { effect(req.body.reference); res.status(204).end(); return; }
    if (req.query.crash) { effect(''); next(new Error('this crash was asked for')); return; }
    if (req.query.fail) { res.status(Number(req.query.fail)).json({ error: 'asked for', number: effect('') }); return; }
    const id = `${kind}_${effect(req.body.reference)}`;
    res.status(201).location(`/${kind}/${id}`).cookie('visit', `visit-of-${id}`).json({ id, reference: req.body.reference });
  };
}
app.post('/payments', create('payments'));
app.post('/refunds', create('refunds'));
app.post('/payments/:id/cancel', (req, res) => {
  if (getSharedIdempotencyService().isHit(req)) return;
  res.json({ id: req.params.id, status: 'cancelled', number: effect('cancel') });
});
require('../service.js').listen(app);
