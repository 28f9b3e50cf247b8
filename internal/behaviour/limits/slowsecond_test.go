package limits_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/persist"
)

// asksBefore is an API of which something is asked before an operation is sent: a token, or what stands under a reference.
type asksBefore struct {
	name      string
	config    func(*oncehttp.Config)
	transport http.RoundTripper
	begin     func(t *testing.T, c *oncehttp.Client, shared enginetest.Shared) // leaves an operation "k" unfinished, and due
	request   func(t *testing.T) *http.Request
	doubted   bool // it was sent, and the answer was lost
	isSend    func(*http.Request) bool
}

// tokenBefore is an API that hands out tokens.
func tokenBefore(t *testing.T) asksBefore {
	return asksBefore{
		name: "token", config: servertest.WithTickets, transport: longTickets()(t), request: paced, isSend: func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/payments") },
		begin: func(t *testing.T, c *oncehttp.Client, _ enginetest.Shared) {
			if err := c.Enqueue(paced(t), "k"); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// lookupBefore is an API that says what stands under a reference. Nothing does, since the first send was lost.
func lookupBefore(*testing.T) asksBefore {
	s := &servertest.Shop{Lose: 1}
	return asksBefore{
		name: "lookup",
		config: func(cfg *oncehttp.Config) {
			servertest.Shopping(cfg)
			cfg.Retry.AskFirst = true
		},
		transport: s, doubted: true, isSend: func(req *http.Request) bool { return req.Method == http.MethodPost },
		request: func(t *testing.T) *http.Request { return clienttest.Post(t, servertest.OrderOne) },
		begin: func(t *testing.T, c *oncehttp.Client, shared enginetest.Shared) {
			one := clienttest.Post(t, servertest.OrderOne)
			_, _ = c.DoKey(one, "k")
			s.Orders = nil
			shared.FallDue(t)
		},
	}
}

// sendsCounted counts the sends and the other requests of a client.
type sendsCounted struct {
	to            http.RoundTripper
	isSend        func(*http.Request) bool
	sends, others atomic.Int32
}

func (s *sendsCounted) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.isSend(req) {
		s.sends.Add(1)
	} else {
		s.others.Add(1)
	}
	return s.to.RoundTrip(req)
}

// goingOn lets a client go on with the operation "k", by a call or by a pass. It returns a function that waits for a call, or ends the pass.
func goingOn(t *testing.T, c *oncehttp.Client, how string, api *asksBefore, shared enginetest.Shared) (end func()) {
	t.Helper()
	switch {
	case how == "Resume" && shared.Server:
		return resumingAgain(t, c)
	case how != "Do":
		return passing(t, c, how)
	}
	result := make(chan error, 1)
	req := api.request(t)
	go func() {
		_, err := c.DoKey(req, "k")
		result <- err
	}()
	return func() {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
}

// resumingAgain makes one pass after another until it is stopped: what one has given back may be due a moment later by the clock of a server.
func resumingAgain(t *testing.T, c *oncehttp.Client) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
			for range c.Resume(ctx) { // whatever it yields, the record tells
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// eachAsking plays a test for each way to go on with an operation, each API that is asked before a send, and each of the engines.
func eachAsking(t *testing.T, engines []enginetest.Engine, test func(t *testing.T, how string, api asksBefore, shared enginetest.Shared)) {
	for _, how := range []string{"Do", "Run", "Resume"} {
		for name, api := range map[string]func(*testing.T) asksBefore{"token": tokenBefore, "lookup": lookupBefore} {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				enginetest.OnEach(t, engines, func(t *testing.T, shared enginetest.Shared) { test(t, how, api(t), shared) })
			})
		}
	}
}

// shortLease lets operations be given back soon where time is real.
func shortLease(shared enginetest.Shared) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Lease = shared.Time(0, 900*time.Millisecond) }
}

// TestLimiterLeavesBeforeTheSend: where the limiter of a client lets a token be asked for, or a lookup be made, and no send go out for hours, the
// operation is as it was, and another client sends it. The first one sends nothing.
func TestLimiterLeavesBeforeTheSend(t *testing.T) {
	t.Parallel()
	eachAsking(t, enginetest.AllEngines(), func(t *testing.T, how string, api asksBefore, shared enginetest.Shared) {
		one, other := shared.Two()
		limiter := &fewTurns{left: 1, open: make(chan struct{})}
		open := sync.OnceFunc(func() { close(limiter.open) })
		defer open() // so that no client waits for it at the end
		none, live := &sendsCounted{to: api.transport, isSend: api.isSend}, &sendsCounted{to: api.transport, isSend: api.isSend}
		begins, _ := clienttest.New(t, api.transport, clienttest.On(one, api.config, clienttest.OneAttempt))
		waits, _ := clienttest.New(t, none, clienttest.On(one, api.config, shortLease(shared), clienttest.LimitedBy(limiter)))
		free, _ := clienttest.New(t, live, clienttest.On(other, api.config))
		api.begin(t, begins, shared)
		before := clienttest.Lookup(t, free, "k")
		end := goingOn(t, waits, how, &api, shared)
		var rec persist.Record
		shared.Await(time.Minute, func() bool {
			asked := none.others.Load() >= 1 // then it is claimed, or given back
			rec = clienttest.Lookup(t, free, "k")
			return asked && rec.LeaseOwner == "" && rec.MaybeSent == api.doubted
		})
		most := int32(1)
		if how != "Do" && shared.Server { // another worker, or pass, has claimed it just when it was given back
			most = 2
		}
		if asks := none.others.Load(); asks < 1 || asks > most || none.sends.Load() != 0 {
			t.Errorf("%d requests before the send, %d sends; want one and none", asks, none.sends.Load())
		}
		soon := time.Now().Add(shared.Time(0, time.Second)) // a server's clock is its own
		if rec.State != persist.StatePending || rec.LeaseOwner != "" || rec.MaybeSent != api.doubted || rec.Attempts != before.Attempts || rec.Token != "" || rec.NextAttempt.After(soon) {
			t.Errorf("%v, lease of %q, maybe sent %t, %d attempts, token %q, due at %v; want it as it was, and due", rec.State, rec.LeaseOwner, rec.MaybeSent, rec.Attempts, rec.Token, rec.NextAttempt)
		}
		var resp *http.Response
		var err error
		shared.Await(0, func() bool {
			resp, err = free.DoKey(api.request(t), "k")
			return !errors.Is(err, oncehttp.ErrInFlight)
		})
		if err != nil || resp.StatusCode != 201 || live.sends.Load() != 1 {
			t.Fatalf("the other: %v after %d sends", err, live.sends.Load())
		}
		if err := free.Flush(t.Context()); err != nil { // until it is recorded, it is the other's
			t.Error(err)
		}
		if shared.Server {
			open()
		}
		time.Sleep(shared.Time(13*time.Hour, 100*time.Millisecond))
		end()
		if none.sends.Load() != 0 || none.others.Load() > most {
			t.Errorf("%d sends and %d other requests by the first; want no more", none.sends.Load(), none.others.Load())
		}
	})
}

// TestSlowLimiterBeforeTheSend: an operation that nobody else takes is sent although its limiter takes long: before each request, or before all but
// the first. It is given back until all requests may go out that it needs.
func TestSlowLimiterBeforeTheSend(t *testing.T) {
	t.Parallel()
	for name, limiter := range map[string]struct {
		new  func(enginetest.Shared) oncehttp.Limiter
		asks map[string]int32 // how often that is asked before the send
	}{
		"each": {func(shared enginetest.Shared) oncehttp.Limiter {
			return &clienttest.Bucket{Period: shared.Time(10*time.Minute, 600*time.Millisecond)}
		}, map[string]int32{"token": 1, "lookup": 1}},
		"all but first": {func(shared enginetest.Shared) oncehttp.Limiter {
			return &fewTurns{left: 1, hours: shared.Time(0, 600*time.Millisecond)}
		}, map[string]int32{"token": 1, "lookup": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachAsking(t, enginetest.Engines(), func(t *testing.T, how string, api asksBefore, shared enginetest.Shared) {
				j, counted := shared.Open(), &sendsCounted{to: api.transport, isSend: api.isSend}
				begins, _ := clienttest.New(t, api.transport, clienttest.On(j, api.config, clienttest.OneAttempt))
				c, _ := clienttest.New(t, counted, clienttest.On(j, api.config, shortLease(shared), clienttest.LimitedBy(limiter.new(shared))))
				api.begin(t, begins, shared)
				end := goingOn(t, c, how, &api, shared)
				shared.Await(13*time.Hour, func() bool { return clienttest.Lookup(t, c, "k").State == persist.StateConfirmed })
				end()
				asks := counted.others.Load() - limiter.asks[api.name]
				if (how == "Run" || how != "Do" && shared.Server) && asks == 1 { // another worker, or pass, has claimed it just when it was given back
					asks = 0
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || counted.sends.Load() != 1 || asks != 0 {
					t.Errorf("%v after %d sends, and %d requests before; want one, after %d", rec.State, counted.sends.Load(), counted.others.Load(), limiter.asks[api.name])
				}
			})
		})
	}
}
