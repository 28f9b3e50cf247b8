// Package gate_test holds which client may act on an operation: by its origins, its credentials, its region and its functions.
package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// otherProcess is a journal as another process sees it: the same records, and nothing else in common. It counts what its client claims.
type otherProcess struct {
	persist.Journal
	persist.SendClaimer
	persist.Attachment
	times persist.DueTimes
	blind bool // its DueTimes tells no needs, and it filters by none

	mu      sync.Mutex
	claimed int
	calls   int
}

func newOtherProcess(j *memory.Journal) *otherProcess {
	return &otherProcess{Journal: j, SendClaimer: j, times: j}
}

func (p *otherProcess) Attach(create func() any) any { return p.Attachment.Attach(create) }

func (p *otherProcess) FinishesLate() persist.Journal { return nil }

func (p *otherProcess) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	all, err := p.times.DueTimes(ctx, q)
	if !p.blind {
		return all, err
	}
	first := map[string]persist.DueTime{}
	for _, t := range all {
		t.Needs = ""
		if known, ok := first[t.Origin]; !ok || t.At.Before(known.At) {
			first[t.Origin] = t
		}
	}
	all = nil
	for _, t := range first {
		all = append(all, t)
	}
	return all, err
}

func (p *otherProcess) note(got []persist.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed += len(got)
	p.calls++
}

func (p *otherProcess) counts() (claimed, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claimed, p.calls
}

func (p *otherProcess) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	got, now, err := p.SendClaimer.Claim(ctx, q, owner, lease, n)
	p.note(got)
	return got, now, err
}

func (p *otherProcess) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	got, now, err := p.SendClaimer.ClaimToSend(ctx, q, owner, lease, sending, n)
	p.note(got)
	return got, now, err
}

// lack is one thing that the lacking client of two does not have.
type lack struct {
	begins  func(*oncehttp.Config) // of who begins, and of the healthy one
	lacks   func(*oncehttp.Config) // of the other
	healthy string                 // seal keys of the healthy one; empty: none
	lacking string
	says    string
}

// lackings are the differences that keep a client from an operation.
func lackings() map[string]lack {
	region := func(r string) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) { authorized(cfg); cfg.Region = r }
	}
	return map[string]lack{
		"Authorize":    {authorized, nothing, "", "", "set Config.Authorize"},
		"the region":   {region("eu"), region("us"), "", "", `the region "eu"`},
		"a credential": {func(cfg *oncehttp.Config) { authorized(cfg); cfg.Credential = oncehttp.CredentialHash("a") }, authorized, "", "", "another credential"},
		"the profile":  {func(cfg *oncehttp.Config) { authorized(cfg); cfg.Profile = clienttest.OwnProfile() }, authorized, "", "", `profile "own"`},
		"the seal key": {authorized, authorized, "ba", "a", `sealed with the key "b"`},
	}
}

// enqueueGuarded enqueues n operations with credentials that no journal keeps.
func enqueueGuarded(t *testing.T, c *oncehttp.Client, n int) {
	t.Helper()
	for i := range n {
		req := clienttest.Post(t, fmt.Sprintf(`{"n":%d}`, i))
		req.Header.Set("Authorization", "Bearer x")
		if err := c.Enqueue(req, oncehttp.Key(fmt.Sprintf("g%d", i))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhoCannotLeavesItAlone: a client that lacks something runs alone for an hour, and then beside one that has everything. It claims nothing,
// or hardly anything where the journal does not tell needs, changes nothing, and the other sends all at once.
func TestWhoCannotLeavesItAlone(t *testing.T) {
	t.Parallel()
	const n = 20
	for name, l := range lackings() {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, blind %t", name, blind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					below := memory.New()
					seen := func(p *otherProcess, keys string) persist.Journal {
						if p.blind = blind && keys == ""; keys != "" {
							return journaltest.Sealed(t, p, keys)
						}
						return p
					}
					able, unable := newOtherProcess(below), newOtherProcess(below)
					cannot := seen(unable, l.lacking) // before there is anything that it could not open
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					healthy, _ := clienttest.New(t, w, clienttest.On(seen(able, l.healthy), l.begins))
					none := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}}}
					var events eventLog
					lacking, _ := clienttest.New(t, none, clienttest.On(cannot, l.lacks, events.observe))
					enqueueGuarded(t, healthy, n)
					stop := clienttest.Run(t, lacking)
					time.Sleep(time.Hour + time.Minute)
					for rec, err := range below.List(t.Context(), persist.Query{}) {
						if err != nil || rec.Attempts != 0 || !rec.NextAttempt.IsZero() || rec.MaybeSent || rec.State != persist.StatePending {
							t.Errorf("%s: %+v, error %v; want it as it was", rec.Key, rec, err)
						}
					}
					claimed, _ := unable.counts()
					if limit := map[bool]int{false: 0, true: 70 * 2 * n}[blind && l.healthy == ""]; claimed > limit {
						t.Errorf("%d were claimed by the client that cannot act on them, want at most %d", claimed, limit)
					}
					stopHealthy := clienttest.Run(t, healthy)
					time.Sleep(time.Minute + time.Second)
					if got := len(w.Keys()); got != n || w.Count() != n {
						t.Errorf("%d of %d were sent, in %d sends", got, n, w.Count())
					}
					if err := stopHealthy(); err != nil {
						t.Error(err)
					}
					if err := stop(); err != nil {
						t.Errorf("the other has sent all, and Run returns %v", err)
					}
					if none.Count() != 0 {
						t.Errorf("%d sends by the client that cannot", none.Count())
					}
					events.unserved(t, 2, n, l.says)
				})
			})
		}
	}
}

// eventLog collects events.
type eventLog struct {
	mu  sync.Mutex
	all []oncehttp.Event
}

func (l *eventLog) observe(cfg *oncehttp.Config) {
	cfg.Observe = func(_ context.Context, e oncehttp.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, e)
	}
}

// unserved checks that there were so many EventUnserved, each of n operations that were begun at once, and no other that tells of one.
func (l *eventLog) unserved(t *testing.T, events, n int, says string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := 0
	for _, e := range l.all {
		switch {
		case e.Kind == oncehttp.EventBlocked:
			t.Errorf("blocked: %v", e.Err)
		case e.Kind != oncehttp.EventUnserved:
		case e.Count != n || e.Oldest.IsZero() || e.Err == nil || !strings.Contains(e.Err.Error(), says) || e.Key != "" || e.Origin == "":
			t.Errorf("%+v, want %d operations and %q", e, n, says)
		default:
			got++
		}
	}
	if got != events {
		t.Errorf("told %d times, want %d", got, events)
	}
}

// TestResumeOfWhoCannot: a Resume yields an error for each operation that the client cannot act on, claims none of them, and sends the rest.
func TestResumeOfWhoCannot(t *testing.T) {
	t.Parallel()
	for name, l := range lackings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				below := memory.New()
				able, unable := newOtherProcess(below), newOtherProcess(below)
				var can, cannot persist.Journal = able, unable
				if l.healthy != "" {
					cannot, can = journaltest.Sealed(t, unable, l.lacking), journaltest.Sealed(t, able, l.healthy)
				}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				healthy, _ := clienttest.New(t, w, clienttest.On(can, l.begins))
				lacking, _ := clienttest.New(t, w, clienttest.On(cannot, l.lacks, func(cfg *oncehttp.Config) {
					if cfg.Origins == nil {
						cfg.Origins = append(clienttest.Origins(), clienttest.OtherOrigin)
					}
				}))
				enqueueGuarded(t, healthy, 3)
				own := clienttest.Post(t, "{}")
				if name == "Authorize" { // where the other sends with credentials, this one sends nothing of its own either
					own = clienttest.Request(t, "POST", clienttest.OtherOrigin+"/p", "{}")
				}
				if err := lacking.Enqueue(own, "own"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				refused, sent := 0, 0
				for res, err := range lacking.Resume(t.Context()) {
					switch {
					case err == nil && res.Key == "own":
						sent++
					case err != nil && strings.Contains(err.Error(), l.says) && !strings.Contains(err.Error(), "damaged"):
						refused++
					default:
						t.Errorf("%v, %v", res.Key, err)
					}
				}
				if claimed, _ := unable.counts(); refused != 3 || sent != 1 || w.Count() != 1 || claimed != 1 {
					t.Errorf("%d refused, %d sent, %d sends, %d claimed; want 3, 1, 1 and 1", refused, sent, w.Count(), claimed)
				}
			})
		})
	}
}

// TestWhoCannotBesideWhoCan: of two clients of one process, on a journal without claims, too, the one that lacks something leaves everything to the
// other, which sends it at once.
func TestWhoCannotBesideWhoCan(t *testing.T) {
	t.Parallel()
	const n = 20
	for name, l := range lackings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				can, cannot := j, j
				if l.healthy != "" {
					cannot, can = journaltest.Sealed(t, j, l.lacking), journaltest.Sealed(t, j, l.healthy)
				}
				none, w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				var events eventLog
				lacking, _ := clienttest.New(t, none, clienttest.On(cannot, l.lacks, events.observe))
				healthy, _ := clienttest.New(t, w, clienttest.On(can, l.begins))
				enqueueGuarded(t, healthy, n)
				stop := clienttest.Run(t, lacking)
				time.Sleep(time.Hour + time.Minute)
				stopHealthy := clienttest.Run(t, healthy)
				time.Sleep(time.Second)
				if got := len(w.Keys()); got != n || w.Count() != n || none.Count() != 0 {
					t.Errorf("%d of %d were sent, in %d sends, and in %d by the other", got, n, w.Count(), none.Count())
				}
				if err := errors.Join(stopHealthy(), stop()); err != nil {
					t.Error(err)
				}
				events.unserved(t, 2, n, l.says)
			})
		})
	}
}

// TestEndsWhatItCannotOpen: Abandon acts on what stands in clear, by a client without the seal's key as by one with another; who has it reads
// the end. To settle takes the key, since the seal covers the effect. Words that nobody could seal are refused, and nothing changes.
func TestEndsWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "b"} {
		t.Run("keys "+keys, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				below := memory.New()
				cannot := clienttest.Sealed(t, &wiretest.Wire{}, below, keys) // before there is anything that it could not open
				able := clienttest.Sealed(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}}}, below, "a")
				for _, key := range []oncehttp.Key{"settled", "abandoned"} {
					if _, err := able.DoKey(clienttest.Post(t, "{}"), key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
				}
				happened := oncehttp.Resolution{Effect: oncehttp.EffectHappened}
				if err := cannot.Settle(t.Context(), "settled", happened); !errors.Is(err, persist.ErrSealed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("Settle without the key: %v", err)
				}
				for what, err := range map[string]error{
					"Abandon": cannot.Abandon(t.Context(), "abandoned", oncehttp.WithNote("no")),
					"Undo":    cannot.Abandon(t.Context(), "abandoned", oncehttp.Undo()),
				} {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) {
						t.Errorf("%s with what it cannot seal, or open: %v", what, err)
					}
				}
				for key := range map[oncehttp.Key]bool{"settled": true, "abandoned": true} {
					if rec := clienttest.Lookup(t, able, key); rec.State != persist.StatePending {
						t.Errorf("%s is %v", key, rec.State)
					}
				}
				if err := errors.Join(able.Settle(t.Context(), "settled", happened), cannot.Abandon(t.Context(), "abandoned")); err != nil {
					t.Error(err)
				}
				if s, a := clienttest.Lookup(t, able, "settled"), clienttest.Lookup(t, able, "abandoned"); s.State != persist.StateSettled || s.Effect != persist.EffectHappened || a.State != persist.StateAbandoned {
					t.Errorf("%v (%s) and %v", s.State, s.Effect, a.State)
				}
			})
		})
	}
}

// TestClearAmongSealed: an operation in clear in a sealed journal is passed over and reported. Every call that must know whether its key was
// used, repeated or replaced is ErrOutcomeUnknown, and begins nothing. It can be abandoned, and then says the same.
func TestClearAmongSealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c := clienttest.Sealed(t, w, below, "a")
		for _, key := range []oncehttp.Key{"sealed", "old"} {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), key))
		}
		clienttest.Absent(t, c, "old")
		plain, _ := clienttest.New(t, w, nil)
		for _, key := range []oncehttp.Key{"clear", oncehttp.Key("old").Generation(2)} { // also in the place of a next generation
			rec, err := plain.Prepare(clienttest.Post(t, "{}"), key)
			clienttest.Must(t, err)
			if _, created, err := below.Begin(t.Context(), rec); err != nil || !created {
				t.Fatal(created, err)
			}
		}
		calls := map[string]func() error{
			"Do":      func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "clear"); return err },
			"Do, []":  func() error { _, err := c.DoKey(clienttest.Post(t, "[]"), "clear"); return err },
			"Enqueue": func() error { return c.Enqueue(clienttest.Post(t, "{}"), "clear") },
			"Lookup":  func() error { _, err := c.Lookup(t.Context(), "clear"); return err },
			"Settle": func() error {
				return c.Settle(t.Context(), "clear", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
			},
			"Redrive": func() error { _, err := c.Redrive(t.Context(), "old"); return err },
			"Rekey": func() error {
				return c.Rekey(t.Context(), "old", "clear", "a test", oncehttp.AsSeen(clienttest.Lookup(t, c, "old")))
			},
		}
		check := func(when string) {
			for name, call := range calls {
				if err := call(); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, persist.ErrSealed) {
					t.Errorf("%s, %s: %v; want ErrOutcomeUnknown with ErrSealed", when, name, err)
				}
			}
		}
		check("pending")
		met, failed := 0, 0
		for rec, err := range c.Unfinished(t.Context()) {
			if errors.Is(err, persist.ErrSealed) {
				failed++
			} else if err == nil && rec.Key == "sealed" {
				met++
			}
		}
		if met != 1 || failed != 2 {
			t.Errorf("listed %d sealed, %d errors", met, failed)
		}
		failed = 0
		for _, err := range c.Resume(t.Context()) {
			if errors.Is(err, persist.ErrSealed) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if failed != 2 || w.Keys()["sealed"] != 1 || w.Count() != 1 {
			t.Errorf("%d errors, sent %v", failed, w.Keys())
		}
		clienttest.Must(t, c.Abandon(t.Context(), "clear"))
		if rec, err := below.Get(t.Context(), persist.ID{Key: "clear"}); err != nil || rec.State != persist.StateAbandoned || rec.Carrier == persist.CarrierSealed {
			t.Errorf("%+v, %v", rec, err)
		}
		check("abandoned")
		time.Sleep(time.Hour)
		if n, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: -1}); err != nil || n == 0 {
			t.Error(n, err)
		}
		delete(calls, "Redrive") // of an operation whose request is swept: refused as such
		delete(calls, "Rekey")
		check("swept")
		if w.Count() != 1 {
			t.Errorf("%d sends", w.Count())
		}
	})
}
