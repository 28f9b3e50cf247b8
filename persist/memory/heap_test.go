package memory_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// liveHeap is what the heap holds after a collection, in bytes.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // what the first one only took out of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestHeapARecord guards how much heap a record of ordinary size takes, while it is whole
// and as a tombstone. It looks at the whole heap, so it is not parallel.
// docs/performance.md has the figures: go test -v shows them.
func TestHeapARecord(t *testing.T) {
	const n, most = 50_000, 850
	at := time.Unix(1_750_000_000, 123).UTC()
	before := liveHeap()
	j := memory.New()
	for i := range n {
		key := fmt.Sprintf("idemp:order:u%d:o%d", i%97, i)
		sum := sha256.Sum256([]byte(key))
		r, _, err := j.Begin(context.Background(), persist.Record{
			ID: persist.ID{Account: "acct", Key: key}, Origin: "https://api.example:443", Method: "POST", Target: "/v1/charges",
			Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"amount":100,"currency":"eur","customer":"cus_1"}`),
			Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: key, Profile: "draft-07", ProfileVersion: "7",
			Window: 24 * time.Hour, Fingerprint: sum[:], Recipe: "1 content-type", Created: at,
		})
		if err != nil {
			t.Fatal(err)
		}
		r.State, r.Finished, r.Answer = persist.StateConfirmed, at, &persist.Answer{Status: 201, Body: []byte(`{"id":"ch_1"}`)}
		if err := j.Finish(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	whole := (liveHeap() - before) / n
	if swept, err := j.Sweep(context.Background(), persist.Limits{Prune: true, KeepAnswer: -1, Max: n}); swept != n || err != nil {
		t.Fatalf("Sweep: %d, %v", swept, err)
	}
	tombstone := (liveHeap() - before) / n
	runtime.KeepAlive(j)
	t.Logf("%d finished records: %.0f bytes of heap each, %.0f as a tombstone", n, whole, tombstone)
	if whole > most || tombstone > most {
		t.Errorf("a record takes %.0f bytes of heap, %.0f as a tombstone; want at most %d", whole, tombstone, most)
	}
}
