// A payment service to try oncehttp check on: node server.mjs PORT [first|right].
// first is the design that articles teach; right is what is left after the check.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const effects = [], records = new Map();

// The operation itself. sleep, fail and crash are there for the check.
async function work(query, body) {
  if (query.has("sleep")) await new Promise((done) => setTimeout(done, Number(query.get("sleep"))));
  if (query.has("crash")) throw new Error("this crash was asked for");
  if (query.has("fail")) return [Number(query.get("fail")), { error: "failed", at: String(process.hrtime.bigint()) }];
  let order;
  try {
    order = JSON.parse(body);
  } catch {
    return [400, { error: "the body is not JSON" }];
  }
  effects.push(order.reference);
  return [201, { id: `p${effects.length}`, reference: order.reference }];
}

// Look, then work, then store; the key alone is looked up.
async function first(key, request, run) {
  if (key === undefined) return run();
  const known = records.get(key);
  if (known === "processing") return [409, { error: "being processed" }];
  if (known) return [200, known];
  records.set(key, "processing");
  const [status, answer] = await run();
  if (status === 201) records.set(key, answer);
  return [status, answer];
}

// Claim in one step, compare the request, settle on every way out.
async function right(key, request, run) {
  if (key === undefined) return run();
  if (!/^[!-~]{1,255}$/.test(key)) return [400, { error: "the key is not one" }];
  const id = `${request.caller} ${key}`, known = records.get(id);
  if (known) {
    if (known.hash !== request.hash) return [422, { error: "the key belongs to another request" }];
    return known.answer ?? [409, { error: "being processed" }];
  }
  const record = { hash: request.hash, answer: undefined };
  records.set(id, record); // nothing waits between get and set
  try {
    const answer = await run();
    if (answer[0] < 500 && answer[0] !== 429) record.answer = answer;
    return answer;
  } finally {
    if (!record.answer) records.delete(id); // it may be tried again
  }
}

const layer = process.argv[3] === "right" ? right : first;

function send(response, status, body) {
  const headers = { "Content-Type": status < 400 ? "application/json" : "application/problem+json" };
  if (status === 409) headers["Retry-After"] = "1";
  response.writeHead(status, headers).end(JSON.stringify(body));
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  if (url.pathname === "/_effects") {
    const ref = url.searchParams.get("ref");
    return send(response, 200, { count: effects.filter((effect) => effect === ref).length });
  }
  if (!["POST", "PATCH"].includes(request.method)) return send(response, 404, { error: "nothing is here" });
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return; // the body broke off: nothing is claimed
  }
  const keys = request.headersDistinct["idempotency-key"] ?? [undefined];
  if (new Set(keys).size > 1) return send(response, 400, { error: "two keys" });
  const body = Buffer.concat(chunks);
  const hash = createHash("sha256").update(`${request.method} ${request.url}\n`).update(body).digest("hex");
  try {
    const key = keys[0]?.trim();
    send(response, ...(await layer(key, { caller: request.headers.authorization, hash }, () => work(url.searchParams, body.toString()))));
  } catch {
    send(response, 500, { error: "the handler crashed" });
  }
});
server.listen(Number(process.argv[2]), "127.0.0.1", 512, () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
