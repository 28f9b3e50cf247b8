// Package mocktest is shared by the tests of the mock's packages: a client over an
// in-memory pipe, in virtual time.
package mocktest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// Reply is the answer to a test's request.
type Reply struct {
	Status int         // 0: there was no answer
	Header http.Header // of the answer
	Body   string      // the part that was read
	Err    error       // of the request, or of reading the body
}

// Client sends a test's requests over one transport.
type Client struct {
	T    *testing.T   // fails if a request cannot be made
	HTTP *http.Client // follows no redirects
	URL  string       // scheme and host of the server, without a slash at the end
	Form bool         // requests without a Content-Type are forms
}

// Bubble runs the test in virtual time, with a server over a pipe. The client sends forms if the profile's API takes them by default. It closes the
// server after run.
func Bubble(t *testing.T, cfg mockserver.Config, run func(*mockserver.Server, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(cfg)
		pipe := server.Pipe()
		client := NewClient(t, pipe.Transport(), pipe.URL)
		client.Form = cfg.Profile != nil && cfg.Profile.Body.Default() == "form"
		run(server, client)
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// NewClient returns a client that follows no redirect.
func NewClient(t *testing.T, transport http.RoundTripper, url string) *Client {
	noFollow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{T: t, URL: url, HTTP: &http.Client{Transport: transport, CheckRedirect: noFollow}}
}

// Request is one request of a test; the zero value posts a JSON object, or a form, to /payments.
type Request struct {
	Method  string          // empty: POST
	Path    string          // empty: /payments
	Key     string          // empty: none
	Body    string          // empty: a JSON object or a form, if the method is POST
	Header  http.Header     // added to the request's own
	Ctx     context.Context // nil: context.Background
	Chunked bool            // no Content-Length
}

// Do sends the request once and reads the whole answer. An error, also that of a body cut off, is in Reply.Err, and does not fail the test: Want and
// WantLost check it.
func (c *Client) Do(r Request) Reply {
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	if r.Path == "" {
		r.Path = "/payments"
	}
	form := c.Form && r.Header.Get("Content-Type") == ""
	switch {
	case r.Body != "" || r.Method != http.MethodPost:
	case form:
		r.Body = "reference=r1&amount=100"
	default:
		r.Body = `{"reference":"r1","amount":100}`
	}
	if r.Ctx == nil {
		r.Ctx = context.Background()
	}
	// No GetBody, and an opaque reader: net/http must not send again by itself.
	req, err := http.NewRequestWithContext(r.Ctx, r.Method, c.URL+r.Path, io.MultiReader(strings.NewReader(r.Body)))
	if err != nil {
		return Reply{Err: err}
	}
	req.ContentLength = int64(len(r.Body))
	if r.Chunked {
		req.ContentLength = -1
	}
	if r.Body == "" {
		req.Body = nil
	}
	if form && r.Body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	response, err := c.HTTP.Do(req)
	if err != nil {
		return Reply{Err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Reply{Status: response.StatusCode, Header: response.Header, Body: string(body), Err: err}
}

// Post sends the zero Request with the key.
func (c *Client) Post(key string) Reply { return c.Do(Request{Key: key}) }

// Want fails the test unless the answer came whole with that status. It returns r.
func (r Reply) Want(t *testing.T, status int) Reply {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("got error %v, want status %d", r.Err, status)
	}
	if r.Status != status {
		t.Fatalf("got status %d (%s), want %d", r.Status, r.Body, status)
	}
	return r
}

// WantLost fails the test unless there was no answer at all.
func (r Reply) WantLost(t *testing.T) {
	t.Helper()
	if r.Err == nil || r.Status != 0 {
		t.Fatalf("got status %d, err %v, want no answer", r.Status, r.Err)
	}
}

// Replayed reports whether the answer is marked as a replay.
func (r Reply) Replayed() bool { return r.Header.Get("Idempotent-Replayed") == "true" }

// WantCounts compares the sends and effects of one key in the ledger, and marks the test as failed if they differ.
func WantCounts(t *testing.T, s *mockserver.Server, key string, sends, effects int) {
	t.Helper()
	if got := s.Ledger().Sends(key); got != sends {
		t.Errorf("sends of %q: got %d, want %d", key, got, sends)
	}
	if got := s.Ledger().Effects(key); got != effects {
		t.Errorf("effects of %q: got %d, want %d", key, got, effects)
	}
}

// Member returns the value at the names in a JSON text, taking the first element of each array; nil: there is none.
func Member(t *testing.T, body string, path ...string) any {
	t.Helper()
	var at any
	if err := json.Unmarshal([]byte(body), &at); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	for _, name := range path {
		switch node := at.(type) {
		case map[string]any:
			at = node[name]
		case []any:
			at = node[0]
		default:
			at = nil
		}
	}
	return at
}

// Rules returns the rule of each violation by the client that the server has noted in its ledger, in order.
func Rules(s *mockserver.Server) []string {
	var ids []string
	for _, v := range s.Ledger().Snapshot().Violations {
		ids = append(ids, v.Rule)
	}
	return ids
}

// In returns a context that ends after d. The caller must call the function.
func In(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// StopReader is a body that ends the request itself: it returns Text, then calls Stop and fails.
type StopReader struct {
	Text string // what is still to be read
	Stop func() // called after Text has been read
}

// Read returns the bytes of Text. After them it calls Stop, which ends the request in the middle of its body, and fails.
func (r *StopReader) Read(p []byte) (int, error) {
	if r.Text == "" {
		r.Stop()
		return 0, context.Canceled
	}
	n := copy(p, r.Text)
	r.Text = r.Text[n:]
	return n, nil
}
