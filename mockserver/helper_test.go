package mockserver_test

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

// reply is an answer as a test looks at it.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of the request, or of reading the body
}

// client sends over one pipe.
type client struct {
	t    *testing.T
	http *http.Client
	url  string
}

// bubble runs the test in virtual time with a server over a pipe.
func bubble(t *testing.T, cfg mockserver.Config, run func(*mockserver.Server, *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(cfg)
		pipe := server.Pipe()
		run(server, newClient(t, pipe.Transport(), pipe.URL))
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func newClient(t *testing.T, transport http.RoundTripper, url string) *client {
	noFollow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{t: t, url: url, http: &http.Client{Transport: transport, CheckRedirect: noFollow}}
}

// request is what a test sends; the zero value posts an empty JSON object.
type request struct {
	method, path, key, body string
	header                  http.Header
	ctx                     context.Context
	chunked                 bool
}

func (c *client) do(r request) reply {
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/payments"
	}
	if r.body == "" && r.method == http.MethodPost {
		r.body = `{"reference":"r1","amount":100}`
	}
	if r.ctx == nil {
		r.ctx = context.Background()
	}
	// No GetBody, and an opaque reader: net/http must not send again by itself.
	req, err := http.NewRequestWithContext(r.ctx, r.method, c.url+r.path, io.MultiReader(strings.NewReader(r.body)))
	if err != nil {
		return reply{err: err}
	}
	req.ContentLength = int64(len(r.body))
	if r.chunked {
		req.ContentLength = -1
	}
	if r.body == "" {
		req.Body = nil
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	response, err := c.http.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{status: response.StatusCode, header: response.Header, body: string(body), err: err}
}

func (c *client) post(key string) reply { return c.do(request{key: key}) }

// want fails unless the answer came whole with that status.
func (r reply) want(t *testing.T, status int) reply {
	t.Helper()
	if r.err != nil {
		t.Fatalf("got error %v, want status %d", r.err, status)
	}
	if r.status != status {
		t.Fatalf("got status %d (%s), want %d", r.status, r.body, status)
	}
	return r
}

// wantLost fails unless there was no answer at all.
func (r reply) wantLost(t *testing.T) {
	t.Helper()
	if r.err == nil || r.status != 0 {
		t.Fatalf("got status %d, err %v, want no answer", r.status, r.err)
	}
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// wantCounts holds the ledger to sends and effects of one key.
func wantCounts(t *testing.T, s *mockserver.Server, key string, sends, effects int) {
	t.Helper()
	if got := s.Ledger().Sends(key); got != sends {
		t.Errorf("sends of %q: got %d, want %d", key, got, sends)
	}
	if got := s.Ledger().Effects(key); got != effects {
		t.Errorf("effects of %q: got %d, want %d", key, got, effects)
	}
}

func member(t *testing.T, body string, path ...string) any {
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

func rules(s *mockserver.Server) []string {
	var ids []string
	for _, v := range s.Ledger().Snapshot().Violations {
		ids = append(ids, v.Rule)
	}
	return ids
}

func in(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
