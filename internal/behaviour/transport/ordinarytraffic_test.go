package transport_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// ordinary is a call of an API that works, and its answer.
type ordinary struct {
	method string // POST if it is empty
	header string // of the request: "Name: value", one a line
	body   string // {} if it is empty
	answer http.HandlerFunc
	gets   int  // that a client which follows redirects makes
	stream bool // the answer never ends
	http1  bool // only over HTTP/1.1
}

// says answers with a status, a type, and a body.
func says(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil // net/http sends none then
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// encoded answers 201 with JSON in a coding, whatever the request accepts.
func encoded(coding string, encode func(io.Writer) io.WriteCloser) http.HandlerFunc {
	var b bytes.Buffer
	w := encode(&b)
	_, _ = io.WriteString(w, `{"id":"p1"}`)
	_ = w.Close()
	return says(201, "application/json", b.String(), "Content-Encoding: "+coding)
}

func zipped(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func bareDeflate(w io.Writer) io.WriteCloser {
	f, _ := flate.NewWriter(w, flate.DefaultCompression) // the level is valid
	return f
}

// ordinaryTraffic is what APIs answer day by day.
func ordinaryTraffic() map[string]ordinary {
	all := map[string]ordinary{
		"200 JSON":            {answer: says(200, "application/json", `{"id":"p1"}`)},
		"201 with a Location": {answer: says(201, "application/json", `{"id":"p1"}`, "Location: /payments/p1")},
		"201 elsewhere":       {answer: says(201, "application/json", `{"id":"p1"}`, "Location: https://other.example/p1")},
		"201 empty":           {answer: says(201, "", "")},
		"200 empty, JSON":     {answer: says(200, "application/json", "")},
		"200 blank":           {answer: says(200, "text/plain", "\r\n")},
		"204":                 {answer: says(204, "", "")},
		"205":                 {answer: says(205, "", "")},
		"203":                 {answer: says(203, "application/json", `{"id":"p1"}`)},
		"202 to be polled":    {answer: says(202, "application/json", `{"status":"pending"}`, "Location: /jobs/1", "Retry-After: 5")},
		"202 empty":           {answer: says(202, "", "", "Operation-Location: /jobs/1")},
		"207":                 {answer: says(207, "application/xml", `<?xml version="1.0"?><multistatus xmlns="DAV:"/>`)},
		"JSON as text":        {answer: says(201, "text/plain; charset=utf-8", `{"id":"p1"}`)},
		"JSON without a type": {answer: says(201, "", `{"id":"p1"}`)},
		"JSON as HTML":        {answer: says(201, "text/html", `{"id":"p1"}`)},
		"plain text":          {answer: says(200, "text/plain", "OK\n")},
		"text like JSON":      {answer: says(200, "text/plain", "[INFO] {paid")},
		"a number":            {answer: says(200, "application/json", "4711")},
		"a string":            {answer: says(200, "application/json", `"p1"`)},
		"null":                {answer: says(200, "application/json", "null")},
		"an empty object":     {answer: says(200, "application/json", "{}")},
		"JSON and a line end": {answer: says(200, "application/json", "{\"id\":\"p1\"}\r\n\n")},
		"JSON, indented":      {answer: says(200, "application/json", "\n  [\n    1\n  ]")},
		"JSON after a BOM":    {answer: says(200, "application/json; charset=utf-8", "\ufeff{\"id\":\"p1\"}")},
		"JSON in UTF-16":      {answer: says(200, "application/json; charset=utf-16", "\xff\xfe{\x00}\x00")},
		"JSON in Latin-1":     {answer: says(200, "application/json; charset=ISO-8859-1", "{\"name\":\"M\xfcller\"}")},
		"JSON against theft":  {answer: says(200, "application/json", ")]}',\n{\"id\":\"p1\"}")},
		"JSON with HTML":      {answer: says(200, "application/json", `{"receipt":"<!DOCTYPE html><html><body>paid</body></html>"}`)},
		"JSON:API":            {header: "Accept: application/vnd.api+json", answer: says(201, "application/vnd.api+json", `{"data":{"type":"payments","id":"1"}}`)},
		"HAL":                 {answer: says(201, "application/hal+json; profile=\"x\"", `{"_links":{"self":{"href":"/p/1"}}}`)},
		"NDJSON":              {answer: says(200, "application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n")},
		"a JSON sequence":     {answer: says(200, "application/json-seq", "\x1e{\"a\":1}\n")},
		"JSONP":               {answer: says(200, "application/javascript", `cb({"id":"p1"})`)},
		"XML":                 {answer: says(200, "application/xml; charset=utf-8", `<?xml version="1.0"?><payment id="1"/>`)},
		"SOAP":                {header: "Content-Type: text/xml", body: "<Envelope/>", answer: says(200, "text/xml", `<soap:Envelope xmlns:soap="x"><soap:Body/></soap:Envelope>`)},
		"XML with a title":    {answer: says(200, "application/xml", "<title>Receipt</title>")},
		"a form":              {header: "Content-Type: application/x-www-form-urlencoded", body: "a=1", answer: says(200, "application/x-www-form-urlencoded", "id=p1&status=ok")},
		"CSV":                 {header: "Accept: text/csv", answer: says(200, "text/csv", "id,amount\np1,100\n", "Content-Disposition: attachment; filename=r.csv")},
		"PDF":                 {header: "Accept: application/pdf", answer: says(201, "application/pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "Content-Disposition: attachment")},
		"PNG":                 {answer: says(200, "image/png", "\x89PNG\r\n\x1a\n\x00")},
		"ZPL":                 {answer: says(200, "application/zpl", "^XA^FO50,50^FDp1^FS^XZ")},
		"protobuf":            {header: "Content-Type: application/x-protobuf", body: "\x0a\x02k1", answer: says(200, "application/x-protobuf", "\x0a\x02p1\x10\x64")},
		"MessagePack":         {answer: says(200, "application/msgpack", "\x81\xa2id\xa2p1")},
		"CBOR":                {answer: says(200, "application/cbor", "\xa1bid\x62p1")},
		"bytes":               {answer: says(200, "application/octet-stream", "{\x00\x01\xff")},
		"a JWT":               {answer: says(200, "application/jwt", "eyJhbGciOiJub25lIn0.e30.")},
		"HTML by Accept":      {header: "Accept: text/html", answer: says(200, "text/html", "<!DOCTYPE html><html><body>paid</body></html>")},
		"HTML like a browser": {header: "Accept: text/html,application/xhtml+xml,*/*;q=0.8", answer: says(200, "text/html", "<html><body>paid</body></html>")},
		"HTML by text/*":      {header: "Accept: text/*", answer: says(200, "text/html", "<html><body>paid</body></html>")},
		"a multipart answer":  {answer: multiparts},
		"a cookie with it":    {answer: says(201, "application/json", `{"id":"p1"}`, "Set-Cookie: session=s; HttpOnly", "Set-Cookie: lb=1")},
		"a warning with it":   {answer: says(200, "application/json", `{"id":"p1"}`, "Deprecation: true", "Warning: 299 - \"old\"", "Retry-After: 0")},
		"an error in a 200":   {answer: says(200, "application/json", `{"error":null,"status":"ok"}`)},
		"1 MB":                {answer: says(200, "application/json", `{"data":"`+strings.Repeat("x", 1<<20-11)+`"}`)},
		"1 MB and one byte":   {answer: says(200, "application/json", `{"data":"`+strings.Repeat("x", 1<<20-10)+`"}`)},
		"5 MB":                {answer: says(200, "application/json", `{"data":"`+strings.Repeat("x", 5<<20)+`"}`)},
		"gzip":                {answer: encoded("gzip", zipped)},
		"gzip, asked for":     {header: "Accept-Encoding: gzip", answer: encoded("gzip", zipped)},
		"x-gzip":              {header: "Accept-Encoding: x-gzip", answer: encoded("x-gzip", zipped)},
		"deflate":             {header: "Accept-Encoding: deflate", answer: encoded("deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })},
		"deflate, bare":       {header: "Accept-Encoding: deflate", answer: encoded("deflate", bareDeflate)},
		"brotli":              {header: "Accept-Encoding: br", answer: says(200, "application/json", "\x0b\x05\x80{\"id\":\"p1\"}\x03", "Content-Encoding: br")},
		"zstd":                {header: "Accept-Encoding: zstd", answer: says(200, "application/json", "\x28\xb5\x2f\xfd\x04\x00", "Content-Encoding: zstd")},
		"identity":            {answer: says(200, "application/json", `{"id":"p1"}`, "Content-Encoding: identity")},
	}
	for name, o := range ordinaryOthers() {
		all[name] = o
	}
	return all
}

// ordinaryOthers are other methods, refusals, and ways to send a body. A 401 and a 403 are none: they may come from something in front
// of the API, and leave what is enqueued pending.
func ordinaryOthers() map[string]ordinary {
	problem := func(status int) ordinary {
		return ordinary{answer: says(status, "application/problem+json", fmt.Sprintf(`{"type":"about:blank","title":"no","status":%d}`, status))}
	}
	return map[string]ordinary{
		"PUT":                   {method: "PUT", answer: says(200, "application/json", `{"id":"p1"}`, "ETag: \"1\"")},
		"PUT, 204":              {method: "PUT", header: "If-Match: \"1\"", answer: says(204, "", "")},
		"PATCH":                 {method: "PATCH", header: "Content-Type: application/merge-patch+json", answer: says(200, "application/json", `{"id":"p1"}`)},
		"DELETE":                {method: "DELETE", body: "none", answer: says(204, "", "")},
		"DELETE, 200":           {method: "DELETE", body: "none", answer: says(200, "application/json", `{"deleted":true}`)},
		"POST of nothing":       {body: "none", answer: says(200, "application/json", `{"id":"p1"}`)},
		"400 problem":           problem(400),
		"402 problem":           problem(402),
		"404 problem":           problem(404),
		"410 problem":           problem(410),
		"422 as text":           {answer: says(422, "text/plain", "amount is missing")},
		"400 errors":            {answer: says(400, "application/json", `{"errors":[{"code":"amount"}]}`)},
		"303 after POST":        {answer: seeOther, gets: 1},
		"chunked":               {answer: chunked},
		"trailers":              {answer: trailers},
		"slow to answer":        {answer: slowly(50*time.Millisecond, 0)},
		"slow to end":           {answer: slowly(0, 10*time.Millisecond)},
		"100 Continue":          {header: "Expect: 100-continue", answer: says(200, "application/json", `{"id":"p1"}`)},
		"103 Early Hints":       {answer: earlyHints},
		"Connection close":      {answer: says(200, "application/json", `{"id":"p1"}`, "Connection: close"), http1: true},
		"an event stream":       {header: "Accept: text/event-stream", answer: eventStream, stream: true},
		"events, not asked for": {answer: eventStream, stream: true},
		"events that end":       {answer: says(200, "text/event-stream", "data: {\"id\":\"p1\"}\n\ndata: [DONE]\n\n"), stream: true},
	}
}

func multiparts(w http.ResponseWriter, _ *http.Request) {
	form := multipart.NewWriter(w)
	_ = form.SetBoundary("b")
	w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
	_ = form.WriteField("id", "p1")
	_ = form.Close()
}

func seeOther(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		says(200, "application/json", `{"id":"p1"}`)(w, req)
		return
	}
	http.Redirect(w, req, req.URL.Path+"/p1", http.StatusSeeOther)
}

func chunked(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(201)
	for _, part := range []string{`{"id"`, `:"p1`, `"}`} {
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
	}
}

func trailers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Trailer", "Checksum")
	_, _ = io.WriteString(w, `{"id":"p1"}`)
	w.Header().Set("Checksum", "1")
}

func slowly(before, between time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(before) // which is what is tested
		w.Header().Set("Content-Type", "application/json")
		for _, part := range []string{`{"id"`, `:"p1`, `"}`} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(between)
		}
	}
}

func earlyHints(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	says(201, "application/json", `{"id":"p1"}`)(w, req)
}

// events is a stream that ends with its connection.
func eventStream(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, ": hello\n\ndata: {\"id\":\"p1\"}\n\n")
	_ = http.NewResponseController(w).Flush()
	<-req.Context().Done()
}
