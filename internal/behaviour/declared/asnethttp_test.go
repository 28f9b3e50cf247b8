package declared_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestTimeoutAsNetHTTPSaysIt: errors of an operation are timeouts where net/http's are, and temporary only where nothing happened.
func TestTimeoutAsNetHTTPSaysIt(t *testing.T) {
	t.Parallel()
	late := wiretest.Reply{Status: 201, Delay: time.Hour}
	rows := map[string]struct {
		reply              wiretest.Reply
		change             func(*oncehttp.Config)
		ctx                func(context.Context) (context.Context, context.CancelFunc)
		timeout, temporary bool
	}{
		"a deadline": {reply: late, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, timeout: true},
		"a deadline before it is sent": {reply: late, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, -time.Second)
		}, timeout: true, temporary: true},
		"a caller who leaves": {reply: late, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}},
		"AttemptTimeout":           {reply: late, change: clienttest.OneAttempt, timeout: true},
		"a timeout of the network": {reply: wiretest.Reply{Err: os.ErrDeadlineExceeded}, change: clienttest.OneAttempt, timeout: true},
		"a lost connection":        {reply: wiretest.Reply{Err: wiretest.ErrLost}, change: clienttest.OneAttempt},
		"no connection":            {reply: wiretest.Reply{Refused: true}, change: clienttest.OneAttempt},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, r.change)
				ctx := t.Context()
				if r.ctx != nil {
					with, cancel := r.ctx(ctx)
					defer cancel()
					ctx = with
				}
				_, err := c.Transport().RoundTrip(clienttest.Post(t, "{}").WithContext(ctx))
				clienttest.ExactlyOne(t, err)
				outer := &url.Error{Op: "Post", URL: "https://api.example.com", Err: err}
				if outer.Timeout() != r.timeout || os.IsTimeout(err) != r.timeout {
					t.Errorf("%v: a timeout %t, want %t", err, outer.Timeout(), r.timeout)
				}
				var e net.Error
				//lint:ignore SA1019 SDKs ask for it
				if !errors.As(err, &e) || e.Temporary() != r.temporary || outer.Temporary() != r.temporary {
					t.Errorf("%v: temporary %t, want %t", err, outer.Temporary(), r.temporary)
				}
			})
		})
	}
}

// TestResponseKeepsItsFields: of the answer to an operation its caller sees what net/http has.
func TestResponseKeepsItsFields(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/large":
			w.Header().Set("Content-Length", "3145728")
			_, _ = io.WriteString(w, large)
		case "/chunked":
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, large)
			w.Header().Set("X-Sum", "7")
		case "/close":
			if !r.Close {
				t.Error("Request.Close did not come through")
			}
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "{}")
		case "/moved":
			http.Redirect(w, r, "/moved/here", http.StatusPermanentRedirect)
		default:
			_, _ = io.WriteString(w, "{}")
		}
	}))
	t.Cleanup(srv.Close)
	do := func(t *testing.T, path string, rt http.RoundTripper) *http.Response {
		t.Helper()
		req := clienttest.Request(t, "POST", srv.URL+path, "{}")
		req.Close = path == "/close"
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	cfg := oncehttp.Config{Journal: memory.New(), Operation: oncehttp.Writes}
	c, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, path := range []string{"/large", "/chunked", "/close"} {
		want, got := do(t, path, http.DefaultTransport), do(t, path, c.Transport())
		body, err := io.ReadAll(got.Body)
		plain, _ := io.ReadAll(want.Body)
		if err != nil || !bytes.Equal(body, plain) {
			t.Errorf("%s: %d bytes, %v", path, len(body), err)
		}
		if got.ContentLength != want.ContentLength || got.Close != want.Close || len(got.TransferEncoding) != len(want.TransferEncoding) || got.Trailer.Get("X-Sum") != want.Trailer.Get("X-Sum") {
			t.Errorf("%s: length %d, close %t, encoding %v, trailer %v; want %d, %t, %v, %v", path, got.ContentLength, got.Close, got.TransferEncoding, got.Trailer,
				want.ContentLength, want.Close, want.TransferEncoding, want.Trailer)
		}
		_ = want.Body.Close()
		if err := got.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	got := do(t, "/x", c.Transport())
	_ = got.Body.Close()
	if n, err := got.Body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a closed body gave %d bytes, %v", n, err)
	}
	if got := do(t, "/moved", c.Transport()); got.Request.URL.Path != "/moved/here" || oncehttp.ResultOf(got).Key == "" {
		t.Errorf("Request.URL is %v, want the last hop's", got.Request.URL)
	}
}

// TestPassingIsNetHTTP: the transport gets the caller's own request, and the caller what that returns.
func TestPassingIsNetHTTP(t *testing.T) {
	t.Parallel()
	failed := &net.OpError{Op: "dial", Err: errors.New("no")}
	var given *http.Request
	answers := &http.Response{StatusCode: 200, Body: http.NoBody}
	rt := roundTrip(func(req *http.Request) (*http.Response, error) {
		given = req
		if req.URL.Path == "/fails" {
			return nil, failed
		}
		answers.Request = req
		return answers, nil
	})
	c, _ := clienttest.New(t, rt, undeclared)
	req := clienttest.Request(t, "PUT", "https://api.example.com/upload", "abc")
	resp, err := c.Transport().RoundTrip(req)
	if err != nil || given != req || resp != answers || resp.Request != req || given.GetBody == nil {
		t.Errorf("%v, given %p, want %p", err, given, req)
	}
	if _, err := c.Transport().RoundTrip(clienttest.Request(t, "GET", "https://api.example.com/fails", "")); err != error(failed) {
		t.Errorf("%v, want the transport's error as it is", err)
	}
	keyed := inContext(clienttest.Request(t, "PUT", "https://api.example.com/upload", "abc"))
	resp, err = c.Transport().RoundTrip(keyed)
	if err != nil || resp.Request != keyed || given.GetBody == nil || given.Body != keyed.Body {
		t.Errorf("%v, given %p, want a copy of %p", err, given, keyed)
	}
	hc := c.StandardClient()
	hc.Transport = closesIdle{hc.Transport}
	hc.CloseIdleConnections()
}

// closesIdle passes CloseIdleConnections on.
type closesIdle struct{ http.RoundTripper }

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// idle is a transport that counts CloseIdleConnections.
type idle struct {
	http.RoundTripper
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

// TestCloseIdleConnections of an http.Client reaches the transport.
func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	beneath := &idle{RoundTripper: &wiretest.Wire{}}
	c, _ := clienttest.New(t, beneath, nil)
	c.StandardClient().CloseIdleConnections()
	if beneath.closed != 1 {
		t.Errorf("called %d times", beneath.closed)
	}
}

// TestOnlyTimeoutsAreAnswers: a 408 is a response where nothing else puts the operation in doubt, after several, too; and the operation is
// held for the caller.
func TestOnlyTimeoutsAreAnswers(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		replies []wiretest.Reply
		shown   bool
	}{
		"408":            {[]wiretest.Reply{{Status: 408}}, true},
		"lost, then 408": {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 408}}, false},
		"500, then 408":  {[]wiretest.Reply{{Status: 500}, {Status: 408}}, false},
		"408, then 403":  {[]wiretest.Reply{{Status: 408}, {Status: 403}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: r.replies}
			c, _ := clienttest.New(t, w, nil)
			resp, err := clienttest.SDK(t, c, "k")
			switch {
			case r.shown && (err != nil || resp.StatusCode != 408 || w.Count() < 2):
				t.Errorf("%s: %v after %d sends, want the 408 after several", name, err, w.Count())
			case !r.shown && !errors.Is(err, oncehttp.ErrOutcomeUnknown):
				t.Errorf("%s: %v, want ErrOutcomeUnknown", name, err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldCaller {
				t.Errorf("%s: %v %q", name, rec.State, rec.HoldReason)
			}
		})
	}
}

// TestHTTPAnswersToHTTPS: net/http's hint is in the error, and no second send is made.
func TestHTTPAnswersToHTTPS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Operation: oncehttp.Writes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = c.StandardClient().Post(strings.Replace(srv.URL, "http:", "https:", 1), "application/json", strings.NewReader("{}"))
	var e *oncehttp.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") || e.Attempts != 1 {
		t.Errorf("%v, want the hint after one attempt", err)
	}
}

// TestEarlyRefusalIsHeard: an answer that comes before the body was sent is the answer.
func TestEarlyRefusalIsHeard(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 413} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }))
		t.Cleanup(srv.Close)
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Operation: oncehttp.Writes, Retry: oncehttp.Policy{MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		resp, err := c.StandardClient().Post(srv.URL, "application/octet-stream", bytes.NewReader(make([]byte, 8<<20)))
		if err != nil || resp.StatusCode != status {
			t.Errorf("%d: %v", status, err)
		}
	}
}
