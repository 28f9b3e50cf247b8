package journal

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

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
	ses := &session.Session{Journal: j, Place: place.Place{Name: "j", Arg: "j"}}
	err := restored(t.Context(), ses, time.Now().UTC().Format(time.RFC3339Nano), terminal.Streams{Out: io.Discard, Err: io.Discard})
	if exit := (*terminal.ExitError)(nil); !errors.As(err, &exit) || exit.Status != terminal.ExitUnknown || !strings.Contains(err.Error(), "1 operation leased until") {
		t.Errorf("error %v, want status %d that names the lease", err, terminal.ExitUnknown)
	}
	if now, err := j.Get(t.Context(), rec.ID); err != nil || now.State != persist.StatePending || now.LeaseOwner != "worker" {
		t.Errorf("the record is %v of %q, %v; want what the worker has", now.State, now.LeaseOwner, err)
	}
}
