package plainhttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// quiet is for servers whose clients break off.
var quiet = log.New(io.Discard, "", 0)

// talk is one conversation of a row.
type talk struct {
	*testing.T
	kind      kind
	keys      bool // each request but a GET or HEAD has one
	url       string
	client    *http.Client
	transport http.RoundTripper
	journal   persist.Journal // nil for net/http alone
	turn      chan struct{}   // by which the two sides wait for each other

	mu     sync.Mutex
	seen   []string // by the client
	served []string // by the server
	sent   int
	closes []func()
}

// see adds a line of what the client sees.
func (c *talk) see(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf(format, args...))
}

// serve adds a line of what the server sees.
func (c *talk) serve(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served = append(c.served, "server: "+fmt.Sprintf(format, args...))
}

// got adds the usual line for a request, with its body, and returns how many came before.
func (c *talk) got(r *http.Request) int {
	body, err := io.ReadAll(r.Body)
	c.serve("%s %s, length %d, %q %v", r.Method, r.URL, r.ContentLength, body, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, line := range c.served {
		if strings.HasPrefix(line, "server: ") {
			n++
		}
	}
	return n - 1
}

// later runs f at the end of the conversation.
func (c *talk) later(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closes = append(c.closes, f)
}

// close ends clients and servers.
func (c *talk) close() {
	c.client.CloseIdleConnections()
	c.mu.Lock()
	closes := c.closes
	c.mu.Unlock()
	for _, f := range slices.Backward(closes) {
		f()
	}
}

var address = regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`)

// timedOut is the error of a Client.Timeout. Which of these net/http gives is chance where the RoundTripper is not its own.
var timedOut = regexp.MustCompile(`error (?:\*http\.timeoutError|context\.deadlineExceededError): (.*)` +
	`(?:net/http: request canceled(?: while waiting for connection)?|context deadline exceeded)(?: \(Client\.Timeout [^)]*\))?`)

func (c *talk) transcript() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(c.seen, c.served)
	for i, line := range all {
		if all[i] = address.ReplaceAllString(line, "ADDRESS"); c.client.Timeout > 0 {
			all[i] = timedOut.ReplaceAllString(all[i], "error: $1 timed out")
		}
	}
	return all
}

// request makes a request to a path of the server.
func (c *talk) request(method, path string, body io.Reader) *http.Request {
	c.Helper()
	return c.requestIn(c.Context(), method, path, body)
}

func (c *talk) requestIn(ctx context.Context, method, path string, body io.Reader) *http.Request {
	c.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		c.Fatal(err)
	}
	c.key(req)
	return req
}

// key gives a request a key of its own where the row is about operations.
func (c *talk) key(req *http.Request) {
	if method := strings.ToUpper(req.Method); c.keys && method != "" && method != "GET" && method != "HEAD" {
		c.sent++
		req.Header.Set("Idempotency-Key", fmt.Sprintf("key-%d", c.sent))
	}
}

// do sends by the http.Client, and sees the answer, whose body is read and closed.
func (c *talk) do(req *http.Request) *http.Response {
	c.Helper()
	resp, err := c.client.Do(req)
	return c.answer(resp, err)
}

// doMisfit is do for a request whose body is not of its length. net/http closes the connection then, and gives the error of the body or of the connection, as chance
// has it: which of the two is not seen.
func (c *talk) doMisfit(req *http.Request) {
	c.Helper()
	before := len(c.seen)
	c.do(req)
	chance := func(line string) bool { return line == "error as op" || misfit.MatchString(line) }
	c.seen = slices.Concat(c.seen[:before], slices.DeleteFunc(slices.Clone(c.seen[before:]), chance))
}

// misfit is the line with the type and the words of such an error.
var misfit = regexp.MustCompile(`^error \*?\w+\.\w+: `)

// trip sends by the RoundTripper.
func (c *talk) trip(req *http.Request) *http.Response {
	c.Helper()
	resp, err := c.transport.RoundTrip(req)
	if err == nil {
		c.see("the response has the caller's request: %t", resp.Request == req)
	}
	return c.answer(resp, err)
}

// answer sees a response, whose body is read and closed, or an error.
func (c *talk) answer(resp *http.Response, err error) *http.Response {
	c.Helper()
	if err != nil {
		c.failed(err)
		if resp == nil {
			return nil
		}
	}
	c.head(resp)
	body, err := io.ReadAll(resp.Body)
	c.see("body of %d bytes, %.40q", len(body), body)
	if err != nil {
		c.failed(err)
	}
	if len(resp.Trailer) > 0 {
		c.see("trailer %v", resp.Trailer)
	}
	if err := resp.Body.Close(); err != nil {
		c.failed(err)
	}
	return resp
}

// head sees a response without its body.
func (c *talk) head(resp *http.Response) {
	c.see("%s %s, length %d, encoding %q, close %t, uncompressed %t, TLS %t, of %s %s", resp.Proto, resp.Status, resp.ContentLength,
		resp.TransferEncoding, resp.Close, resp.Uncompressed, resp.TLS != nil, resp.Request.Method, resp.Request.URL)
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length", "Location", "Set-Cookie", "X-Answer", "Connection", "Upgrade"} {
		if values := resp.Header.Values(name); len(values) > 0 {
			c.see("%s: %q", name, values)
		}
	}
}

// failed sees an error. The type and the words of an operation's are those of *oncehttp.Error: that is the one difference for all rows.
func (c *talk) failed(err error) {
	c.see("error: timeout %t, os.IsTimeout %t", timeout(err), os.IsTimeout(err))
	for name, is := range map[string]error{
		"canceled": context.Canceled, "deadline": context.DeadlineExceeded, "EOF": io.EOF, "unexpected EOF": io.ErrUnexpectedEOF,
		"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET, "scheme": http.ErrSchemeMismatch,
		"redirected": oncehttp.ErrRedirected, // of operations alone
	} {
		if errors.Is(err, is) {
			c.see("error is %s", name)
		}
	}
	for name, as := range map[string]func(error) bool{
		"url": is[*url.Error], "op": is[*net.OpError], "authority": is[x509.UnknownAuthorityError],
		"certificate": is[*tls.CertificateVerificationError], "record": is[tls.RecordHeaderError], "dns": is[*net.DNSError],
	} {
		if as(err) {
			c.see("error as %s", name)
		}
	}
	slices.Sort(c.seen[len(c.seen)-errorLines(c.seen):])
	if !c.keys {
		c.see("error %T: %v", inner(err), err)
	}
}

// records sees how the operations stand in the journal, if there is one.
func (c *talk) records() {
	if c.journal == nil {
		return
	}
	for rec, err := range c.journal.List(context.WithoutCancel(c.Context()), persist.Query{}) {
		c.see("record: %s %v %s, %d sends, %v", rec.Key, rec.State, rec.HoldReason, rec.Sends, err)
	}
}

// errorLines returns how many lines at the end are of errors.Is and errors.As, whose order is that of a map.
func errorLines(seen []string) (n int) {
	for _, line := range slices.Backward(seen) {
		if !strings.HasPrefix(line, "error is ") && !strings.HasPrefix(line, "error as ") {
			break
		}
		n++
	}
	return n
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// inner returns the error in that of an http.Client, by which callers switch.
func inner(err error) error {
	if e, ok := err.(*url.Error); ok {
		return e.Err
	}
	return err
}

func timeout(err error) bool {
	e, ok := err.(interface{ Timeout() bool })
	return ok && e.Timeout()
}

// within waits for something that net/http promises without saying when.
func (c *talk) within(done <-chan struct{}, name string) {
	c.Helper()
	select {
	case <-done:
		c.see("%s", name)
	case <-time.After(5 * time.Second):
		c.see("%s: never", name)
	}
}
