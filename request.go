package oncehttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// operation is a caller's request, read once: the record that it would begin,
// the profile that it goes by, and the credentials that no journal sees.
type operation struct {
	rec     persist.Record
	prof    *profile.Profile
	secrets http.Header
	user    *url.Userinfo
	target  url.URL
	sum     [sha256.Size]byte // what rec.Fingerprint shows
	header  http.Header       // what rec.Header shows
	lines   [8]string         // of the headers, if they are no more
}

// snapshot reads the caller's request into op. It never changes the request; the
// body is read once, whole, and closed in every case.
func (c *Client) snapshot(op *operation, name string, req *http.Request, given keySource) error {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := checkRequest(name, req); err != nil {
		return err
	}
	body, err := readBody(req, c.cfg.MaxRequestBytes)
	if err != nil {
		return &Error{Op: name, Outcome: OutcomeNotSent, Cause: err, is: []error{ErrNoEffect, bodyTrouble(err)}}
	}
	p := c.cfg.profileFor(req.URL)
	key, err := c.findKey(req, p, body, given)
	if err != nil {
		return &Error{Op: name, Key: key.key, Outcome: OutcomeNotSent, Cause: err, is: []error{ErrNoEffect, ErrKeyInvalid}}
	}
	c.describe(op, req, p, key, body)
	return nil
}

var errTooLarge = errors.New("body is larger than MaxRequestBytes")

func bodyTrouble(err error) error {
	if errors.Is(err, errTooLarge) {
		return ErrBodyTooLarge
	}
	return ErrConfig
}

// readBody copies the body once. One that says that it is over the limit is
// refused before a byte of it is read, another as soon as it shows.
func readBody(req *http.Request, limit int64) ([]byte, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return nil, nil
	case req.ContentLength > limit:
		return nil, fmt.Errorf("%w: %d bytes, limit %d", errTooLarge, req.ContentLength, limit)
	case req.ContentLength <= 0: // a non-nil body of length 0 is one of unknown length
		return readUnsized(req.Body, limit)
	}
	body := make([]byte, req.ContentLength)
	if n, err := io.ReadFull(req.Body, body); err != nil {
		return nil, fmt.Errorf("reading the body: %d of %d bytes: %w", n, len(body), foreign(err))
	}
	var more [1]byte
	if n, _ := req.Body.Read(more[:]); n > 0 {
		return nil, fmt.Errorf("body is longer than its Content-Length of %d", len(body))
	}
	return body, nil
}

// readUnsized collects chunks and joins them once, so that the peak is twice the
// body and not the three times of a buffer that doubles.
func readUnsized(r io.Reader, limit int64) ([]byte, error) {
	var chunks [][]byte
	var total int64
	for size := 4 << 10; ; size = min(2*size, 1<<20) {
		chunk := make([]byte, min(int64(size), limit+1-total))
		n, err := io.ReadFull(r, chunk)
		total += int64(n)
		if total > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
		}
		chunks = append(chunks, chunk[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the body: %w", foreign(err))
		}
	}
	if len(chunks) == 1 {
		return chunks[0], nil
	}
	return slices.Concat(chunks...), nil
}

// describe puts together the record that stands for a request.
func (c *Client) describe(op *operation, req *http.Request, p *profile.Profile, key foundKey, body []byte) {
	carrier := ""
	if p.Carrier.Place == profile.Header {
		carrier = p.Carrier.Name
	}
	op.prof, op.user = p, req.URL.User
	if op.header == nil {
		op.header = make(http.Header, len(req.Header))
	}
	secrets, omitted := c.cfg.splitHeader(req.Header, carrier, op.header, op.lines[:0])
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		op.header["Host"] = []string{req.Host}
	}
	if req.URL.User != nil {
		omitted = append(omitted, userinfo)
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	op.secrets = secrets
	setTarget(&op.target, req.URL)
	op.rec = persist.Record{
		ID:             persist.ID{Account: c.account(req.Header, p), Key: string(key.key)},
		Generated:      key.generated,
		Origin:         c.originOf(req.URL),
		Method:         method,
		Target:         req.URL.RequestURI(),
		Header:         op.header,
		Body:           body,
		Omitted:        omitted,
		Carrier:        string(p.Carrier.Place),
		CarrierName:    p.Carrier.Name,
		WireKey:        key.wire,
		Profile:        p.Name,
		ProfileVersion: p.Version,
		Window:         p.Window.Floor,
		Recipe:         recipeOf(p),
		Created:        c.now().Round(0),
	}
	op.sum, _ = fingerprint(op.rec.Recipe, &op.rec)
	op.rec.Fingerprint = op.sum[:]
}

// account is the client's account, joined by the headers that the profile says
// select whose keys these are.
func (c *Client) account(h http.Header, p *profile.Profile) string {
	if len(p.AccountHeaders) == 0 {
		return c.accountBase
	}
	var scopes [][2]string
	for _, name := range p.AccountHeaders {
		if v := joinedLines(h, name); v != "" {
			scopes = append(scopes, [2]string{name, v})
		}
	}
	return persist.Account(c.cfg.Account, scopes...)
}

// originOf is the same as the function, which most clients ask for one origin only.
func (c *Client) originOf(u *url.URL) string {
	if last := c.origin.Load(); last != nil && last.scheme == u.Scheme && last.host == u.Host {
		return last.origin
	}
	o := &lastOrigin{u.Scheme, u.Host, originOf(u)}
	c.origin.Store(o)
	return o.origin
}

type lastOrigin struct{ scheme, host, origin string }

// originOf is scheme, host and port, normalised so that a changed base URL shows
// and another spelling of the same one does not.
func originOf(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = defaultPort(scheme)
	}
	if strings.Contains(host, ":") {
		return scheme + "://[" + host + "]:" + port
	}
	return scheme + "://" + host + ":" + port
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// urlOf is the URL that a record is sent to.
func urlOf(rec *persist.Record) (*url.URL, error) {
	u, err := url.Parse(rec.Origin + rec.Target)
	if err != nil {
		return nil, err
	}
	return targetOf(u), nil
}

func targetOf(u *url.URL) *url.URL {
	t := &url.URL{}
	setTarget(t, u)
	return t
}

// setTarget sets t to u as it is sent to: without credentials and fragment, in one
// spelling, and without a default port, as the Host header shows it to the server.
func setTarget(t, u *url.URL) {
	*t = *u
	t.User, t.Fragment, t.RawFragment = nil, "", ""
	t.Scheme, t.Host = strings.ToLower(t.Scheme), strings.ToLower(t.Host)
	if port := t.Port(); port == defaultPort(t.Scheme) || port == "" {
		t.Host = strings.TrimSuffix(strings.TrimSuffix(t.Host, port), ":")
	}
}

// The recipe names a version, then the headers that take part.
const recipeV1 = "v1"

func recipeOf(p *profile.Profile) string {
	if len(p.Fingerprint) == 0 {
		return recipeV1 + " Content-Type"
	}
	return recipeV1 + " Content-Type " + strings.Join(p.Fingerprint, " ")
}

// fingerprint is the SHA-256 of what a key names, by the recipe: origin, method,
// path and query, Host where it is not the origin's, the recipe's headers and
// the body, each with its length before it, so that no two lists hash alike. It
// is not known for a recipe that this version does not know.
func fingerprint(recipe string, rec *persist.Record) (sum [sha256.Size]byte, known bool) {
	version, names, _ := strings.Cut(recipe, " ")
	if version != recipeV1 {
		return sum, false
	}
	buf := make([]byte, 0, 1024)
	for _, s := range [...]string{recipe, rec.Origin, rec.Method, rec.Target, strings.Join(rec.Header["Host"], ",")} {
		buf = appendSized(buf, s)
	}
	for name := ""; names != ""; {
		name, names, _ = strings.Cut(names, " ")
		buf = appendSized(buf, joinedLines(rec.Header, name))
	}
	if len(rec.Body) > cap(buf) {
		return sumLarge(string(buf), rec.Body), true
	}
	return sha256.Sum256(append(buf, rec.Body...)), true
}

func appendSized(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sumLarge hashes without a copy of the body. It is apart so that the buffer of
// small requests can stay on the stack.
func sumLarge(head string, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(head))
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// sameRequest reports whether op is the request that a standing record names, by
// the record's own recipe.
func (op *operation) sameRequest(standing *persist.Record) bool {
	if standing.Recipe == op.rec.Recipe {
		return bytes.Equal(op.rec.Fingerprint, standing.Fingerprint)
	}
	sum, known := fingerprint(standing.Recipe, &op.rec)
	return known && bytes.Equal(sum[:], standing.Fingerprint)
}

// intact reports whether a record that was read back is still what was hashed.
func intact(rec *persist.Record) bool {
	sum, known := fingerprint(rec.Recipe, rec)
	return rec.Swept || known && bytes.Equal(sum[:], rec.Fingerprint)
}

// wireHeader is the headers of every send, whose own they are: the recorded ones,
// the credentials, and the key. The lines are appended to buf.
func wireHeader(rec *persist.Record, secrets http.Header, buf []string) http.Header {
	h := make(http.Header, len(rec.Header)+len(secrets)+1)
	put := func(name string, lines ...string) {
		start := len(buf)
		buf = append(buf, lines...)
		h[name] = buf[start:len(buf):len(buf)]
	}
	for name, lines := range rec.Header {
		if name != "Host" {
			put(name, lines...)
		}
	}
	for name, lines := range secrets {
		put(name, lines...)
	}
	if rec.Carrier == string(profile.Header) {
		put(carrierSpelling(rec), rec.WireKey)
	}
	return h
}

// newRequest is the request of one send: the recorded method, target, headers
// and bytes, joined by credentials. It has no GetBody, so that net/http cannot
// send it again by itself.
func newRequest(rec *persist.Record, u *url.URL, h http.Header, body *memoryBody) http.Request {
	req := http.Request{
		Method: rec.Method, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if host := rec.Header["Host"]; len(host) > 0 {
		req.Host = host[0]
	}
	if len(rec.Body) > 0 {
		body.Reset(rec.Body)
		// A body that net/http knows to be in memory goes out in one write with the headers.
		req.Body, req.ContentLength = io.NopCloser(&body.Reader), int64(len(rec.Body))
	}
	return req
}

// memoryBody is bytes as a body.
type memoryBody struct{ bytes.Reader }

func newBody(b []byte) *memoryBody {
	m := &memoryBody{}
	m.Reset(b)
	return m
}

func (*memoryBody) Close() error { return nil }

// carrierSpelling is how the key's header stands in the header map. net/http
// takes Idempotency-Key and X-Idempotency-Key for a leave to send again on a dead
// connection. Without a body, where leaving out GetBody does not stop it, a
// spelling that it does not look for does; on the wire case does not matter (RFC
// 9110 section 5.1).
func carrierSpelling(rec *persist.Record) string {
	if len(rec.Body) == 0 {
		return strings.ToLower(rec.CarrierName)
	}
	return http.CanonicalHeaderKey(rec.CarrierName)
}
