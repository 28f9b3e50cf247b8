package redrive_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// The tests of this file hold invariants 54 and 56 for all operations before another one: earlier generations, those that a Redrive or a Rekey has named,
// and what stands before these, in whatever account.

// The answers of the API to a charge.
var (
	cardError = wiretest.Reply{Status: 402, Body: `{"error":{"type":"card_error"}}`}
	paid      = wiretest.Reply{Status: 200, Body: `{"id":"ch_2"}`}
	lostReply = wiretest.Reply{Err: wiretest.ErrLost}
)

// family is a program with a journal of its own. The API gives replies, in their order.
type family struct {
	*oncehttp.Client
	t       *testing.T
	journal persist.Journal
	wire    *wiretest.Wire
	options []func(*oncehttp.Config)
}

func newFamily(t *testing.T, options []func(*oncehttp.Config), replies ...wiretest.Reply) *family {
	f := &family{t: t, journal: memory.New(), wire: &wiretest.Wire{Replies: replies}}
	f.options = append([]func(*oncehttp.Config){func(cfg *oncehttp.Config) {
		cfg.Profile, cfg.Retry.MaxAttempts = profile.StripeV1(), 1
	}}, options...)
	f.Client = f.client()
	return f
}

// client returns another client of the journal and the API.
func (f *family) client(options ...func(*oncehttp.Config)) *oncehttp.Client {
	c, _ := clienttest.New(f.t, f.wire, clienttest.On(f.journal, append(f.options, options...)...))
	return c
}

// enqueue enqueues a charge, and sends it.
func (f *family) enqueue(key oncehttp.Key) {
	enqueueCharge(f.t, f.Client, key)
	clienttest.Resume(f.t, f.Client)
}

// do makes a charge, and drops its answer.
func (f *family) do(c *oncehttp.Client, key oncehttp.Key) error {
	req := clienttest.Request(f.t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.DoKey(req, key)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// absent settles an operation as absent.
func (f *family) absent(key oncehttp.Key) {
	f.t.Helper()
	clienttest.Must(f.t, f.Settle(f.t.Context(), key, oncehttp.Resolution{Effect: persist.EffectAbsent}, oncehttp.AsSeen(clienttest.Lookup(f.t, f.Client, key))))
}

// rekeyed rekeys an operation that is settled as absent.
func (f *family) rekeyed(key, next oncehttp.Key) error {
	return f.Rekey(f.t.Context(), key, next, "once more", oncehttp.AsSeen(clienttest.Lookup(f.t, f.Client, key)))
}

// redriven begins the next generation.
func (f *family) redriven(key oncehttp.Key) {
	f.t.Helper()
	_, err := f.Redrive(f.t.Context(), key)
	clienttest.Must(f.t, err)
}

// sends fails the test unless the API has got so many requests.
func (f *family) sends(want int) {
	f.t.Helper()
	if got := f.wire.Count(); got != want {
		f.t.Errorf("%d sends, want %d", got, want)
	}
}

// refused fails the test unless the error of a call is ErrKeyReused, without a word about an effect.
func (f *family) refused(err error) {
	f.t.Helper()
	if !errors.Is(err, oncehttp.ErrKeyReused) || errors.Is(err, oncehttp.ErrNoEffect) {
		f.t.Errorf("%v, want ErrKeyReused", err)
	}
}

// TestOldestProved: an event proves the first of three generations, before the third is begun, or before it is sent.
func TestOldestProved(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"redrive", "enqueue"} {
		begin := func(f *family, key, next oncehttp.Key) {
			if by == "redrive" {
				f.redriven(key)
			} else {
				enqueueCharge(t, f.Client, next)
			}
		}
		t.Run("sent after the event, by "+by, func(t *testing.T) {
			f := newFamily(t, nil, cardError, cardError, paid)
			f.enqueue("k")
			begin(f, "k", "k:gen=2")
			clienttest.Resume(t, f.Client)
			begin(f, "k:gen=2", "k:gen=3")
			charged(t, f.Client, "k")
			clienttest.Resume(t, f.Client)
			f.sends(2)
			if rec := clienttest.Lookup(t, f.Client, "k:gen=3"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldPredecessor {
				t.Errorf("the third is %v %s", rec.State, rec.HoldReason)
			}
		})
		t.Run("begun after the event, after "+by, func(t *testing.T) {
			f := newFamily(t, nil, cardError, cardError, paid)
			f.enqueue("k")
			begin(f, "k", "k:gen=2")
			clienttest.Resume(t, f.Client)
			charged(t, f.Client, "k")
			_, err := f.Redrive(t.Context(), "k:gen=2")
			f.refused(err)
			f.refused(f.do(f.Client, "k:gen=3"))
			clienttest.Resume(t, f.Client)
			f.sends(2)
		})
	}
	t.Run("rekeyed after the event", func(t *testing.T) {
		f := newFamily(t, nil, cardError, lostReply, paid)
		f.enqueue("k")
		f.enqueue("k:gen=2")
		charged(t, f.Client, "k")
		f.absent("k:gen=2")
		f.refused(f.rekeyed("k:gen=2", "x"))
		clienttest.Resume(t, f.Client)
		f.sends(2)
	})
	t.Run("the next generation of another key", func(t *testing.T) {
		f := newFamily(t, nil, lostReply, cardError, paid)
		f.enqueue("k")
		f.absent("k")
		clienttest.Must(t, f.rekeyed("k", "x"))
		clienttest.Resume(t, f.Client)
		charged(t, f.Client, "k")
		f.refused(f.do(f.Client, "x:gen=2"))
		f.sends(2)
	})
	t.Run("a chain of keys goes on without an event", func(t *testing.T) {
		f := newFamily(t, nil, lostReply, lostReply, cardError, paid)
		f.enqueue("k")
		f.absent("k")
		clienttest.Must(t, f.rekeyed("k", "x"))
		clienttest.Resume(t, f.Client)
		f.absent("x")
		clienttest.Must(t, f.rekeyed("x", "y"))
		clienttest.Resume(t, f.Client)
		f.redriven("y")
		clienttest.Resume(t, f.Client)
		f.sends(4)
	})
}

// TestSweepKeepsTheOlder: a sweep leaves what an event proves, and an operation was begun in place of, however short its KeepKey.
func TestSweepKeepsTheOlder(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	for _, prune := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFamily(t, []func(*oncehttp.Config){func(cfg *oncehttp.Config) { cfg.KeepKey, cfg.KeepAnswer = month, month }}, cardError, paid)
			f.enqueue("k")
			time.Sleep(month - time.Hour)
			f.redriven("k")
			charged(t, f.Client, "k")
			time.Sleep(2 * time.Hour)
			var err error
			if prune {
				_, err = f.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: 25 * time.Hour, KeepKey: 26 * time.Hour})
			} else {
				_, err = f.Sweep(t.Context())
			}
			clienttest.Must(t, err)
			if rec := clienttest.Lookup(t, f.Client, "k"); rec.Evidence == nil || !rec.Swept {
				t.Errorf("swept %t, evidence %v", rec.Swept, rec.Evidence)
			}
			clienttest.Resume(t, f.Client)
			f.sends(1)
		})
	}
}

// TestSweepKeepsTheOlderOfAGeneratedKey: so it is for an operation whose key was generated, and told to nobody.
func TestSweepKeepsTheOlderOfAGeneratedKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, cardError, paid)
		resp, err := f.Do(charge(t))
		clienttest.Must(t, err)
		key := oncehttp.ResultOf(resp).Key
		f.redriven(key)
		charged(t, f.Client, string(key))
		time.Sleep(365 * 24 * time.Hour)
		for range 2 {
			_, err := f.Sweep(t.Context())
			clienttest.Must(t, err)
		}
		if rec := clienttest.Lookup(t, f.Client, key); rec.Evidence == nil || !rec.Swept {
			t.Errorf("swept %t, evidence %v", rec.Swept, rec.Evidence)
		}
	})
}

// TestRekeyBesideLaterGeneration: a transaction begins a generation after a Rekey of the first one took place. One of both is sent, and the other is held,
// also once a person settles it.
func TestRekeyBesideLaterGeneration(t *testing.T) {
	t.Parallel()
	for _, next := range []oncehttp.Key{"k:gen=2", "k:gen=3"} {
		f := newFamily(t, nil, lostReply, paid, paid)
		f.enqueue("k")
		f.absent("k")
		req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec, err := f.Prepare(req, next)
		clienttest.Must(t, err)
		clienttest.Must(t, f.rekeyed("k", "x"))
		_, _, err = f.journal.Begin(context.Background(), rec)
		clienttest.Must(t, err)
		clienttest.Resume(t, f.Client)
		f.sends(2)
		if rec := clienttest.Lookup(t, f.Client, next); rec.HoldReason != persist.HoldPredecessor {
			t.Fatalf("%s is %v %s", next, rec.State, rec.HoldReason)
		}
		f.absent(next)
		_, err = f.Redrive(t.Context(), next)
		f.refused(err)
		clienttest.Resume(t, f.Client)
		f.sends(2)
	}
}

// TestOlderOfNoAccount: a program names an account after it had none. What stands under none counts for the next generation, and what the account has begun
// counts for an act on what stands under none.
func TestOlderOfNoAccount(t *testing.T) {
	t.Parallel()
	inA := func(cfg *oncehttp.Config) { cfg.Account = "A" }
	t.Run("rekeyed", func(t *testing.T) {
		f := newFamily(t, nil, lostReply, paid, paid)
		f.enqueue("k")
		f.absent("k")
		clienttest.Must(t, f.rekeyed("k", "x"))
		clienttest.Resume(t, f.Client)
		f.refused(f.do(f.client(inA), "k:gen=2"))
		f.sends(2)
	})
	t.Run("proved", func(t *testing.T) {
		f := newFamily(t, nil, cardError, paid)
		f.enqueue("k")
		charged(t, f.Client, "k")
		f.refused(f.do(f.client(inA), "k:gen=2"))
		f.sends(1)
	})
	t.Run("refused only", func(t *testing.T) {
		f := newFamily(t, nil, cardError, paid)
		f.enqueue("k")
		clienttest.Must(t, f.do(f.client(inA), "k:gen=2"))
		f.sends(2)
		_, err := f.Redrive(t.Context(), "k")
		f.refused(err)
		clienttest.Resume(t, f.Client)
		f.sends(2)
	})
	t.Run("settled only", func(t *testing.T) {
		f := newFamily(t, nil, lostReply, paid)
		f.enqueue("k")
		f.absent("k")
		clienttest.Must(t, f.do(f.client(inA), "k:gen=2"))
		f.refused(f.rekeyed("k", "x"))
		clienttest.Resume(t, f.Client)
		f.sends(2)
	})
}

// TestAssignedRelatives: an Assign parts a successor from the operation in whose place it stands. Neither is forgotten for that.
func TestAssignedRelatives(t *testing.T) {
	t.Parallel()
	inA := func(cfg *oncehttp.Config) { cfg.Account = "A" }
	t.Run("the successor", func(t *testing.T) {
		f := newFamily(t, nil, cardError, paid, paid)
		f.enqueue("k")
		f.redriven("k")
		clienttest.Resume(t, f.Client)
		clienttest.Must(t, f.client(inA).Assign(t.Context(), "k:gen=2"))
		if _, err := f.Redrive(t.Context(), "k"); !errors.Is(err, oncehttp.ErrAccount) {
			t.Errorf("a second Redrive: %v, want ErrAccount", err)
		}
		clienttest.Resume(t, f.Client)
		f.sends(2)
	})
	t.Run("the successor of a Rekey", func(t *testing.T) {
		f := newFamily(t, nil, lostReply, paid, paid)
		f.enqueue("k")
		f.absent("k")
		clienttest.Must(t, f.rekeyed("k", "x"))
		clienttest.Resume(t, f.Client)
		clienttest.Must(t, f.client(inA).Assign(t.Context(), "x"))
		if err := f.rekeyed("k", "x"); !errors.Is(err, oncehttp.ErrAccount) {
			t.Errorf("a second Rekey: %v, want ErrAccount", err)
		}
		clienttest.Resume(t, f.Client)
		f.sends(2)
	})
	t.Run("the older one", func(t *testing.T) {
		f := newFamily(t, nil, cardError, paid)
		a := f.client(inA)
		f.enqueue("k")
		f.redriven("k")
		clienttest.Must(t, a.Assign(t.Context(), "k"))
		charged(t, a, "k")
		clienttest.Resume(t, f.Client)
		f.sends(1)
		if rec := clienttest.Lookup(t, f.Client, "k:gen=2"); rec.HoldReason != persist.HoldPredecessor {
			t.Errorf("the successor is %v %s", rec.State, rec.HoldReason)
		}
	})
}
