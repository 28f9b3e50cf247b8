package sqltest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// The times of LateDown.
const (
	lateDownLimit = 12 * time.Second // of each call of the journal
	lateDownFor   = time.Second      // nobody listens
	lateDownConns = 100              // a journal has fewer
)

// LateDown tests a database that is away for a second just when answers arrive: one, and forty at once. Each caller gets its answer
// meanwhile. Once the database is back, all records have their ends, without a Run. Calls with a waiting caller fail fast.
func LateDown(t *testing.T, engine func(t *testing.T) Engine) {
	for _, n := range []int{1, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			lateDown(t, engine(t), n)
		})
	}
}

// lateDown takes the database away for a second just when n answers arrive. Each caller must get its answer, a new Begin must fail fast, and all records must
// have their ends once the database is back. The API holds its answers until the database is away; a request that comes after that is answered at once.
func lateDown(t *testing.T, e Engine, n int) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case arrived <- struct{}{}:
			<-answer
		case <-answer:
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer web.Close()
	proxy := NewProxy(t, e.Address)
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), lateDownLimit)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			if _, err := payOnce(client, web.URL, fmt.Sprint(i)); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	for range n {
		select {
		case <-arrived:
		case <-time.After(patience):
			t.Error("not all requests have come")
		}
	}
	proxy.Refuse()
	LeaveCut(t, j) // a write on a cut connection would be in doubt
	close(answer)
	calls.Wait()
	back := time.After(lateDownFor)
	start := time.Now()
	_, _, err = j.Begin(t.Context(), Record("a", "refused"))
	if took := time.Since(start); took > lateDownLimit/3 {
		t.Errorf("with nobody listening, Begin took %v: %v", took, err)
	}
	named(t, "Begin with nobody listening", err, proxy)
	<-back
	if err := proxy.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
	for i := range n {
		rec, err := direct.Get(t.Context(), persist.ID{Key: fmt.Sprint(i)})
		if err != nil || rec.State != persist.StateConfirmed {
			t.Errorf("the record of answer %d is %v, error %v", i, rec.State, err)
		}
	}
}

// LeaveCut lets the journal find out that its idle connections were cut, so that no write is in doubt for that. Each read
// drops at least one of them, if there is one: the pool tries a new connection while it still has idle ones, so that one
// refused read proves nothing.
func LeaveCut(t *testing.T, j persist.Journal) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for range lateDownConns {
		if _, err := j.Get(ctx, persist.ID{Key: "0"}); ctx.Err() != nil || err == nil {
			return
		}
	}
}
