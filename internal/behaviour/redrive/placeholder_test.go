package redrive_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// The tests of this file hold invariants 1 and 54 for the generations below an operation that have no record: none of them begins once it may be sent.

var (
	unsent      = wiretest.Reply{Refused: true}
	rateLimited = wiretest.Reply{Status: 429, Body: `{"error":{"type":"rate_limit"}}`, Header: "Content-Type: application/json"}
)

// job makes the tries of an intent, from the first one, until one of them may have had an effect.
func (f *family) job(c *oncehttp.Client) (last error) {
	for n := 1; n < 5; n++ {
		var e *oncehttp.Error
		last = f.do(c, oncehttp.Key("k").Generation(n))
		if !errors.As(last, &e) || e.Effect() != persist.EffectAbsent && e.Effect() != persist.EffectRefused {
			return last
		}
	}
	return last
}

// record returns the record of a key; the zero record if there is none.
func (f *family) record(key string) persist.Record {
	f.t.Helper()
	rec, err := f.journal.Get(f.t.Context(), persist.ID{Key: key})
	if err != nil && !errors.Is(err, persist.ErrNotFound) {
		f.t.Fatal(err)
	}
	return rec
}

// skipped fails the test unless a key has a placeholder below next.
func (f *family) skipped(key, next string) {
	f.t.Helper()
	rec := f.record(key)
	if !persist.IsSkipped(rec.Acts) || rec.State != persist.StateSettled || rec.Effect != persist.EffectAbsent || rec.ReplacedBy != next || rec.KeepKey != 0 || rec.MaybeSent || rec.Body != nil {
		f.t.Errorf("%s is %v (%s), replaced by %q, acts %v", key, rec.State, rec.Effect, rec.ReplacedBy, rec.Acts)
	}
}

// TestForgottenBelow: a try ended without an effect and is forgotten, and a later one took effect. A job that begins with the first try again hears of that,
// in another process, too. Nothing else takes effect.
func TestForgottenBelow(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string][]wiretest.Reply{
		"not sent": {unsent, paid}, "refused": {rateLimited, paid}, "three": {unsent, unsent, unsent, paid},
	} {
		enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
			t.Log(name)
			f := newFamily(t, nil, replies...)
			one, other := s.Two()
			if name == "three" {
				one, other = sealed(t, one), sealed(t, other)
			}
			f.journal = one
			first := f.client()
			if err := f.job(first); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil { // on a server, an answer may be told before its record has it
				t.Fatal(err)
			}
			f.journal = other
			err := f.job(f.client())
			var e *oncehttp.Error
			paidAs := oncehttp.Key("k").Generation(len(replies))
			if !errors.As(err, &e) || e.Effect() != persist.EffectHappened || e.Key != paidAs || !errors.Is(err, oncehttp.ErrKeyReused) || !errors.Is(err, oncehttp.ErrFinal) {
				t.Errorf("the second job: %v, want the effect of %s", err, paidAs)
			}
			f.sends(len(replies))
		})
	}
}

// sealed returns a journal that is sealed with keys of the test.
func sealed(t *testing.T, j persist.Journal) persist.Journal {
	t.Helper()
	secret := func(of string) []byte { return bytes.Repeat([]byte(of), seal.SecretSize) }
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: secret("a")}}, HashKey: secret("h")})
	if err != nil {
		t.Fatal(err)
	}
	over, err := s.Journal(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return over
}

// TestSkippedInDoubt: while the outcome of a later try is unknown, a call with a lower key says so, whatever its request and its Config.
func TestSkippedInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, unsent, lostReply)
		clienttest.Must(t, wantNoEffect(f.do(f.Client, "k")))
		_ = f.do(f.Client, "k:gen=2")
		f.skipped("k", "k:gen=2")
		other := f.client(func(cfg *oncehttp.Config) { cfg.SecretHeaders, cfg.Retry.MaxAttempts = []string{"Content-Type"}, 3 })
		calls := map[string]error{"Do": f.do(f.Client, "k"), "another Config": f.do(other, "k"), "Enqueue": f.Enqueue(charge(t), "k"), "another request": f.Enqueue(clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/refunds", "charge=ch_7"), "k")}
		for name, err := range calls {
			var e *oncehttp.Error
			if f.refused(err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || e.Key != "k:gen=2" {
				t.Errorf("%s: %v, want ErrOutcomeUnknown of k:gen=2", name, err)
			}
		}
		f.sends(2)
		for name, err := range map[string]error{
			"Unsettle": func() error { _, err := f.Unsettle(t.Context(), "k", "why"); return err }(), "Rekey": f.rekeyed("k", "other"), "Redrive": func() error { _, err := f.Redrive(t.Context(), "k"); return err }(),
		} {
			if f.refused(err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want ErrOutcomeUnknown", name, err)
			}
		}
	})
}

// TestSkippedAndGone: a later try ended without an effect, too, and is forgotten. The lower key had no effect, its caller is told so, and the program goes on.
func TestSkippedAndGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, unsent, unsent, unsent, paid)
		for range 3 {
			if err := wantNoEffect(f.do(f.Client, "k")); err != nil {
				t.Fatal(err)
			}
			if err := wantNoEffect(f.do(f.Client, "k:gen=2")); err != nil && f.wire.Count() < 4 {
				t.Fatal(err)
			}
		}
		f.sends(4)
		f.skipped("k", "k:gen=2")
		if err := f.do(f.Client, "k"); !errors.Is(err, oncehttp.ErrFinal) {
			t.Errorf("%v, want the effect of the second try", err)
		}
		f.sends(4)
	})
}

// wantNoEffect returns an error unless err is ErrNoEffect.
func wantNoEffect(err error) error {
	if errors.Is(err, oncehttp.ErrNoEffect) {
		return nil
	}
	return errors.Join(errors.New("want ErrNoEffect"), err)
}

// TestSkippedByWorker: a later try is enqueued. Its worker writes the placeholder before the first send.
func TestSkippedByWorker(t *testing.T) {
	t.Parallel()
	for _, e := range enginetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			e.Test(t, func(t *testing.T, s enginetest.Shared) {
				f := newFamily(t, nil, paid)
				f.journal, _ = s.Two()
				f.Client = f.client()
				enqueueCharge(t, f.Client, "k:gen=3")
				if rec := f.record("k"); rec.Key != "" {
					t.Error("a placeholder stands before the worker")
				}
				clienttest.Resume(t, f.Client)
				f.skipped("k", "k:gen=3")
				f.skipped("k:gen=2", "k:gen=3")
				f.refused(f.do(f.Client, "k"))
				f.refused(f.do(f.Client, "k:gen=2"))
				f.sends(1)
			})
		})
	}
}

// TestSkippedAtOnce: many calls begin the first try and the second one, at an API that is reached now and then. At most one key takes effect.
func TestSkippedAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 40 {
		synctest.Test(t, func(t *testing.T) {
			replies := make([]wiretest.Reply, 64)
			for i := range replies {
				if replies[i] = unsent; (i+round)%3 == 2 {
					replies[i] = paid
				}
			}
			f := newFamily(t, nil, replies...)
			var calls sync.WaitGroup
			for i := range 16 {
				c := f.Client
				if i%4 > 1 {
					c = f.client()
				}
				calls.Go(func() {
					_ = f.do(c, oncehttp.Key("k").Generation(1+i%2))
				})
			}
			calls.Wait()
			effects := map[string]bool{}
			for i, sent := range f.wire.All() {
				if replies[i].Status == 200 {
					effects[sent.Key] = true
				}
			}
			if len(effects) > 1 {
				t.Errorf("round %d: effects under %v", round, effects)
			}
		})
	}
}

// TestSkippedIsKept: neither time nor a short KeepKey lets the lower key begin while the later try is known.
func TestSkippedIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, []func(*oncehttp.Config){func(cfg *oncehttp.Config) { cfg.KeepKey, cfg.KeepAnswer = 30*24*time.Hour, 24*time.Hour }}, unsent, paid)
		clienttest.Must(t, wantNoEffect(f.do(f.Client, "k")))
		clienttest.Must(t, f.do(f.Client, "k:gen=2"))
		time.Sleep(400 * 24 * time.Hour)
		for range 3 {
			_, err := f.journal.Sweep(t.Context(), persist.Limits{})
			clienttest.Must(t, err)
		}
		if err := f.do(f.Client, "k"); !errors.Is(err, oncehttp.ErrFinal) {
			t.Errorf("%v, want the effect of the second try", err)
		}
		f.sends(2)
	})
}

// breaking is a journal that breaks at its n-th call: once before or after that call takes place, or, as in a crash, from then on.
type breaking struct {
	persist.Journal
	n      int
	breaks string
	mu     sync.Mutex
}

func (b *breaking) call(f func() error) error {
	b.mu.Lock()
	b.n--
	n := b.n
	b.mu.Unlock()
	if n == 0 && b.breaks == "before" || n <= 0 && b.breaks == "crash" {
		return persist.ErrClosed
	}
	err := f()
	if n == 0 && b.breaks == "after" && err == nil {
		return persist.ErrUncertain
	}
	return err
}

func (b *breaking) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	err = b.call(func() (err error) { existing, created, err = b.Journal.Begin(ctx, rec); return err })
	return existing, created, err
}

func (b *breaking) Update(ctx context.Context, rec persist.Record) (updated persist.Record, err error) {
	err = b.call(func() (err error) { updated, err = b.Journal.Update(ctx, rec); return err })
	return updated, err
}

func (b *breaking) Amend(ctx context.Context, rec persist.Record) (amended persist.Record, err error) {
	err = b.call(func() (err error) { amended, err = b.Journal.Amend(ctx, rec); return err })
	return amended, err
}

func (b *breaking) Get(ctx context.Context, id persist.ID) (rec persist.Record, err error) {
	err = b.call(func() (err error) { rec, err = b.Journal.Get(ctx, id); return err })
	return rec, err
}

func (b *breaking) Finish(ctx context.Context, rec persist.Record) error {
	return b.call(func() error { return b.Journal.Finish(ctx, rec) })
}

func (b *breaking) Forget(ctx context.Context, rec persist.Record) error {
	return b.call(func() error { return b.Journal.Forget(ctx, rec) })
}

func (b *breaking) Flush(ctx context.Context) error {
	return b.call(func() error { return b.Journal.Flush(ctx) })
}

// TestSkippedJournalFails: the journal fails at any call of a job whose second try is paid, or the process crashes there. Afterwards the job is made again, from
// the first try, and what is left is resumed. At most one key takes effect, and in the end the job hears of it.
func TestSkippedJournalFails(t *testing.T) {
	t.Parallel()
	for _, breaks := range []string{"before", "after", "crash"} {
		for n := 1; n < 50; n++ {
			synctest.Test(t, func(t *testing.T) {
				replies := []wiretest.Reply{unsent}
				for range 20 {
					replies = append(replies, paid)
				}
				f := newFamily(t, nil, replies...)
				sound := f.journal
				f.journal = &breaking{Journal: sound, n: n, breaks: breaks}
				_ = f.job(f.client())
				var last error
				for range 3 {
					f.journal = &breaking{Journal: sound}
					c := f.client()
					last = f.job(c)
					time.Sleep(time.Hour)
					clienttest.Resume(t, c)
				}
				effects := map[string]bool{}
				for _, sent := range f.wire.All()[1:] {
					effects[sent.Key] = true
				}
				if len(effects) != 1 || last != nil && !errors.Is(last, oncehttp.ErrFinal) {
					t.Errorf("%s call %d: effects under %v, the last job: %v", breaks, n, effects, last)
				}
			})
		}
	}
}
