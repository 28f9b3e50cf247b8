// Sends operations as got does, which has to be told that a POST with an
// idempotency key may be sent again.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import got from 'got'

const [url, count] = [process.argv[2], Number(process.argv[3])]
console.log(`got ${JSON.parse(readFileSync(new URL('node_modules/got/package.json', import.meta.url))).version}`)
for (let i = 0; i < count; i++) {
  try {
    const reference = `order-${String.fromCharCode(97 + i)}${i}`
    await got.post(`${url}/payments`, {
      json: { reference },
      headers: { 'Idempotency-Key': randomUUID() },
      retry: { methods: ['POST'] },
      timeout: { request: 10_000 }
    })
  } catch {
    // what it makes of it, the referee sees
  }
}
