package atrest_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// stand is one journal, as it is and through its seal.
type stand struct {
	below, sealed persist.Journal
	id            persist.ID
}

// read reads the operation with the keys, and checks its state.
func (s *stand) read(t *testing.T, when string, state persist.State) persist.Record {
	t.Helper()
	rec, err := s.sealed.Get(t.Context(), s.id)
	if err != nil || rec.State != state {
		t.Fatalf("%s: %v, %v; want %v", when, rec.State, err, state)
	}
	return rec
}

// ok fails unless what was done had one effect.
func ok(t *testing.T, what string, n int, err error) {
	t.Helper()
	if n != 1 || err != nil {
		t.Fatalf("%s: %d, %v", what, n, err)
	}
}

// TestWrittenWithoutKeys: what a journal changes by itself, or by a user without the keys, leaves an operation readable with them: a claim, its
// renewal, the mark of a report, and a sweep. So do an assign, and journal restored with the keys.
func TestWrittenWithoutKeys(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte("a"), seal.SecretSize)
	keys := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "keys"), "a:"+base64.StdEncoding.EncodeToString(secret)+"\n")
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	commandtest.OnServers(t, func(t *testing.T, at string) {
		var s stand
		s.below = open(t, at, false)
		var err error
		if s.sealed, err = sealer.Journal(t.Context(), s.below); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.sealed.Close() })
		a := newAPI(t)
		c := client(t, s.sealed, a)
		if err := c.Enqueue(payment(t, a, whole), "k"); err != nil {
			t.Fatal(err)
		}
		commandtest.Run(t, "journal", "restored", "--journal", at, "--taken", time.Now().UTC().Format(time.RFC3339Nano), "--seal-key", "@"+keys).Want(t, 0)
		held, err := c.Lookup(t.Context(), "k")
		if err != nil || held.HoldReason != persist.HoldRestored {
			t.Fatalf("restored: %+v, %v", held, err)
		}
		ok(t, "settle", 1, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(held)))
		s.id = held.ID
		s.read(t, "settled after restored", persist.StateSettled)

		if err := c.Enqueue(payment(t, a, whole), "l"); err != nil {
			t.Fatal(err)
		}
		s.id.Key = "l"
		claimer, _ := persist.As[persist.Claimer](s.below)
		claimed, _, err := claimer.Claim(t.Context(), persist.Query{AllAccounts: true}, "stranger", time.Minute, 9)
		ok(t, "claim", len(claimed), err)
		if rec := s.read(t, "claimed", persist.StatePending); rec.LeaseOwner != "stranger" || rec.Drives != 1 {
			t.Errorf("claimed: %+v", rec)
		}
		renewed, _, err := claimer.Renew(t.Context(), "stranger", time.Hour, []persist.ID{s.id})
		ok(t, "renew", len(renewed), err)
		rec := s.read(t, "renewed", persist.StatePending)
		rec.LeaseOwner, rec.Generated = "", false
		rec, err = s.sealed.Update(t.Context(), rec)
		ok(t, "update", 1, err)
		rec, err = s.sealed.Assign(t.Context(), rec, persist.Account("assigned"))
		ok(t, "assign", 1, err)
		s.id = rec.ID
		rec = s.read(t, "assigned", persist.StatePending)
		rec.State, rec.Effect, rec.Finished, rec.Attempts, rec.Sends = persist.StateConfirmed, persist.EffectHappened, rec.Created, 1, 1
		rec.MaybeSent, rec.FirstSent, rec.KeepAnswer = true, rec.Created, 1
		rec.Answer = &persist.Answer{Status: 201, Body: []byte("{}"), At: rec.Created}
		ok(t, "finish", 1, s.sealed.Finish(t.Context(), rec))
		if got := s.read(t, "finished", persist.StateConfirmed); got.Answer == nil || string(got.Answer.Body) != "{}" {
			t.Errorf("finished: %+v", got)
		}
		_, err = s.below.Sweep(t.Context(), persist.Limits{Prune: true, KeepAnswer: -1})
		ok(t, "sweep", 1, err)
		if got := s.read(t, "swept", persist.StateConfirmed); !got.Swept || got.Status != 201 {
			t.Errorf("swept: %+v", got)
		}
	})
}

// TestStandingForged: who may UPDATE takes back that an operation may have been sent. In clear, a call that then reaches no server says "not
// sent" of a payment that took place. Sealed, that is damage: nothing is sent, and the call is ErrOutcomeUnknown.
func TestStandingForged(t *testing.T) {
	t.Parallel()
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sealed := range []bool{false, true} {
		commandtest.OnServers(t, func(t *testing.T, at string) {
			below := open(t, at, false)
			t.Cleanup(func() { _ = below.Close() })
			j := below
			if sealed {
				var err error
				if j, err = sealer.Journal(t.Context(), below); err != nil {
					t.Fatal(err)
				}
			}
			a := newAPI(t)
			c := client(t, j, a)
			a.losing(true)
			if err := pay(t, a, c, "k", whole); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			for rec, err := range below.List(t.Context(), persist.Query{AllAccounts: true}) {
				if err != nil {
					t.Fatal(err)
				}
				rec.MaybeSent, rec.FirstSent, rec.Attempts, rec.Sends, rec.History, rec.NextAttempt = false, time.Time{}, 0, 0, nil, time.Time{}
				if _, err := below.Update(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
			}
			a.Close()
			err := pay(t, a, c, "k", whole)
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNotSent) == sealed || sealed && !errors.Is(err, persist.ErrCorrupt) {
				t.Errorf("sealed %t: %v", sealed, err)
			}
		})
	}
}
