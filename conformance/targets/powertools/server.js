// The idempotency utility of Powertools for AWS Lambda behind the routes that the
// conformance suite drives. A request becomes an event as API Gateway makes one;
// a handler that throws is answered 502, as there. The key is read from the
// header, as its documentation shows; the store is Redis. With an argument (node
// server.js validated) the body is validated too.
'use strict';
process.env.AWS_LAMBDA_FUNCTION_NAME = 'target';
const express = require('express');
const { createClient } = require('@redis/client');
const { IdempotencyConfig, makeIdempotent } = require('@aws-lambda-powertools/idempotency');
const { CachePersistenceLayer } = require('@aws-lambda-powertools/idempotency/cache');
const { act, count, listen, redis } = require('../service.js');

async function main() {
  const handler = makeIdempotent(async (event) => {
    const kind = event.path.endsWith('/cancel') ? 'cancel' : event.path.slice(1);
    const { status, headers, body } = await act(kind, event.queryStringParameters, event.body ? JSON.parse(event.body) : {});
    return { statusCode: status, headers, body: JSON.stringify(body) };
  }, {
    persistenceStore: new CachePersistenceLayer({ client: await redis(createClient) }),
    config: new IdempotencyConfig({
      eventKeyJmesPath: 'headers."idempotency-key"', throwOnNoIdempotencyKey: true,
      ...(process.argv.includes('validated') ? { payloadValidationJmesPath: 'body' } : {}),
    }),
  });
  const app = express();
  app.get('/_effects', count);
  app.all('*', express.text({ type: () => true, limit: '1mb' }), async (req, res) => {
    const event = {
      httpMethod: req.method, path: req.path, headers: req.headers, queryStringParameters: req.query,
      body: typeof req.body === 'string' && req.body !== '' ? req.body : null,
    };
    const context = { functionName: 'target', awsRequestId: 'r', getRemainingTimeInMillis: () => 29000 };
    try {
      const { statusCode, headers, body } = await handler(event, context);
      res.status(statusCode).set(headers).type('application/json').send(body);
    } catch (error) {
      res.status(502).json({ message: 'Internal server error' });
    }
  });
  listen(app);
}
main();
