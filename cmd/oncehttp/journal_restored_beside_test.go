package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestRestoredBesideWorker: while a worker has leases, restored changes nothing, says until when they last, and ends with 3; the
// worker goes on. Once it has stopped, the same command holds what is left.
func TestRestoredBesideWorker(t *testing.T) {
	t.Parallel()
	onServers(t, testRestoredBesideWorker)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		testRestoredBesideWorker(t, ownRedis(t, durable()...).journal())
	})
}

func testRestoredBesideWorker(t *testing.T, journal string) {
	const n = 12
	arrived, answer := make(chan struct{}, n), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	enqueue(t, journal, s.url, n)
	w := startWork(t, "--journal", journal, "--workers", "2")
	<-arrived
	before := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out
	restored := []string{"journal", "restored", "--journal", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)}
	got := run(t, restored...).want(t, exitUnknown)
	if got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "leased") || !strings.Contains(got.err, "until 20") {
		t.Errorf("stdout %q, stderr %q; want a line that says until when leases last", got.out, got.err)
	}
	if now := run(t, "journal", "list", "--journal", journal).want(t, exitOK).out; strings.Contains(now, "restored") || strings.Count(now, "\n") != strings.Count(before, "\n") {
		t.Errorf("it has changed\n%s\ninto\n%s", before, now)
	}
	release()
	for range n {
		if l, more := w.next(t); !more || l.Result != resultDone {
			t.Fatalf("line %+v", l)
		}
	}
	if status := w.stop(t, syscall.SIGTERM); status != exitOK || s.sends.Load() != n {
		t.Errorf("status %d after %d sends, want %d", status, s.sends.Load(), n)
	}
	enqueueOne(t, journal, s.url, "later", "{}")
	restored[len(restored)-1] = time.Now().UTC().Format(time.RFC3339Nano)
	if got := run(t, restored...).want(t, exitOK); got.out != "held: 1 operation\n" {
		t.Errorf("once the worker has stopped: %q", got.out)
	}
}

// claimsLater is a journal in which a worker claims all that is due before the second listing.
type claimsLater struct {
	*memory.Journal
	lists int
}

// List claims, and then lists.
func (c *claimsLater) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if c.lists++; c.lists == 2 {
		_, _, _ = c.Claim(ctx, persist.Query{AllAccounts: true}, "worker", time.Minute, 10)
	}
	return c.Journal.List(ctx, q)
}

// TestRestoredClaimedMeanwhile: what a worker claims while restored is under way is not held, and restored says so.
func TestRestoredClaimedMeanwhile(t *testing.T) {
	t.Parallel()
	j := &claimsLater{Journal: memory.New()}
	rec := persist.Record{
		ID: persist.ID{Key: "k"}, Origin: "https://api.example:443", Method: "POST", Target: "/", WireKey: "k",
		Fingerprint: make([]byte, 32), Created: time.Now().Add(-time.Hour),
	}
	if _, _, err := j.Begin(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	ses := &session{journal: j, place: place{name: "j", arg: "j"}}
	err := restored(t.Context(), ses, time.Now().UTC().Format(time.RFC3339Nano), streams{out: io.Discard, err: io.Discard})
	if exit := (*exitError)(nil); !errors.As(err, &exit) || exit.status != exitUnknown || !strings.Contains(err.Error(), "1 operation leased until") {
		t.Errorf("error %v, want status %d that names the lease", err, exitUnknown)
	}
	if now, err := j.Get(t.Context(), rec.ID); err != nil || now.State != persist.StatePending || now.LeaseOwner != "worker" {
		t.Errorf("the record is %v of %q, %v; want what the worker has", now.State, now.LeaseOwner, err)
	}
}
