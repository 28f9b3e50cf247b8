package sqltest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// restartLimit is the time limit of each call of the journal in Restarted.
const restartLimit = 9 * time.Second

// patience is how long is waited for what takes a second or two on a machine that is not busy.
const patience = 20 * time.Second

// restarting is a client whose journal's server is stopped and started.
type restarting struct {
	client *oncehttp.Client
	target string
	api    *effects

	mu   sync.Mutex
	said map[oncehttp.Key]error // what the client was told of each key
	good int                    // how often it was no error
}

// Restarted stops the server and starts it again, in good order and by a crash, while Do,
// Enqueue and Run go on. Nothing is lost, nothing is sent without a record, and the client
// goes on by itself.
func Restarted(t *testing.T, e Engine, server *OwnServer) {
	api := &effects{n: map[string]int{}}
	web := httptest.NewServer(api)
	defer web.Close()
	j := e.Open(t, e.Address, restartLimit)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	r := &restarting{client: client, target: web.URL, api: api, said: map[oncehttp.Key]error{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := client.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	for worker := range 4 {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r.call(t, fmt.Sprintf("%d-%d", worker, n), n%2 == 0)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for name, signal := range map[string]os.Signal{"stop": server.Stop, "crash": server.Crash} {
		r.goesOn(t, "before the "+name)
		server.end(signal)
		r.failsFast(t, j, name)
		server.start()
		r.goesOn(t, "after the "+name)
	}
	cancel()
	running.Wait()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	r.sendWhatIsLeft(t, j)
	r.check(t, j)
}

// call makes one call during the restart of the server, a Do or, without do, an Enqueue, and keeps its result. An error must name the journal and say whether
// there may be an effect (aboutJournal). good counts the calls that succeed.
func (r *restarting) call(t *testing.T, key string, do bool) {
	req, err := http.NewRequest(http.MethodPost, r.target, strings.NewReader(key))
	if err != nil {
		t.Error(err)
		return
	}
	var resp *http.Response
	if do {
		resp, err = r.client.DoKey(req, oncehttp.Key(key))
	} else {
		err = r.client.Enqueue(req, oncehttp.Key(key))
	}
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		aboutJournal(t, key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[oncehttp.Key(key)] = err; err == nil {
		r.good++
	}
}

// aboutJournal checks the error of a call while the journal was down. It matches exactly one of ErrNoEffect and ErrOutcomeUnknown, so that the caller knows
// if something may have taken effect, and it names the journal.
func aboutJournal(t *testing.T, key string, err error) {
	t.Helper()
	if errors.Is(err, oncehttp.ErrNoEffect) == errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Errorf("%s: %v matches both or none of ErrNoEffect and ErrOutcomeUnknown", key, err)
	}
	if !strings.Contains(err.Error(), "journal ") {
		t.Errorf("%s: %v does not name the journal", key, err)
	}
}

// goesOn waits until 20 more calls have succeeded, of those that other goroutines make. when names the moment in messages.
func (r *restarting) goesOn(t *testing.T, when string) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.good
	}
	first, begun := count(), time.Now()
	defer func() {
		t.Logf("%s: 20 calls have succeeded after %v", when, time.Since(begun).Round(time.Millisecond))
	}()
	for start := time.Now(); count() < first+20; time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%s: %d calls have succeeded", when, count()-first)
		}
	}
}

// failsFast checks that a call fails soon while no server listens: a Do with a key, a Do without one, and a read of the journal.
func (r *restarting) failsFast(t *testing.T, j persist.Journal, name string) {
	t.Helper()
	start := time.Now()
	r.call(t, "while-it-is-down-"+name, true)
	if took := time.Since(start); took > restartLimit {
		t.Errorf("Do without a journal took %v, want less than %v", took, restartLimit)
	}
	req, err := http.NewRequest(http.MethodPost, r.target, strings.NewReader("no key "+name))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := r.client.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a call without a key succeeds without a journal")
	} else {
		aboutJournal(t, "no key", err)
	}
	if _, err := j.Get(t.Context(), persist.ID{Key: "x"}); err == nil || errors.Is(err, persist.ErrNotFound) {
		t.Errorf("the journal answers while it is down: %v", err)
	}
}

// sendWhatIsLeft runs a client on the journal until nothing is pending: release makes all due at once. By then the leases of calls whose end could not be
// recorded are over.
func (r *restarting) sendWhatIsLeft(t *testing.T, j persist.Journal) {
	t.Helper()
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for start := time.Now(); ; {
		err := release(t.Context(), j)
		for _, resumeErr := range client.Resume(t.Context()) {
			err = errors.Join(err, resumeErr)
		}
		left := 0
		for range client.Unfinished(t.Context()) {
			left++
		}
		if err == nil && left == 0 {
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("%d operations are left, error %v", left, err)
		}
	}
}

// release makes all pending records due at once, and ends their leases, so that the test need not wait.
func release(ctx context.Context, j persist.Journal) error {
	for rec, err := range j.List(ctx, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending}}) {
		if err == nil {
			rec.NextAttempt, rec.LeaseOwner, rec.LeaseUntil = time.Time{}, "", time.Time{}
			_, err = j.Update(ctx, rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check compares the results that the callers got with the journal and with the effects at the API. At least one call must have failed, or the restart was not
// tested.
func (r *restarting) check(t *testing.T, j persist.Journal) {
	t.Helper()
	failed := 0
	for key, err := range r.said {
		rec, getErr := j.Get(t.Context(), persist.ID{Key: string(key)})
		stands, effects := getErr == nil && rec.State == persist.StateConfirmed, r.api.of(string(key))
		if err != nil {
			failed++
		}
		switch {
		case err == nil && (!stands || effects == 0):
			t.Errorf("%s: the caller was told that it is recorded; the journal says %v (%v), the server has seen it %d times", key, rec.State, getErr, effects)
		case errors.Is(err, oncehttp.ErrNoEffect) && effects != 0:
			t.Errorf("%s: the caller was told of no effect, and the server has seen it: %v", key, err)
		case effects != 0 && !stands:
			t.Errorf("%s: it was sent, and the journal says %v (%v)", key, rec.State, getErr)
		}
	}
	t.Logf("%d calls, %d of them failed while the server was down", len(r.said), failed)
	if failed == 0 {
		t.Error("no call has met the stopped server")
	}
}
