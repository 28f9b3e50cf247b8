// @node-idempotency/core behind the routes that the conformance suite drives: its
// two calls around the handler, as its README has them, in memory. Its errors
// get the statuses that its own plugins give them.
'use strict';
const express = require('express');
const { Idempotency } = require('@node-idempotency/core');
const { MemoryStorageAdapter } = require('@node-idempotency/storage-adapter-memory');
const { act, count, listen } = require('../service.js');

const statuses = {
  IDEMPOTENCY_KEY_LEN_EXEEDED: 400, IDEMPOTENCY_KEY_MISSING: 400, IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422, REQUEST_IN_PROGRESS: 409,
};
const keys = new Idempotency(new MemoryStorageAdapter(), {});
const app = express();
app.get('/_effects', count);
app.use(express.json({ limit: '1mb' }));

function handle(kind) {
  return async (req, res, next) => {
    const asked = { method: req.method, headers: req.headers, path: req.path, body: req.body };
    try {
      const stored = await keys.onRequest(asked);
      if (stored) { res.status(stored.additional.status).set(stored.additional.headers).json(stored.body); return; }
      const { status, headers, body } = await act(kind, req.query, req.body);
      await keys.onResponse(asked, { body, additional: { status, headers } });
      res.status(status).set(headers).json(body);
    } catch (error) {
      if (!statuses[error.code]) { next(error); return; }
      res.status(statuses[error.code]).json({ message: error.message });
    }
  };
}
app.post('/payments', handle('payments'));
app.patch('/payments', handle('payments'));
app.post('/refunds', handle('refunds'));
app.post('/payments/:id/cancel', handle('cancel'));
listen(app);
