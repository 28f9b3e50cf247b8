package sqltest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// companions are two clients on one journal with different Configs, in two processes.
type companions struct {
	name       string
	one, other func(*oncehttp.Config)
	statuses   []int // of the answers; 0: it takes effect, and the connection breaks
	begin      func(*company) error
	act        func(*company) error // of the other
	want       []error              // matched by the act's error; none: it succeeds
	sends      int
	hold       persist.HoldReason // of the record under "k" in the end
	slowly     bool               // the first answer takes until its client has left
}

// company is one such pair at work.
type company struct {
	*testing.T
	one, other *oncehttp.Client
	api        *httptest.Server
	journal    persist.Journal
	sends      atomic.Int32
}

// Company lets clients of different Configs share a journal on a server, each with a connection of its own. It checks which client's settings count: the rules
// of the facts in a record, of the same request, of local settings, and of windows, keeping and pauses. opener is called for each test, and returns open: that
// opens a new journal, and the next time the same one anew. A status of 0 breaks the connection; the last status is for all further requests.
func Company(t *testing.T, opener func(t *testing.T) (open func() persist.Journal)) {
	for _, pair := range testrun.Some(slices.Concat(companyOfRecords(), companyOfRequests(), companyOfLocals(), companyOfTimes(), companyOfKeeping(), companyOfKeys(), companyOfReaders(), companyOfActs()), 3) {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			c := &company{T: t}
			c.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				n := int(c.sends.Add(1))
				if _, _ = io.Copy(io.Discard, req.Body); pair.slowly && n == 1 { // once it is read, the server sees the client leave
					<-req.Context().Done()
				}
				status := pair.statuses[min(n, len(pair.statuses))-1]
				if status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"done":1}`) // the client reports its result
			}))
			t.Cleanup(c.api.Close)
			open := opener(t)
			c.journal = open()
			c.one, c.other = c.client(c.journal, pair.one), c.client(open(), pair.other)
			pair.judge(c)
		})
	}
}

// client returns a client on the journal. change adjusts its Config. A company is two clients with different configurations on one journal.
func (c *company) client(j persist.Journal, change func(*oncehttp.Config)) *oncehttp.Client {
	c.Helper()
	cfg := oncehttp.Config{Journal: j, Origins: []string{c.api.URL}, Retry: oncehttp.Policy{MaxAttempts: 1}}
	if change != nil {
		change(&cfg)
	}
	made, err := oncehttp.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = made.Close() })
	return made
}

// judge runs one row of the tests of two clients on one journal: mostly the first client begins the operation, and the other acts on it. An unknown outcome of
// the first step is part of many rows. It compares the error of the second step, the number of requests at the API and, if hold is set, the reason of the
// record's hold with the row.
func (p *companions) judge(c *company) {
	c.Helper()
	if err := p.begin(c); err != nil && !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		c.Fatal(err)
	}
	err := p.act(c)
	for _, want := range p.want {
		if !errors.Is(err, want) {
			c.Errorf("%v, want %v", err, want)
		}
	}
	if len(p.want) == 0 && err != nil {
		c.Error(err)
	}
	if n := int(c.sends.Load()); n != p.sends {
		c.Errorf("%d sends, want %d", n, p.sends)
	}
	records := 0
	for _, err := range c.journal.List(c.Context(), persist.Query{AllAccounts: true}) {
		if records++; err != nil {
			c.Error(err)
		}
	}
	if records != 1 {
		c.Errorf("%d records of one operation", records)
	}
	if rec, err := c.one.Lookup(c.Context(), "k"); p.hold != "" && (err != nil || rec.HoldReason != p.hold) {
		c.Errorf("held: %q (%v), want %q", rec.HoldReason, err, p.hold)
	}
}

// request returns the request that both clients make.
func (c *company) request() *http.Request {
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.api.URL+"/p?n=1", strings.NewReader(`{"order":"o1","id":"i1"}`))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Stripe-Account", "acct_1")
	return req
}

// doOne sends the request by the first of the two clients.
func doOne(c *company) error { return c.do(c.one) }

// doOther sends the request by the other client.
func doOther(c *company) error { return c.do(c.other) }

// do sends the request of the company by client, under the key "k".
func (c *company) do(client *oncehttp.Client) error {
	resp, err := client.DoKey(c.request(), "k")
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// keyless returns a function that makes the request by one of the two clients, without a key.
func keyless(client func(*company) *oncehttp.Client) func(*company) error {
	return func(c *company) error {
		resp, err := client(c).Do(c.request())
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
}

// theOne returns the first of the two clients on one journal.
func theOne(c *company) *oncehttp.Client { return c.one }

// theOther returns the second of the two clients on one journal.
func theOther(c *company) *oncehttp.Client { return c.other }

// enqueueOne enqueues the request by the first of the two clients.
func enqueueOne(c *company) error { return c.one.Enqueue(c.request(), "k") }

// resumed calls Resume until it runs the operation, and returns the operation's error (nil: success). By the journal's clock the operation may be due only a
// moment later.
func resumed(ctx context.Context, client *oncehttp.Client) error {
	for range 1000 {
		for _, err := range client.Resume(ctx) {
			return err
		}
		<-time.After(time.Millisecond)
	}
	return errors.New("nothing is due")
}

// ofShop returns a change of a Config: the client gets a profile (the rules of its API) with the name "shop", as change has adjusted it.
func ofShop(change func(*profile.Profile)) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Profile = profile.Draft07()
		cfg.Profile.Name = "shop"
		change(cfg.Profile)
	}
}

// companyOfRecords returns tests of two clients on one journal whose profiles (the rules of an API) read the same answer differently. The profile in the
// record, the first client's, must decide: where the other reads an answer differently, the operation is held. In each row, one and other change the two
// Configs, statuses are the API's answers in order (0: it breaks the connection), begin and act are the two steps, want are the errors of act (none: success),
// sends counts the requests at the API, and hold is the reason of a hold at the end.
func companyOfRecords() []companions {
	unknown := []error{oncehttp.ErrOutcomeUnknown}
	done := ofShop(func(p *profile.Profile) { p.AlreadyDone = []profile.Matcher{{Status: []int{409}, Pointer: "/done"}} })
	refuses := ofShop(func(p *profile.Profile) { p.BusinessConflict = []profile.Matcher{{Status: []int{409}}} })
	holds := func(c *company) error {
		if err := resumed(c.Context(), c.other); !errors.Is(err, oncehttp.ErrHeld) {
			c.Errorf("%v, want it held", err)
		}
		return doOne(c)
	}
	return []companions{
		{name: "an answer that other facts do not read is a success", one: done, other: refuses, statuses: []int{409}, begin: enqueueOne, act: holds, sends: 1},
		{
			name: "an answer that other facts do not read is a refusal", one: refuses, other: done, statuses: []int{409}, begin: enqueueOne, act: holds,
			want: append(unknown, oncehttp.ErrHeld), sends: 1, hold: persist.HoldUnread,
		},
		{
			name: "the carrier is the record's", one: ofShop(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Nowhere} }),
			other: ofShop(func(*profile.Profile) {}), statuses: []int{0, 201}, begin: doOne, act: doOther, want: unknown, sends: 1, hold: persist.HoldNoKey,
		},
	}
}

// companyOfRequests returns tests of two clients on one journal that judge differently whether two requests are the same. In each row, one and other change
// the two Configs, statuses are the API's answers in order (0: it breaks the connection), begin and act are the two steps, want are the errors of act (none:
// success), and sends counts the requests at the API: 1 means that the second step sent nothing, since it may be another request.
func companyOfRequests() []companions {
	secret := func(cfg *oncehttp.Config) { cfg.SecretParameters = []string{"n"} }
	ofBody := func(cfg *oncehttp.Config) { cfg.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/order") }
	accounts := ofShop(func(p *profile.Profile) { p.AccountHeaders = []string{"Stripe-Account"} })
	unknown := []error{oncehttp.ErrOutcomeUnknown}
	lost := []int{0, 201}
	return []companions{
		{name: "a parameter that one leaves out", one: secret, statuses: lost, begin: doOne, act: doOther, want: append(unknown, oncehttp.ErrConfig), sends: 1},
		{name: "a header that selects an account for one", one: ofShop(func(*profile.Profile) {}), other: accounts, statuses: lost, begin: doOne, act: doOther, sends: 2}, // one operation for both: its answer was lost, and it is sent once more
		{name: "random keys, then of the body", other: ofBody, statuses: lost, begin: keyless(theOne), act: keyless(theOther), want: unknown, sends: 1},
		{name: "of the body, then random keys", one: ofBody, statuses: lost, begin: keyless(theOne), act: keyless(theOther), want: unknown, sends: 1},
		{
			name: "no operation to the other", other: func(cfg *oncehttp.Config) { cfg.Methods = []string{"PATCH"} }, statuses: lost,
			begin: keyless(theOne), act: keyless(theOther), want: unknown, sends: 1,
		},
	}
}

// gate is a limiter. It lets nothing go out until it is opened.
type gate chan struct{}

// Wait implements oncehttp.Limiter. It waits until the gate is closed, as a channel, or until ctx ends.
func (g gate) Wait(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusing is a limiter with an error for every send.
type refusing struct{}

// Wait implements oncehttp.Limiter. It always refuses.
func (refusing) Wait(context.Context) error { return errors.New("not now") }

// unreachable is a transport without a way to any server.
type unreachable struct{}

// RoundTrip implements [http.RoundTripper]. Each dial fails, so nothing is ever sent.
func (unreachable) RoundTrip(req *http.Request) (*http.Response, error) {
	return (&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}}).RoundTrip(req)
}

// companyOfLocals returns tests of two clients on one journal about settings that one of them has for itself, such as a limiter: if the other client cannot
// send for that reason, the record must stay as it was. In each row, one and other change the two Configs, statuses are the API's answers, begin and act are
// the two steps, and sends counts the requests at the API. The client that can send does so at the end.
func companyOfLocals() []companions {
	local := func(c *company) error {
		_ = resumed(c.Context(), c.other) // it cannot
		rec, err := c.one.Lookup(c.Context(), "k")
		if err != nil || rec.Attempts != 0 || rec.State != persist.StatePending || rec.MaybeSent || rec.LeaseOwner != "" || rec.NextAttempt.After(time.Now().Add(time.Second)) {
			c.Errorf("%v, %d attempts, maybe sent %t, lease of %q, due at %v (%v); want it as it was", rec.State, rec.Attempts, rec.MaybeSent, rec.LeaseOwner, rec.NextAttempt, err)
		}
		return doOne(c)
	}
	waits := make(gate)
	return []companions{
		{name: "a limiter that refuses", other: limitedBy(refusing{}), statuses: []int{201}, begin: enqueueOne, act: local, sends: 1},
		{name: "no connections", other: func(cfg *oncehttp.Config) { cfg.Transport = unreachable{} }, statuses: []int{201}, begin: enqueueOne, act: local, sends: 1},
		{
			name: "a limiter that waits", one: func(cfg *oncehttp.Config) { limitedBy(waits)(cfg); cfg.Lease = 300 * time.Millisecond }, statuses: []int{201},
			begin: func(*company) error { return nil }, act: func(c *company) error { return takenOver(c, waits) }, sends: 1,
		},
	}
}

// limitedBy returns a change of a Config: the client gets this limiter for every origin.
func limitedBy(l oncehttp.Limiter) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Limiter = func(string) oncehttp.Limiter { return l } }
}

// takenOver lets the other client send the operation while the limiter of the first one makes it wait: during the wait it gives its lease (the right to send)
// back. The first one must get the recorded answer.
func takenOver(c *company, waits gate) error {
	first := make(chan error, 1)
	go func() { first <- doOne(c) }()
	left := func() bool {
		rec, err := c.other.Lookup(c.Context(), "k")
		return err == nil && rec.LeaseOwner == "" && !rec.MaybeSent
	}
	for end := time.Now().Add(30 * time.Second); !left(); {
		if time.Now().After(end) {
			c.Fatal("it is not left")
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := doOther(c); err != nil {
		c.Errorf("the other: %v", err)
	}
	if err := c.other.Flush(c.Context()); err != nil { // until its answer is recorded, the other client has the operation
		c.Error(err)
	}
	close(waits)
	return <-first
}
