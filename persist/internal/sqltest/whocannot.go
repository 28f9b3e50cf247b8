package sqltest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
	"github.com/oncehttp/oncehttp/profile"
)

// cannot is one thing that the lacking one of two workers does not have.
type cannot struct {
	name           string
	has, lacks     func(*oncehttp.Config)
	seals, unseals string // keys, of one letter each, of the one that has it and of the other
}

// cannots returns the differences between two clients for which only one of them can send an operation, such as its credentials. Each has a name, a change
// of the Config of the client that can (has) and of the one that cannot (lacks), and the letters of the keys by which each of them encrypts its journal.
func cannots() []cannot {
	return []cannot{
		{"Authorize", func(*oncehttp.Config) {}, func(c *oncehttp.Config) { c.Authorize = nil }, "", ""},
		{"the region", func(c *oncehttp.Config) { c.Region = "eu" }, func(c *oncehttp.Config) { c.Region = "us" }, "", ""},
		{"the profile", func(c *oncehttp.Config) {
			p := profile.Draft07()
			p.Name = "own"
			c.Profile = p
		}, func(*oncehttp.Config) {}, "", ""},
		{"the key of the seal", func(*oncehttp.Config) {}, func(*oncehttp.Config) {}, "ba", "a"},
	}
}

// WhoCannot tests two workers on a journal. The first one lacks something that the operations need, and must claim nothing. The second one lacks nothing,
// and must send all at once. c.seals and c.unseals are the letters of the keys of the able and of the lacking one. opener is called for each test, and returns
// open: that opens a new journal, and the next time the same one, as another process would.
func WhoCannot(t *testing.T, opener func(t *testing.T) (open func() persist.Journal)) {
	for _, c := range cannots() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open := opener(t)
			raw := open()
			lacking := sealed(t, open(), c.unseals) // before there is anything that it could not open
			able := sealed(t, open(), c.seals)
			whoCannot(t, raw, able, lacking, c)
		})
	}
}

// sealed returns the journal with records encrypted by the first of these keys, a letter for each, and read by all; the journal itself without any. Each key is
// made of its letter.
func sealed(t *testing.T, j persist.Journal, keys string) persist.Journal {
	t.Helper()
	if keys == "" {
		return j
	}
	var c seal.Config
	for _, id := range keys {
		c.Keys = append(c.Keys, seal.Key{ID: string(id), Secret: bytes.Repeat([]byte{byte(id)}, seal.SecretSize)})
	}
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	over, err := s.Journal(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return over
}

// whoCannot lets a worker run that cannot send the operations (on the journal lacking), before one that can (on able). The first one must leave all records,
// as raw shows them without decryption, as they are, and the second one sends them. A request may go out only with the credentials that Authorize sets.
func whoCannot(t *testing.T, raw, able, lacking persist.Journal, c cannot) {
	const n = 20
	var mu sync.Mutex
	sent := map[string]int{}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		mu.Lock()
		sent[req.Header.Get("Idempotency-Key")]++
		mu.Unlock()
		if rw.WriteHeader(http.StatusCreated); req.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("sent with %q", req.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(api.Close)
	client := func(j persist.Journal, change func(*oncehttp.Config)) *oncehttp.Client {
		cfg := oncehttp.Config{Journal: j, Lease: 3 * time.Second, Origins: []string{api.URL}, Authorize: func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer x")
			return nil
		}}
		change(&cfg)
		made, err := oncehttp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made.Close() })
		return made
	}
	has, lacks := client(able, c.has), client(lacking, c.lacks)
	for i := range n {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, strings.NewReader("{}"))
		req.Header.Set("Authorization", "Bearer y")
		if err := has.Enqueue(req, oncehttp.Key(fmt.Sprint("k", i))); err != nil {
			t.Fatal(err)
		}
	}
	defer running(lacks)()
	time.Sleep(4 * time.Second) // longer than a lease
	for rec, err := range raw.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil || rec.Drives != 0 || rec.LeaseOwner != "" || rec.MaybeSent || rec.Attempts != 0 || !rec.NextAttempt.IsZero() {
			t.Errorf("%s: %d drives, leased by %q, error %v; want it as it was begun", rec.Key, rec.Drives, rec.LeaseOwner, err)
		}
	}
	defer running(has)()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		keys := len(sent)
		mu.Unlock()
		if keys == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d were sent by the worker that can", keys, n)
		}
	}
}

// running calls Run of a client in the background, until stop is called.
func running(c *oncehttp.Client) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- c.Run(ctx) }()
	return func() {
		cancel()
		<-over
	}
}
