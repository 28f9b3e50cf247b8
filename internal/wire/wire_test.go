package wire_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/internal/wire"
)

// transport answers each request by a function, after the trace events that it is told to show.
type transport struct {
	events []string // "GetConn", of the request's own host, "GetConn=HOST:PORT", "GotConn"
	answer func(n int, req *http.Request) (*http.Response, error)
	sent   []string
}

func (tr *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	tr.sent = append(tr.sent, req.URL.String())
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		for _, event := range tr.events {
			switch _, at, elsewhere := strings.Cut(event, "="); {
			case elsewhere:
				trace.GetConn(at)
			case event == "GetConn":
				trace.GetConn(req.URL.Host + ":80")
			case event == "GotConn":
				trace.GotConn(httptrace.GotConnInfo{})
			}
		}
	}
	return tr.answer(len(tr.sent), req)
}

func answer(status int, body io.Reader, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1, ProtoMajor: 2}
	for i := 0; i+1 < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// requests is functions as wire.Requests.
type requests struct {
	prepare func(ctx context.Context, target *url.URL) (*http.Request, error)
	follow  func(from *url.URL, location string) *url.URL
}

func (r *requests) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	req, err := r.prepare(ctx, target)
	if err != nil {
		return nil, err
	}
	return req.WithContext(send), nil
}

func (r *requests) Follow(from *url.URL, location string) *url.URL { return r.follow(from, location) }

func (r *requests) Admit(context.Context, bool) error { return nil }
func (r *requests) Dismiss()                          {}
func (r *requests) Handing()                          {}
func (r *requests) Handed()                           {}

// sender sends empty POSTs over tr and follows redirects wherever they lead.
func sender(tr *transport) *wire.Sender {
	return &wire.Sender{
		Transport: tr,
		Limits:    wire.Limits{AttemptTimeout: 30 * time.Second, AnswerTimeout: 100 * time.Second, BodyBytes: 10, Hops: 3},
		Requests: &requests{prepare: func(_ context.Context, target *url.URL) (*http.Request, error) {
			return &http.Request{Method: "POST", URL: target, Header: http.Header{}}, nil
		},
			follow: func(from *url.URL, location string) *url.URL {
				to, err := from.Parse(location)
				if err != nil || location == "" {
					return nil
				}
				return to
			}},
	}
}

// TestProofOfNotSent: only a connection that was asked for and not had proves that nothing was sent. Sends counts
// connections, and at least one for a request that may have left.
func TestProofOfNotSent(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]struct {
		unsent bool
		sends  int
	}{
		"": {false, 1}, "GetConn": {true, 0}, "GotConn": {false, 1}, "GetConn GotConn": {false, 1},
		"GetConn GotConn GetConn GotConn": {false, 2}, "GetConn GotConn GetConn": {false, 1},
	} {
		failed := errors.New("failed")
		tr := &transport{events: strings.Fields(events), answer: func(int, *http.Request) (*http.Response, error) { return nil, failed }}
		r := sender(tr).Send(t.Context(), parse(t, "http://a/"))
		if r.Unsent != want.unsent || r.Sends != want.sends || r.Fatal || r.Answer != nil || !errors.Is(r.Err, failed) {
			t.Errorf("%q: %+v, want unsent %v after %d sends", events, r, want.unsent, want.sends)
		}
	}
}

// TestProofIsOfItsOwn: only a connection to the target, or to the proxy that net/http's own transport takes to it, can prove
// by not being had that nothing was sent; one that is asked for elsewhere under the request's context proves nothing.
func TestProofIsOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, events string
		unsent         bool
	}{
		{"http://a.test/", "GetConn=a.test:80", true},
		{"http://a.test/", "GetConn=A.test:80", true},
		{"http://a.test/", "GetConn=a.test:80 GetConn=a.test:80", true},
		{"https://a.test/", "GetConn=a.test:443", true},
		{"https://a.test:8443/", "GetConn=a.test:8443", true},
		{"http://[::1]/", "GetConn=[::1]:80", true},
		{"http://[::1]:8080/", "GetConn=[::1]:8080", true},
		{"http://a.test/", "GetConn=a.test", true}, // of a transport that names no port
		{"http://a.test/", "GetConn=audit.test:80", false},
		{"http://a.test/", "GetConn=a.test:443", false},
		{"http://a.test:8080/", "GetConn=a.test:80", false},
		{"https://a.test/", "GetConn=a.test:80", false},
		{"http://a.test/", "GetConn=b.a.test:80", false},
		{"http://a.test/", "GetConn=", false},
		{"http://a.test/", "GetConn=audit.test:80 GetConn=a.test:80", false},
		{"http://a.test/", "GetConn=a.test:80 GetConn=audit.test:80", false},
		{"http://a.test/", "GetConn=a.test:80 GetConn=audit.test:80 GotConn", false},
		{"http://a.test/", "GetConn=audit.test:80 GotConn GetConn=a.test:80", false},
		{"http://a.test/", "GetConn=A.test GetConn=a.test GetConn=A.test:80 GetConn=a.test:80 GetConn=a.Test GetConn=a.tEst GetConn=a.teSt GetConn=a.tesT", true},
		{"http://a.test/", "GetConn=A.test GetConn=a.test GetConn=A.test:80 GetConn=a.test:80 GetConn=a.Test GetConn=a.tEst GetConn=a.teSt GetConn=a.tesT GetConn=b", false},
	} {
		failed := errors.New("failed")
		tr := &transport{events: strings.Fields(c.events), answer: func(_ int, req *http.Request) (*http.Response, error) {
			req.URL.Host = "audit.test" // a transport may write to what it was given
			return nil, failed
		}}
		r := sender(tr).Send(t.Context(), parse(t, c.target))
		if r.Unsent != c.unsent || c.unsent != (r.Sends == 0) || !errors.Is(r.Err, failed) {
			t.Errorf("%s, %q: %+v, want unsent %v", c.target, c.events, r, c.unsent)
		}
	}
}

// TestProofThroughAProxy: net/http asks for a connection to the proxy. Of another transport it is not known that the address
// is that of a proxy.
func TestProofThroughAProxy(t *testing.T) {
	t.Parallel()
	dead := deadAddress(t)
	for name, c := range map[string]struct {
		proxy  func(*http.Request) (*url.URL, error)
		unsent bool
	}{
		"a proxy":             {http.ProxyURL(parse(t, "http://"+dead)), true},
		"a proxy by SOCKS":    {http.ProxyURL(parse(t, "socks5://"+dead)), true},
		"none for this":       {func(*http.Request) (*url.URL, error) { return nil, nil }, true},
		"none":                {nil, true},
		"a proxy that breaks": {func(*http.Request) (*url.URL, error) { return nil, errors.New("no proxy") }, false},
	} {
		for _, wrapped := range []bool{false, true} {
			own := &http.Transport{Proxy: c.proxy}
			s := sender(nil)
			s.Transport = own
			if wrapped {
				s.Transport = roundTrip(own.RoundTrip)
			}
			r := s.Send(t.Context(), parse(t, "http://"+dead+"/"))
			if want := c.unsent; r.Unsent != want || r.Err == nil {
				t.Errorf("%s, wrapped %t: %+v, want unsent %v", name, wrapped, r, want)
			}
			other := s.Send(t.Context(), parse(t, "http://a.invalid/"))
			if proxied := strings.HasPrefix(name, "a proxy"); proxied && other.Unsent != (c.unsent && !wrapped) {
				t.Errorf("%s to another host, wrapped %t: %+v", name, wrapped, other)
			}
		}
	}
}

// deadAddress is a host and port on loopback at which nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestBrokenTransport: whatever a transport returns, the result is an answer or an error, and bodies are closed.
func TestBrokenTransport(t *testing.T) {
	t.Parallel()
	beside := &body{Reader: strings.NewReader("x")}
	switched := &body{Reader: strings.NewReader("x")}
	for name, f := range map[string]func(int, *http.Request) (*http.Response, error){
		"nothing": func(int, *http.Request) (*http.Response, error) { return nil, nil },
		"both":    func(int, *http.Request) (*http.Response, error) { return &http.Response{Body: beside}, io.EOF },
		"101": func(int, *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 101, Body: switched}, nil
		},
		"neither body, nor": func(int, *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
	} {
		r := sender(&transport{answer: f}).Send(t.Context(), parse(t, "http://a/"))
		if good := name == "neither body, nor"; (r.Answer != nil) != good || (r.Err == nil) != good || r.Unsent {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if beside.closed != 1 || switched.closed != 1 {
		t.Errorf("closed %d and %d times", beside.closed, switched.closed)
	}
}

type body struct {
	io.Reader
	closed int
}

func (b *body) Close() error { b.closed++; return nil }

// TestUntrustedIsFatal: a certificate that is not trusted will not be trusted at the next attempt.
func TestUntrustedIsFatal(t *testing.T) {
	t.Parallel()
	for _, err := range []error{x509.UnknownAuthorityError{}, x509.HostnameError{}, x509.CertificateInvalidError{}} {
		tr := &transport{answer: func(int, *http.Request) (*http.Response, error) { return nil, &url.Error{Err: err} }}
		if r := sender(tr).Send(t.Context(), parse(t, "http://a/")); !r.Fatal {
			t.Errorf("%T: not fatal", err)
		}
	}
}

// TestSpoiltIsFatal: a request that a Transport above net/http's has made impossible is impossible at the next attempt, too.
func TestSpoiltIsFatal(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*http.Request){
		"field":   func(req *http.Request) { req.Header["a b"] = []string{"c"} },
		"value":   func(req *http.Request) { req.Header.Set("Authorization", "Bearer a\n") },
		"trailer": func(req *http.Request) { req.Trailer = http.Header{"A B": {"c"}} },
		"method":  func(req *http.Request) { req.Method = "A B" },
		"scheme":  func(req *http.Request) { req.URL.Scheme = "gopher" },
		"host":    func(req *http.Request) { req.URL.Host = "" },
	} {
		tr := &transport{answer: func(_ int, req *http.Request) (*http.Response, error) {
			spoil(req)
			return (&http.Transport{}).RoundTrip(req)
		}}
		if r := sender(tr).Send(t.Context(), parse(t, "http://127.0.0.1:9/")); !r.Fatal || r.Unsent {
			t.Errorf("%s: %+v, want it fatal, and no proof that nothing was sent", name, r)
		}
	}
}

// TestPrepareError: a send that could not be prepared was not made. Unless the time ran out, it never can be. After a
// redirect something was sent all the same.
func TestPrepareError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answer: func(int, *http.Request) (*http.Response, error) {
			return answer(307, strings.NewReader(""), "Location", "/b"), nil
		}}
		no := errors.New("no credentials")
		s := sender(tr)
		made := s.Requests.(*requests)
		prepare := made.prepare
		made.prepare = func(context.Context, *url.URL) (*http.Request, error) { return nil, no }
		if r := s.Send(t.Context(), parse(t, "http://a/")); !r.Unsent || !r.Fatal || r.Sends != 0 || !errors.Is(r.Err, no) {
			t.Errorf("%+v, want it unsent and fatal", r)
		}
		made.prepare = func(ctx context.Context, target *url.URL) (*http.Request, error) {
			time.Sleep(time.Minute)
			return prepare(ctx, target)
		}
		if r := s.Send(t.Context(), parse(t, "http://a/")); !r.Unsent || r.Fatal || !errors.Is(r.Err, wire.ErrAttemptTimeout) {
			t.Errorf("%+v, want it unsent for the timeout", r)
		}
		made.prepare = func(ctx context.Context, target *url.URL) (*http.Request, error) {
			if len(tr.sent) > 0 {
				return nil, no
			}
			return prepare(ctx, target)
		}
		if r := s.Send(t.Context(), parse(t, "http://a/")); r.Unsent || r.Sends != 1 || !errors.Is(r.Err, no) {
			t.Errorf("%+v, want one send and the error", r)
		}
	})
}

// TestHopsAreBounded: redirects are followed so often and no more, each is a send, and the last answer says whence
// it came. Only 307 and 308 are followed, and only where Follow allows it.
func TestHopsAreBounded(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		status, sends int
		follow        bool
	}{{307, 4, true}, {308, 4, true}, {302, 1, true}, {303, 1, true}, {307, 1, false}} {
		first := &body{Reader: strings.NewReader("a body longer than what is kept of it")}
		tr := &transport{answer: func(n int, _ *http.Request) (*http.Response, error) {
			resp := answer(r.status, strings.NewReader("moved"), "Location", strings.Repeat("x", n))
			if n == 1 {
				resp.Body = first
			}
			return resp, nil
		}}
		s := sender(tr)
		if !r.follow {
			s.Requests.(*requests).follow = func(*url.URL, string) *url.URL { return nil }
		}
		result := s.Send(t.Context(), parse(t, "http://a/"))
		if result.Answer == nil || result.Answer.Head.StatusCode != r.status || len(tr.sent) != r.sends || result.Sends != r.sends {
			t.Fatalf("%d: %d sends, %+v", r.status, len(tr.sent), result)
		}
		if got := result.Answer.From.String(); got != tr.sent[len(tr.sent)-1] {
			t.Errorf("%d: from %s, want %s", r.status, got, tr.sent[len(tr.sent)-1])
		}
		result.Drain()
		if first.closed == 0 {
			t.Errorf("%d: the first body was not closed", r.status)
		}
	}
}

// TestHopsShareAnswerTimeout: redirects do not make an attempt longer than AnswerTimeout.
func TestHopsShareAnswerTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answer: func(n int, req *http.Request) (*http.Response, error) {
			select {
			case <-time.After(29 * time.Second):
				return answer(307, strings.NewReader(""), "Location", strings.Repeat("x", n)), nil
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}}
		start := time.Now()
		r := sender(tr).Send(t.Context(), parse(t, "http://a/"))
		if took := time.Since(start); took != 100*time.Second || !errors.Is(r.Err, wire.ErrAnswerTimeout) || r.Sends != 4 {
			t.Errorf("%v after %v and %d sends, want ErrAnswerTimeout after 100s and 4", r.Err, took, r.Sends)
		}
	})
}

// TestBodyBytes: a body at the bound is whole; of one past it the rest follows, byte for byte.
func TestBodyBytes(t *testing.T) {
	t.Parallel()
	for n, whole := range map[int]bool{0: true, 1: true, 10: true, 11: false, 5000: false} {
		for _, size := range []int64{-1, int64(n)} {
			text := strings.Repeat("0123456789", 500)[:n]
			source := &body{Reader: strings.NewReader(text)}
			tr := &transport{answer: func(int, *http.Request) (*http.Response, error) {
				resp := answer(200, nil)
				resp.Body, resp.ContentLength = source, size
				return resp, nil
			}}
			r := sender(tr).Send(t.Context(), parse(t, "http://a/"))
			if r.Err != nil || r.Answer.Whole != whole || (r.Answer.Rest == nil) != whole || (source.closed == 1) != whole {
				t.Fatalf("%d bytes: %+v", n, r)
			}
			got := r.Answer.Body
			if !whole {
				rest, err := io.ReadAll(r.Answer.Rest)
				if got = append(got, rest...); err != nil || r.Answer.Rest.Close() != nil || source.closed != 1 {
					t.Errorf("%d bytes: %v, closed %d times", n, err, source.closed)
				}
			}
			if string(got) != text {
				t.Errorf("%d bytes: got %d", n, len(got))
			}
		}
	}
}

// TestClockRunsOutAtTheAnswer: the clock of an attempt may run out in the moment in which its answer is there. Whatever comes
// first, the two do not race, and the answer is judged.
func TestClockRunsOutAtTheAnswer(t *testing.T) {
	t.Parallel()
	for _, events := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := sender(&transport{answer: func(int, *http.Request) (*http.Response, error) {
				resp := answer(200, readAfter{30 * time.Second})
				if events {
					time.Sleep(30 * time.Second)
					resp.Header.Set("Content-Type", "text/event-stream")
				}
				return resp, nil
			}})
			r := s.Send(t.Context(), parse(t, "http://a/"))
			if r.Answer == nil || r.Answer.Rest == nil {
				t.Fatalf("%+v, want an answer and its rest", r)
			}
			_ = r.Answer.Rest.Close()
		})
	}
}

// readAfter is a body of many bytes, each Read of which takes its time.
type readAfter struct{ time.Duration }

func (r readAfter) Read(p []byte) (int, error) {
	time.Sleep(r.Duration)
	return len(p), nil
}

// TestCancelledRest: the rest of a body ends with the cause that it is given.
func TestCancelledRest(t *testing.T) {
	t.Parallel()
	source, in := io.Pipe()
	go func() { _, _ = in.Write(make([]byte, 11)) }()
	tr := &transport{answer: func(_ int, req *http.Request) (*http.Response, error) {
		context.AfterFunc(req.Context(), func() { in.CloseWithError(req.Context().Err()) })
		return answer(200, source), nil
	}}
	r := sender(tr).Send(t.Context(), parse(t, "http://a/"))
	if r.Answer == nil || r.Answer.Rest == nil {
		t.Fatalf("%+v", r)
	}
	gone := errors.New("the caller is gone")
	r.Answer.Rest.Cancel(gone)
	if _, err := io.ReadAll(r.Answer.Rest); !errors.Is(err, gone) {
		t.Errorf("%v, want the cause", err)
	}
	_ = r.Answer.Rest.Close()
}

// TestStream: the headers are waited for from the end of the upload on, the body is not cut, and a request that is not
// sent has its body closed.
func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &transport{answer: func(_ int, req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			time.Sleep(time.Hour) // the upload
			trace.WroteRequest(httptrace.WroteRequestInfo{})
			<-req.Context().Done()
			return nil, req.Context().Err()
		}}
		upload := &body{Reader: strings.NewReader("x")}
		prepare := func(context.Context) (*http.Request, error) {
			return &http.Request{Method: "PUT", URL: parse(t, "http://a/"), Header: http.Header{}, Body: upload}, nil
		}
		start := time.Now()
		_, unsent, _, err := wire.Stream(t.Context(), context.Background(), tr, 30*time.Second, prepare)
		if took := time.Since(start); !errors.Is(err, wire.ErrAttemptTimeout) || unsent || took != time.Hour+30*time.Second {
			t.Errorf("%v after %v, want ErrAttemptTimeout 30s after the upload", err, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, unsent, _, err := wire.Stream(ctx, context.Background(), tr, time.Second, prepare); !errors.Is(err, context.Canceled) || !unsent || upload.closed != 1 {
			t.Errorf("%v, unsent %v, closed %d times; want it not sent, and closed", err, unsent, upload.closed)
		}
	})
}
