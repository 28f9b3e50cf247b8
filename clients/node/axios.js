// Sends operations as axios does with axios-retry, which has to be told that a
// POST with an idempotency key may be sent again.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import axios from 'axios'
import axiosRetry, { exponentialDelay, isRetryableError } from 'axios-retry'

const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version
const [url, count] = [process.argv[2], Number(process.argv[3])]
console.log(`axios-retry ${version('axios-retry')}, axios ${version('axios')}`)
const client = axios.create({ baseURL: url, timeout: 10_000 })
axiosRetry(client, { retries: 5, retryDelay: exponentialDelay, retryCondition: isRetryableError, shouldResetTimeout: true })
for (let i = 0; i < count; i++) {
  try {
    const reference = `order-${String.fromCharCode(97 + i)}${i}`
    await client.post('/payments', { reference }, { headers: { 'Idempotency-Key': randomUUID() } })
  } catch {
    // what it makes of it, the referee sees
  }
}
