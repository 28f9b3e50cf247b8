package sim

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// frontName is the Server header of an answer not from the API.
const frontName = "front"

// page is an answer of something in front of the API: a proxy during a deploy, or a maintenance page.
type page struct {
	status int
	html   bool // else it is empty
	after  bool // the API has had the request
}

// pages returns the pages of a simulated proxy in front of the API, such as an error page. A page that says "no" is given only for a request that the
// API has not seen.
func pages() []page {
	return []page{
		{status: 200, html: true}, {status: 200, html: true, after: true}, {status: 404, html: true}, {status: 404},
		{status: 403, html: true}, {status: 400, html: true}, {status: 405},
	}
}

// front answers some sends with a page of a proxy in front of the API, before or after the API has had a copy of the send; none once the faults have stopped
// (calm). The client has the event of a connection then (pretend), since an answer without one is impossible. handled: resp or err is the result; otherwise the
// send goes on to the API.
func (n *network) front(s *send) (resp *http.Response, err error, handled bool) {
	w := n.w
	if w.calm.Load() || !w.dice.chance(w.plan.Setting.Pages, "page "+s.id.Account+s.id.Key, s.nth) {
		return nil, nil, false
	}
	p := pick(w.dice.of("page "+s.id.Account+s.id.Key, s.nth), pages()...)
	n.pretend(s)
	if p.after {
		err = n.copyFirst(s)
	}
	w.model.sent(n.life, s)
	if err != nil {
		return nil, err, true
	}
	w.logf("%s, %d: a page in front of the API, %d", s.id.Key, s.nth, p.status)
	resp = &http.Response{
		Status: http.StatusText(p.status), StatusCode: p.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Server": {frontName}}, Request: s.req, Body: http.NoBody,
	}
	if p.html {
		text := "<!DOCTYPE html>\n<html><title>" + http.StatusText(p.status) + "</title><p>Scheduled maintenance</p></html>\n"
		resp.Header.Set("Content-Type", "text/html; charset=utf-8")
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	resp.Body = w.model.answered(n.life, s, resp)
	return resp, nil, true
}

// compress encodes an answer for a client with gzip accepted, as a proxy does on the way.
func compress(req *http.Request, resp *http.Response) {
	if req.Header.Get("Accept-Encoding") != "gzip" || resp.Body == http.NoBody || resp.Header.Get("Content-Encoding") != "" {
		return
	}
	z := &zipped{plain: resp.Body}
	z.to = gzip.NewWriter(&z.ready)
	resp.Body, resp.ContentLength = z, -1
	resp.Header.Set("Content-Encoding", "gzip")
	resp.Header.Del("Content-Length")
}

// zipped is a body on its way through gzip. A break of the body beneath breaks it here, too.
type zipped struct {
	plain io.ReadCloser
	to    *gzip.Writer
	ready bytes.Buffer
	ended error
}

// Read implements [io.Reader]. It compresses the body piece by piece, so that no piece waits for the next one.
func (z *zipped) Read(p []byte) (int, error) {
	for z.ready.Len() == 0 && z.ended == nil {
		piece := make([]byte, 512)
		n, err := z.plain.Read(piece)
		_, _ = z.to.Write(piece[:n]) // into memory
		_ = z.to.Flush()
		if z.ended = err; err == io.EOF {
			_ = z.to.Close()
		}
	}
	if z.ready.Len() > 0 {
		return z.ready.Read(p)
	}
	return 0, z.ended
}

// Close implements [io.Closer]. It closes the uncompressed body.
func (z *zipped) Close() error { return z.plain.Close() }

// unzipped returns the text of an answer's body, decoded if it is encoded.
func unzipped(resp *http.Response, body []byte) []byte {
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return body
	}
	var text []byte
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		text, err = io.ReadAll(r)
	}
	if err != nil {
		return []byte("not gzip, as its header says: " + err.Error())
	}
	return text
}
