// Package company lets two clients share a journal whose Configs differ in one field, or in two.
package company_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

var (
	whole   = flag.Bool("company", false, "TestCompany runs every cell of its matrix; else a sample that has each pair of values")
	onlyRow = flag.String("row", "", "TestCompany runs only the cells of rows whose name begins so, all of them")
)

// cell is one cell of the matrix: the first client has the one Config and begins, the second one has the other and acts.
type cell struct {
	*testing.T
	name     string
	row      row
	reversed bool
	scenario scenario
	act      act
	kind     kind

	store   *store
	server  *server
	procs   [2]process
	clients [2]*oncehttp.Client
	ops     []*op
	headers map[string]string // of each request

	mu       sync.Mutex
	failures []string
}

// op is one intent of the business.
type op struct {
	order   string
	key     oncehttp.Key // empty: its caller names none
	named   oncehttp.Key // the generated key that an error has named
	tenant  string
	query   string
	note    string // empty: the cell's
	known   bool   // its caller has the final answer, or knows that there is none
	queued  bool   // Enqueue returned nil
	settled bool   // a person has settled it, or begun it once more
	begun   bool   // its caller has begun it, and was not told that nothing of it is left
	by      int    // the client that has begun it then
}

// begins notes that the n-th client sends the op: unless something of it stands, its record is that client's.
func (o *op) begins(n int) {
	if !o.begun {
		o.begun, o.by = true, n
	}
}

// String is the name of the cell.
func (c *cell) String() string {
	direction := "one begins"
	if c.reversed {
		direction = "the other begins"
	}
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.name, direction, c.scenario.name, c.act.name, c.kind)
}

// Errorf notes what is wrong.
func (c *cell) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}

// noteHeader looks like a credential by its name.
const noteHeader = "X-Session-Note"

// Where the payments go.
const (
	origin = "https://api.example.com"
	url    = origin + "/v1/payments"
)

// baseProfile is the API of all rows that say nothing else.
func baseProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Version = "shop", "1"
	p.Fingerprint = append(p.Fingerprint, "X-Tenant")
	p.Reference = &profile.Reference{
		Path: "/find?ref={/order}", List: "/data", Same: []profile.Same{{Request: "/order", Resource: "/reference"}}, FoundWithin: time.Minute,
	}
	return p
}

// window is that of the API.
const window = 24 * time.Hour

// client makes the n-th client anew, in the process of that number.
func (c *cell) client(n int) *oncehttp.Client {
	c.Helper()
	cfg := oncehttp.Config{
		Journal: c.procs[n].Journal, Transport: c.server, Profile: baseProfile(), Origins: []string{origin},
		Retry: oncehttp.Policy{MaxAttempts: 2, MinDelay: 10 * time.Millisecond, MaxDelay: 30 * time.Second},
	}
	side := c.row.one
	if (n == 1) != c.reversed {
		side = c.row.other
	}
	for _, set := range []func(*cell, *oncehttp.Config){c.row.both, side} {
		if set != nil {
			set(c, &cfg)
		}
	}
	client, err := oncehttp.New(cfg)
	if err != nil {
		c.Fatalf("client %d: %v", n, err)
	}
	return client
}

// side is which side of the row the n-th client has: 0 is one.
func (c *cell) side(n int) int {
	if c.reversed {
		return 1 - n
	}
	return n
}

// start starts the processes.
func (c *cell) start() {
	c.procs[0] = c.store.start()
	if c.procs[1] = c.procs[0]; c.kind == twoProcesses {
		c.procs[1] = c.store.start()
	}
	for n := range c.clients {
		c.clients[n] = c.client(n)
	}
}

// crash ends the process of the first client, with what it has in memory, and starts it again.
func (c *cell) crash() {
	c.procs[0].dead.Store(true)
	go func(old *oncehttp.Client) { _ = old.Close() }(c.clients[0]) // nobody is told
	c.procs[0] = c.store.start()
	c.clients[0] = c.client(0)
	if c.kind != twoProcesses {
		go func(old *oncehttp.Client) { _ = old.Close() }(c.clients[1]) // likewise
		c.procs[1] = c.procs[0]
		c.clients[1] = c.client(1)
	}
}

// request is what an op sends.
func (c *cell) request(o *op) *http.Request {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"?n="+o.query, strings.NewReader(`{"order":"`+o.order+`","id":"i-`+o.order+`"}`))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Tenant", o.tenant)
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	if o.note != "" {
		req.Header.Set(noteHeader, o.note)
	}
	return req
}

// intent is the op as the server counts it.
func (c *cell) intent(o *op) string {
	return strings.Join([]string{o.order, o.query, o.tenant, c.headers["Stripe-Account"], cmp.Or(o.note, c.headers[noteHeader])}, " ")
}

// call lets the n-th client send an op, and checks what it is told.
func (c *cell) call(n int, o *op) error {
	c.Helper()
	c.server.told(c.intent(o), nil, true)
	before := c.server.happened(c.intent(o))
	o.begins(n)
	resp, err := c.do(n, o)
	if err != nil {
		c.told(o, err, before)
		return err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	result := oncehttp.ResultOf(resp)
	switch {
	case err != nil:
		c.Errorf("the body: %v", err)
	case resp.StatusCode == 402, resp.StatusCode == 404:
		if o.known = true; c.server.happened(c.intent(o)) > 0 {
			c.Errorf("it is told a refusal, and it has happened: %+v", result)
		}
		c.server.told(c.intent(o), errors.New("a final refusal"), false)
	case resp.StatusCode < 300:
		if o.known = true; resp.StatusCode == 201 && !strings.Contains(string(body), `"intent":"`+c.intent(o)+`"`) {
			c.Errorf("it is given the answer of another request: %.60s, want %q", body, c.intent(o))
		}
		if c.server.happened(c.intent(o)) == 0 {
			c.Errorf("it is told a success, and nothing has happened: %+v", result)
		}
	default:
		c.Errorf("it is given %d: %+v", resp.StatusCode, result)
	}
	return nil
}

// do sends an op by the n-th client.
func (c *cell) do(n int, o *op) (*http.Response, error) { return c.prepared(n, o)() }

// prepared returns the call that sends an op by the n-th client as it is now, for another goroutine.
func (c *cell) prepared(n int, o *op) func() (*http.Response, error) {
	client, req, key := c.clients[n], c.request(o), cmp.Or(o.key, o.named)
	if key == "" {
		return func() (*http.Response, error) { return client.Do(req) }
	}
	return func() (*http.Response, error) { return client.DoKey(req, key) }
}

// told checks an error about an op.
func (c *cell) told(o *op, err error, before int) {
	c.Helper()
	verdicts := 0
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			verdicts++
		}
	}
	if verdicts != 1 {
		c.Errorf("%d verdicts: %v", verdicts, err)
	}
	var e *oncehttp.Error
	if errors.As(err, &e) && o.key == "" && errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		o.named = e.Key
	}
	happened := c.server.happened(c.intent(o))
	switch {
	case errors.Is(err, oncehttp.ErrNoEffect):
		if o.begun = false; happened > 0 || before > 0 {
			c.Errorf("it has happened, and a call says: %v", err)
		}
		c.server.told(c.intent(o), err, false)
	case errors.Is(err, oncehttp.ErrFinal) && errors.As(err, &e):
		under := c.server.under(cmp.Or(e.Key, o.key)) // of another request of the key, too
		if effect := e.Effect(); effect == oncehttp.EffectHappened && under == 0 || effect == oncehttp.EffectRefused && happened > 0 {
			c.Errorf("%q has %d effects, %d under its key, and a call says %q: %v", c.intent(o), happened, under, effect, err)
		}
	}
}

// run runs the cell in a bubble.
func (c *cell) run(t *testing.T) {
	dir := ""
	if c.kind == inFile {
		dir = testrun.Dir(t)
	}
	synctest.Test(t, func(t *testing.T) {
		c.T = t
		c.store, c.server = openStore(t, c.kind, dir), newServer()
		c.start()
		c.scenario.begin(c)
		c.act.do(c)
		c.server.set(fair)
		c.end()
		for _, client := range c.clients {
			if err := client.Close(); err != nil {
				c.Errorf("%v", err)
			}
		}
		if err := c.store.journal().Close(); err != nil {
			t.Error(err)
		}
		c.failures = append(c.failures, c.server.failures...)
	})
}

// records are all records of the journal.
func (c *cell) records() (all []persist.Record) {
	for rec, err := range c.store.journal().List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			c.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}
