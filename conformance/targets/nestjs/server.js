// @node-idempotency/nestjs behind the routes that the conformance suite drives.
// Decorators are applied by hand, so that no compiler is needed.
'use strict';
const [host, port] = (process.env.ADDR || '127.0.0.1:0').split(':');
require('reflect-metadata');
const { Controller, Get, HttpException, Module, Patch, Post, Req, Res } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { Idempotent, NodeIdempotencyModule } = require('@node-idempotency/nestjs');

let total = 0;
const byReference = new Map();
function effect(reference) {
  total += 1;
  byReference.set(reference, (byReference.get(reference) || 0) + 1);
  return total;
}

async function create(kind, req, res) {
  const { sleep, crash, empty, fail } = req.query;
  if (sleep) await new Promise((go) => setTimeout(go, Number(sleep)));
  if (empty) { effect(req.body.reference); res.status(204); return undefined; }
  if (crash) { effect(''); throw new Error('this crash was asked for'); }
  if (fail) throw new HttpException({ error: 'asked for', number: effect('') }, Number(fail));
  const id = `${kind}_${effect(req.body.reference)}`;
  res.location(`/${kind}/${id}`).cookie('visit', `visit-of-${id}`);
  return { id, reference: req.body.reference };
}

class Effects {
  count(req) { return { count: byReference.get(req.query.ref) || 0, total }; }
}
class Target {
  pay(req, res) { return create('payments', req, res); }
  change(req, res) { return create('payments', req, res); }
  refund(req, res) { return create('refunds', req, res); }
  cancel(req) { return { id: req.params.id, status: 'cancelled', number: effect('cancel') }; }
}

function route(type, name, decorator) {
  const prototype = type.prototype;
  decorator(prototype, name, Object.getOwnPropertyDescriptor(prototype, name));
  Req()(prototype, name, 0);
  if (prototype[name].length > 1) Res({ passthrough: true })(prototype, name, 1);
}
route(Effects, 'count', Get('_effects'));
route(Target, 'pay', Post('payments'));
route(Target, 'change', Patch('payments'));
route(Target, 'refund', Post('refunds'));
route(Target, 'cancel', Post('payments/:id/cancel'));
Controller()(Effects);
Controller()(Target);
Idempotent()(Target); // with the options that it comes with

class App {}
Module({
  imports: [NodeIdempotencyModule.forRootAsync({ storage: { adapter: 'memory' } })],
  controllers: [Effects, Target],
})(App);

NestFactory.create(App, { logger: false }).then(async (app) => {
  app.useBodyParser('json', { limit: '1mb' });
  await app.listen(Number(port), host);
  console.log(`listening on http://${host}:${app.getHttpServer().address().port}`);
});
