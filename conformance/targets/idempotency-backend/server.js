// idempotency-backend behind the routes that the conformance suite drives, mounted
// as its README has it: the handler saves its result, then answers. Its store is
// a file in the current folder, which is a temporary one here.
'use strict';
const { mkdtempSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { tmpdir } = require('node:os');
const folder = mkdtempSync(join(tmpdir(), 'once_target_'));
process.chdir(folder);
const express = require('express');
const IdempotencyExpress = require('idempotency-backend/express').default;
const { act, atEnd, count, listen } = require('../service.js');

const app = express();
app.get('/_effects', count);
app.use(express.json({ limit: '1mb' }));
app.use(IdempotencyExpress);

function handle(kind) {
  return async (req, res, next) => {
    try {
      const { status, headers, body } = await act(kind, req.query, req.body);
      await req.idempotencySession.SaveResponse(body);
      res.status(status).set(headers).json(body);
    } catch (error) { next(error); }
  };
}
app.post('/payments', handle('payments'));
app.patch('/payments', handle('payments'));
app.post('/refunds', handle('refunds'));
app.post('/payments/:id/cancel', handle('cancel'));
atEnd(() => rmSync(folder, { recursive: true, force: true }));
listen(app);
