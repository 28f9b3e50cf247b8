package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestRunWithoutConnections: a worker has no connections for a while, in which it has claimed operations. All are done soon after
// their leases are over, at the latest: the worker beside it is healthy.
func TestRunWithoutConnections(t *testing.T) {
	t.Parallel()
	const n, lease, outage = 300, 6 * time.Second, 5 * time.Second
	e := engine(t, durableURL(t), 8)
	proxy := sqltest.NewProxy(t, e.Address)
	var sends atomic.Int32
	begun := make(chan struct{})
	cut := sync.OnceFunc(func() { close(begun) })
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sends.Add(1) == 3 {
			cut()
		}
		time.Sleep(20 * time.Millisecond) // so that some are claimed and not sent yet
		w.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()
	worker := func(address string) *oncehttp.Client {
		c, err := oncehttp.New(oncehttp.Config{Journal: e.Open(t, address, 4500*time.Millisecond), Origins: sqltest.Loopback(), Lease: lease, ResumeWorkers: 32})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first, second := worker(proxy.Address()), worker(e.Address)
	for i := range n {
		req, err := http.NewRequest(http.MethodPost, api.URL, strings.NewReader("{}"))
		if err == nil {
			err = second.Enqueue(req, oncehttp.Key(fmt.Sprint(i)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = first.Run(ctx) })
	<-begun
	proxy.Refuse() // of its connections none is left, and no new one gets an answer
	proxy.Hole(true)
	if err := proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = second.Run(ctx) })
	time.AfterFunc(outage, func() { proxy.Hole(false) })
	j := e.Open(t, e.Address, 9*time.Second)
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		left := []error{}
		for rec, err := range j.List(ctx, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}}) {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, fmt.Errorf("%s, due in %v, leased for %v", rec.Key, time.Until(rec.NextAttempt), time.Until(rec.LeaseUntil)))
		}
		if len(left) == 0 {
			return
		}
		if time.Since(start) > outage+2*lease+10*time.Second {
			t.Fatalf("%d operations are left after %v: %v", len(left), time.Since(start), errors.Join(left...))
		}
	}
}
