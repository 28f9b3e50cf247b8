// The Express middleware over Redis that tutorials show, behind the routes that
// the conformance suite drives; with its smallest repair: node server.js repaired.
//
// As taught: the id is METHOD:path:key; GET, then SET NX for 60 s; what res.json is
// given is stored for 24 h when the answer has been sent ('finish'), if its status
// is 200 to 499; a 5xx deletes the lock.
//
// Repair: the lock is taken first and with a token; the caller is a part of the id,
// and a hash of the body's bytes is compared; the answer is stored, with its headers,
// before it is sent and whoever is still there to read it; 429 and 5xx are not.
'use strict';
const { createHash, randomUUID } = require('node:crypto');
const express = require('express');
const { createClient } = require('@redis/client');
const { act, count, listen, redis } = require('../service.js');

const protectedMethods = ['POST', 'PUT', 'PATCH'];

function taught(client) {
  return async (req, res, next) => {
    const key = req.get('idempotency-key');
    if (!protectedMethods.includes(req.method) || !key) { next(); return; }
    const id = `${req.method}:${req.path}:${key}`;
    const found = JSON.parse((await client.get(id)) || 'null');
    if (found && found.status === 'processing') { res.status(409).json({ error: 'Conflict', message: 'Request in progress' }); return; }
    if (found) {
      res.set('X-Idempotent-Replayed', 'true').set(found.headers || {}).status(found.code).json(found.body);
      return;
    }
    const locked = await client.set(id, JSON.stringify({ status: 'processing' }), { NX: true, PX: 60000 });
    if (!locked) { res.status(409).json({ error: 'Conflict', message: 'Request in progress' }); return; }
    const json = res.json.bind(res);
    let body;
    res.json = (value) => { body = value; return json(value); };
    res.on('finish', async () => {
      if (res.statusCode >= 200 && res.statusCode < 500) {
        await client.set(id, JSON.stringify({ status: 'completed', code: res.statusCode, body }), { EX: 86400 });
      } else {
        await client.del(id);
      }
    });
    next();
  };
}

function problem(res, status, title) {
  res.status(status).type('application/problem+json').send(JSON.stringify({ title, status }));
}

function repaired(client) {
  return async (req, res, next) => {
    const keys = req.headersDistinct['idempotency-key'] || [];
    if (!protectedMethods.includes(req.method)) { next(); return; }
    if (keys.length !== 1 || !/^[\x20-\x7e]{1,255}$/.test(keys[0])) { problem(res, 400, 'one key of 1 to 255 printable characters is wanted'); return; }
    const id = `${req.get('authorization') || ''}:${keys[0]}`;
    const hash = createHash('sha256').update(`${req.method} ${req.path}\n`).update(req.raw || '').digest('hex');
    const lock = JSON.stringify({ status: 'processing', hash, token: randomUUID() });
    if (!(await client.set(id, lock, { NX: true, PX: 60000 }))) {
      const found = JSON.parse((await client.get(id)) || '{"status":"processing"}');
      if (found.hash && found.hash !== hash) { problem(res, 422, 'the key belongs to another request'); return; }
      if (found.status === 'processing') { res.set('Retry-After', '1'); problem(res, 409, 'a request with this key is in progress'); return; }
      res.set('X-Idempotent-Replayed', 'true').set(found.headers).status(found.code).json(found.body);
      return;
    }
    const json = res.json.bind(res);
    res.json = (body) => {
      const settled = res.statusCode === 429 || res.statusCode >= 500 ? release() : client.set(id, JSON.stringify({
        status: 'completed', hash, code: res.statusCode, headers: { location: res.get('location') || '' }, body,
      }), { EX: 86400 });
      settled.finally(() => json(body));
      return res;
    };
    async function release() {
      if ((await client.get(id)) === lock) await client.del(id);
    }
    req.release = release; // for the handler of errors
    next();
  };
}

async function main() {
  const client = await redis(createClient);
  const app = express();
  app.get('/_effects', count);
  app.use(express.json({ limit: '1mb', verify: (req, res, bytes) => { req.raw = bytes; } }));
  app.use(process.argv.includes('repaired') ? repaired(client) : taught(client));
  const handle = (kind) => async (req, res, next) => {
    try {
      const { status, headers, body } = await act(kind, req.query, req.body);
      res.status(status).set(headers).json(body);
    } catch (error) { next(error); }
  };
  app.post('/payments', handle('payments'));
  app.patch('/payments', handle('payments'));
  app.post('/refunds', handle('refunds'));
  app.post('/payments/:id/cancel', handle('cancel'));
  app.use(async (error, req, res, next) => { // Express's own needs four arguments
    if (req.release) await req.release();
    next(error);
  });
  listen(app);
}
main();
