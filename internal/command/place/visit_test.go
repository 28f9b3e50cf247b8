package place_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
)

// TestLeaseOfLongSend: a send may take longer than the lease with which it began, which nobody renews in a file. Others see the lease last
// while its process lives, and see none after that.
func TestLeaseOfLongSend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	long, other := &place.VisitJournal{Path: path}, &place.VisitJournal{Path: path}
	began := time.Now().Add(-time.Hour)
	rec := persist.Record{
		ID: persist.ID{Key: "k"}, Origin: "https://api.example.com", Method: "POST", Target: "/", Carrier: "header", CarrierName: "Idempotency-Key",
		WireKey: "k", Fingerprint: make([]byte, 32), Recipe: "1", Profile: "draft-07", Created: began, LeaseOwner: "long", LeaseUntil: began.Add(place.VisitLease),
	}
	if _, _, err := long.Begin(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	seen, err := other.Get(t.Context(), rec.ID)
	if err != nil || !seen.Leased("other", time.Now()) {
		t.Errorf("an hour later, while its process lives: leased by %q until %v, %v", seen.LeaseOwner, seen.LeaseUntil, err)
	}
	if err := long.Close(); err != nil {
		t.Fatal(err)
	}
	if seen, err = other.Get(t.Context(), rec.ID); err != nil || seen.LeaseOwner != "" {
		t.Errorf("after its end: leased by %q, %v", seen.LeaseOwner, err)
	}
}
