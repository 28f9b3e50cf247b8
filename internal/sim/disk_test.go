package sim

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

// TestDisk: what the simulated processes write to is a journal as the contract wants
// it, also after a crash.
func TestDisk(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			var last *disk
			return func() (persist.Journal, error) {
				if last == nil {
					last = newDisk(1, 0, "")
				} else {
					last = last.crash(rand.New(rand.NewPCG(1, 1))).(*disk)
				}
				last.pace = 50 * time.Microsecond
				return last, nil
			}, nil
		},
	})
}

// TestDiskCrash: what was acknowledged survives every crash. A Finish that is not
// durable yet survives some, and never in part.
func TestDiskCrash(t *testing.T) {
	t.Parallel()
	kept, lost := 0, 0
	for n := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(dice(n), 0, "")
			rec := persist.Record{
				ID: persist.ID{Key: "k"}, Origin: "o", Method: "POST", WireKey: "k", Fingerprint: make([]byte, 32), Created: time.Now(),
			}
			rec, created, err := d.Begin(t.Context(), rec)
			if err != nil || !created {
				t.Fatal(created, err)
			}
			rec.State, rec.Finished = persist.StateConfirmed, time.Now()
			rec.Answer = &persist.Answer{Status: 201, Body: []byte("whole")}
			if err := d.Finish(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			after := d.crash(dice(n).of("crash", 0))
			got, err := after.Get(t.Context(), rec.ID)
			switch {
			case err != nil:
				t.Errorf("an acknowledged record is gone: %v", err)
			case got.State == persist.StatePending && got.Revision == 1:
				lost++
			case got.State == persist.StateConfirmed && string(got.Answer.Body) == "whole":
				kept++
			default:
				t.Errorf("neither before nor after: %+v", got)
			}
		})
	}
	if kept == 0 || lost == 0 {
		t.Errorf("a crash kept %d and lost %d of 40 changes that were not durable", kept, lost)
	}
}
