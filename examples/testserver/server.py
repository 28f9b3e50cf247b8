"""A payment service to try oncehttp check on: python3 server.py PORT [first|right].

first is the design that articles teach; right is what is left after the check."""

import hashlib, json, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

effects, records, lock = [], {}, threading.Lock()


def work(path, query, body):
    """The operation itself. sleep, fail and crash are there for the check."""
    if "sleep" in query:
        time.sleep(int(query["sleep"][0]) / 1000)
    if "crash" in query:
        raise RuntimeError("this crash was asked for")
    if "fail" in query:
        return int(query["fail"][0]), {"error": "failed", "at": time.time_ns()}
    try:
        order = json.loads(body)
    except ValueError:
        return 400, {"error": "the body is not JSON"}
    with lock:
        effects.append(order.get("reference"))
        return 201, {"id": f"p{len(effects)}", "reference": order.get("reference")}


def first(key, request, run):
    """Look, then work, then store; the key alone is looked up."""
    if key is None:
        return run()
    known = records.get(key)
    if known == "processing":
        return 409, {"error": "being processed"}
    if known:
        return 200, known
    records[key] = "processing"
    status, answer = run()
    if status == 201:
        records[key] = answer
    return status, answer


def right(key, request, run):
    """Claim in one step, compare the request, settle on every way out."""
    if key is None:
        return run()
    if not 0 < len(key) <= 255 or any(not "!" <= c <= "~" for c in key):
        return 400, {"error": "the key is not one"}
    with lock:
        known = records.get((request["caller"], key))
        if known is None:
            records[request["caller"], key] = {"hash": request["hash"], "answer": None}
    if known is not None:
        if known["hash"] != request["hash"]:
            return 422, {"error": "the key belongs to another request"}
        return known["answer"] or (409, {"error": "being processed"})
    answer = None
    try:
        answer = run()
        return answer
    finally:
        with lock:
            if answer is None or answer[0] >= 500 or answer[0] == 429:
                del records[request["caller"], key]  # it may be tried again
            else:
                records[request["caller"], key]["answer"] = answer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path != "/_effects":
            return self.answer(404, {"error": "nothing is here"})
        with lock:
            self.answer(200, {"count": effects.count(parse_qs(url.query)["ref"][0])})

    def do_POST(self):
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return self.answer(411, {"error": "the body needs its length"})
        keys = self.headers.get_all("Idempotency-Key") or [None]
        if len(set(keys)) > 1:
            return self.answer(400, {"error": "two keys"})
        whole = f"{self.command} {self.path}\n".encode() + body
        request = {"caller": self.headers.get("Authorization"), "hash": hashlib.sha256(whole).hexdigest()}
        try:
            self.answer(*layer(keys[0], request, lambda: work(url.path, parse_qs(url.query), body)))
        except RuntimeError:
            self.answer(500, {"error": "the handler crashed"})

    do_PATCH = do_POST

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        if status == 409:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client has left


layer = right if sys.argv[2:] == ["right"] else first
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
