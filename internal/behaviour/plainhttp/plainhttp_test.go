// Package plainhttp_test holds Client.Transport and Client.StandardClient to net/http: each row of one table is a conversation, which an
// http.Client over an http.Transport has, and our StandardClient on such a transport. What both see is the same, but for the differences that the row names.
package plainhttp_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// row is a conversation in which net/http promises something.
type row struct {
	name    string
	server  server
	beneath func(*http.Transport) // changes the transport beneath
	above   func(*http.Client)    // changes the client
	talk    func(*talk)
	// passing and operation are what is seen otherwise where the requests pass, and where they are operations, since they have a key. Nil: nothing.
	passing, operation *difference
}

// difference is what ours sees otherwise: lines of net/http's transcript after a -, and lines of ours after a +, in order.
type difference struct {
	why   string
	edits []string
}

// kind is what sends.
type kind int

const (
	bare      kind = iota // an http.Transport
	passing               // ours; the requests are no operations
	operation             // ours; each request but a GET or HEAD has a key, beside net/http's with such a key
)

// TestTable runs each row with net/http alone and with ours.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, r := range table() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Run("passing", func(t *testing.T) {
				t.Parallel()
				compare(t, r.run(t, bare, false), r.run(t, passing, false), r.passing)
			})
			t.Run("operation", func(t *testing.T) {
				t.Parallel()
				compare(t, r.run(t, bare, true), r.run(t, operation, true), r.operation)
			})
		})
	}
}

// table returns the rows, whose names differ.
func table() []row {
	return slices.Concat(promises(), bodies(), answers(), redirects(), failures(), ends(), protocol(), versionTwo())
}

func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range table() {
		if seen[r.name] {
			t.Errorf("two rows %q", r.name)
		}
		seen[r.name] = true
		for _, d := range []*difference{r.passing, r.operation} {
			if d != nil && d.why == "" {
				t.Errorf("row %q has a difference without a reason", r.name)
			}
		}
	}
}

// compare reports where ours is not as net/http's, but for the difference.
func compare(t *testing.T, theirs, ours []string, d *difference) {
	t.Helper()
	if got := edits(theirs, ours); !slices.Equal(got, d.lines()) {
		t.Errorf("ours differs by\n%s\nwant\n%s\nnet/http alone\n%s", lines(got), lines(d.lines()), lines(theirs))
	}
}

func (d *difference) lines() []string {
	if d == nil {
		return nil
	}
	return d.edits
}

// edits returns the lines that only theirs has, each after a -, and those that only ours has, each after a +. What both have is as long as can be.
func edits(theirs, ours []string) (all []string) {
	common := make([][]int, len(theirs)+1) // how many lines the rests from i and j have in common
	for i := range common {
		common[i] = make([]int, len(ours)+1)
	}
	for i := len(theirs) - 1; i >= 0; i-- {
		for j := len(ours) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); theirs[i] == ours[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(theirs) || j < len(ours) {
		switch {
		case i < len(theirs) && j < len(ours) && theirs[i] == ours[j]:
			i, j = i+1, j+1
		case i < len(theirs) && (j == len(ours) || common[i+1][j] >= common[i][j+1]):
			all = append(all, "-"+theirs[i])
			i++
		default:
			all = append(all, "+"+ours[j])
			j++
		}
	}
	return all
}

func lines(all []string) string { return "\t" + strings.Join(all, "\n\t") }

// patience is how long a conversation may take on a machine that is busy.
const patience = 10 * time.Second

// run has the conversation and returns the transcript: first what the client saw, then what the server saw.
func (r row) run(t *testing.T, k kind, keys bool) []string {
	t.Helper()
	c := &talk{T: t, kind: k, keys: keys, turn: make(chan struct{})}
	address, roots := r.server.start(c)
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = roots
	if r.beneath != nil {
		r.beneath(base)
	}
	t.Cleanup(base.CloseIdleConnections)
	c.url, c.transport, c.client = address, base, &http.Client{Transport: base}
	if k != bare {
		once, journal := newClient(t, k, base)
		c.transport, c.client, c.journal = once.Transport(), once.StandardClient(), journal
	}
	if r.above != nil {
		r.above(c.client)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.talk(c)
	}()
	select {
	case <-over:
		c.close()
	case <-time.After(patience):
		t.Errorf("the conversation does not end, after\n%s", lines(c.transcript()))
	}
	return c.transcript()
}

// newClient returns a client with the zero Config where requests pass, and with one attempt for each operation, since the table is about what is seen of one.
func newClient(t *testing.T, k kind, base http.RoundTripper) (*oncehttp.Client, persist.Journal) {
	t.Helper()
	cfg := oncehttp.Config{Journal: memory.New(), Transport: base}
	if k == operation {
		cfg.Retry = oncehttp.Policy{MaxAttempts: 1}
	}
	once, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := once.Close(); err != nil {
			t.Error(err)
		}
	})
	return once, cfg.Journal
}

// server says how a row's server answers: handle, or raw for one that speaks without net/http.
type server struct {
	handle func(*talk, http.ResponseWriter, *http.Request)
	raw    func(*talk, *wire)
	tls    bool
	http2  bool // over TLS
}

// httptestServer starts the server of a handler.
func (s server) httptestServer(c *talk) *httptest.Server {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handle(c, w, r) }))
	srv.Config.ErrorLog = quiet
	srv.EnableHTTP2 = s.http2
	if s.tls || s.http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	return srv
}
