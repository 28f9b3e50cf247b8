package redrive_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
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

var refused = wiretest.Reply{Status: 404, Body: `{}`}

// TestUntold: with Untold, what a caller may know of is not redriven, whoever told it.
func TestUntold(t *testing.T) {
	t.Parallel()
	asks := func(t *testing.T, c *oncehttp.Client) {
		resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
		if err != nil || resp.StatusCode != 404 {
			t.Fatal(err)
		}
	}
	for name, r := range map[string]struct {
		change func(*oncehttp.Config)
		do     func(t *testing.T, c *oncehttp.Client)
		told   bool
	}{
		"ended by a pass": {nil, func(t *testing.T, c *oncehttp.Client) { enqueued(t, c, "k") }, false},
		"ended by a call": {nil, asks, true},
		"enqueued, ended by a call": {nil, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k"))
			asks(t, c)
		}, true},
		"a call has asked": {nil, func(t *testing.T, c *oncehttp.Client) { enqueued(t, c, "k"); asks(t, c) }, true},
		"an SDK has asked": {nil, func(t *testing.T, c *oncehttp.Client) { enqueued(t, c, "k"); _, _ = clienttest.SDK(t, c, "k") }, true},
		"Enqueue has asked": {nil, func(t *testing.T, c *oncehttp.Client) {
			enqueued(t, c, "k")
			_ = c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k")
		}, true},
		"of other content": {nil, func(t *testing.T, c *oncehttp.Client) {
			enqueued(t, c, "k")
			_ = c.Enqueue(clienttest.Post(t, `{"amount":2}`), "k")
		}, true},
		"OnResult was told": {func(cfg *oncehttp.Config) {
			cfg.OnResult = func(context.Context, persist.Record) error { return nil }
		}, func(t *testing.T, c *oncehttp.Client) { enqueued(t, c, "k"); delivers(t, c) }, true},
		"OnResult has failed": {func(cfg *oncehttp.Config) {
			cfg.OnResult = func(context.Context, persist.Record) error { return errors.New("no") }
		}, func(t *testing.T, c *oncehttp.Client) { enqueued(t, c, "k"); delivers(t, c) }, true},
		"joined by a call": {nil, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k"))
			stop := clienttest.Run(t, c)
			time.Sleep(time.Second) // the pass waits for its answer
			asks(t, c)
			_ = stop()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := roundTrip(func(req *http.Request) (*http.Response, error) {
					time.Sleep(5 * time.Second)
					return (&wiretest.Wire{Replies: []wiretest.Reply{refused}}).RoundTrip(req)
				})
				c, _ := clienttest.New(t, slow, r.change)
				r.do(t, c)
				rec := clienttest.Lookup(t, c, "k")
				_, err := c.Redrive(t.Context(), "k", oncehttp.Untold())
				if (err != nil) != r.told {
					t.Errorf("%v, told %t", err, rec.Told)
				}
				if r.told {
					clienttest.Refused(t, err, persist.StateConfirmed, []error{oncehttp.ErrFinal})
				}
				_, err = c.Redrive(t.Context(), "k")
				clienttest.Must(t, err)
			})
		})
	}
}

// TestRedriveResult: the results of an operation and of its redriven one reach one row by the key of the first try. A function that finds no row, and
// says so with an error, is called again.
func TestRedriveResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows := map[oncehttp.Key]persist.Effect{"idemp:order:o1": ""}
		w := &wiretest.Wire{Replies: []wiretest.Reply{refused, {Status: 201, Body: `{}`}}}
		byKey := false
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.OnResult = func(_ context.Context, rec persist.Record) error {
				key := oncehttp.Key(rec.Key)
				if !byKey {
					key, _ = key.FirstGeneration()
				}
				if _, found := rows[key]; !found {
					return errors.New("no row")
				}
				rows[key] = rec.FinalEffect()
				return nil
			}
		})
		enqueued(t, c, "idemp:order:o1")
		delivers(t, c)
		if rows["idemp:order:o1"] != persist.EffectRefused {
			t.Fatalf("rows %v, want refused", rows)
		}
		next, err := c.Redrive(t.Context(), "idemp:order:o1")
		clienttest.Must(t, err)
		byKey = true
		delivers(t, c)
		if rec := clienttest.Lookup(t, c, next); rows["idemp:order:o1"] != persist.EffectRefused || rec.OwedFrom.IsZero() {
			t.Fatalf("rows %v, owed from %v, want it owed", rows, rec.OwedFrom)
		}
		byKey = false
		time.Sleep(time.Hour)
		delivers(t, c)
		if rec := clienttest.Lookup(t, c, next); rows["idemp:order:o1"] != persist.EffectHappened || !rec.OwedFrom.IsZero() {
			t.Errorf("rows %v, owed from %v, want happened and delivered", rows, rec.OwedFrom)
		}
	})
}

// delivers runs for a while: Run hands results to OnResult.
func delivers(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	stop := clienttest.Run(t, c)
	time.Sleep(5 * time.Minute)
	_ = stop()
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestToldFirst: where the journal cannot note that a caller is told, the caller is not told.
func TestToldFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{refused}}, clienttest.On(j))
		enqueued(t, c, "k")
		j.OnAmend = journaltest.Fails(journaltest.ErrDisk)
		resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
		if resp != nil || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) {
			t.Errorf("%v, %v", resp, err)
		}
		if err := c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Error(err)
		}
		j.OnAmend = nil
		_, err = c.Redrive(t.Context(), "k", oncehttp.Untold())
		clienttest.Must(t, err)
	})
}

// TestJournalFails: whichever write of a Redrive, a Rekey or an Unsettle fails, the same call goes on with it later, and begins nothing twice.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	call := map[string]func(t *testing.T, c *oncehttp.Client) error{
		"Redrive": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Redrive(t.Context(), "k")
			return err
		},
		"Rekey": func(t *testing.T, c *oncehttp.Client) error {
			return clienttest.RekeyAsSeen(c, t.Context(), "k", "other", "why")
		},
		"Unsettle": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Unsettle(t.Context(), "k", "why")
			return err
		},
	}
	for name, do := range call {
		for _, write := range []string{"get", "amend", "begin", "begun", "update", "list"} {
			for after := range 3 {
				t.Run(name+"/"+write, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						j := &journaltest.Faulty{Journal: memory.New()}
						c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
						enqueued(t, c, "k")
						clienttest.Absent(t, c, "k")
						var calls atomic.Int64 // some looks are made at once
						fails := func() error {
							if calls.Add(1) == int64(after+1) {
								return journaltest.ErrDisk
							}
							return nil
						}
						at := map[string]*func() error{"get": &j.OnGet, "amend": &j.OnAmend, "begin": &j.OnBegin, "begun": &j.OnBegun, "update": &j.OnUpdate, "list": &j.OnList}[write]
						*at = fails
						err := do(t, c)
						*at = nil
						if err != nil {
							clienttest.ExactlyOne(t, err)
							if errors.Is(err, oncehttp.ErrNoEffect) {
								t.Errorf("%v", err)
							}
						} else if calls.Load() > int64(after) {
							t.Error("the failure of the journal was not told")
						}
						if _, err := c.Unsettle(t.Context(), "k", "why"); name != "Unsettle" && err == nil && countReplacing(t, j) > 0 {
							t.Error("the settlement was taken back beside a successor")
						} else if err == nil && name != "Unsettle" {
							return // nothing of it was done, and it is held now
						}
						clienttest.Must(t, do(t, c))
						if n := countReplacing(t, j); name != "Unsettle" && n != 1 {
							t.Errorf("%d operations replace it", n)
						}
					})
				})
			}
		}
	}
}

// countReplacing returns the number of records that replace another.
func countReplacing(t *testing.T, j persist.Journal) (n int) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		clienttest.Must(t, err)
		if rec.Replaces != "" {
			n++
		}
	}
	return n
}

// TestUnsettle: a settlement that is taken back is held, for persons alone, owed to OnResult, and ends again. Its history tells.
func TestUnsettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var owed []string
		asked := false
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			clienttest.OneAttempt(cfg)
			cfg.OnResult = func(_ context.Context, rec persist.Record) error {
				owed = append(owed, rec.State.String()+string(rec.HoldReason))
				return nil
			}
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				asked = true
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
			}
		})
		enqueued(t, c, "k")
		clienttest.Must(t, clienttest.SettleAsSeen(c, t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectAbsent, Note: "not there"}))
		delivers(t, c)
		if err := c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Fatal(err)
		}
		was, err := c.Unsettle(t.Context(), "k", "it is there")
		if err != nil || !was.Told || was.State != persist.StateSettled || was.Effect != persist.EffectAbsent {
			t.Fatalf("%v, was %v, told %t", err, was.State, was.Told)
		}
		rec := clienttest.Lookup(t, c, "k")
		if rec.State != persist.StateHeld || rec.HoldReason != persist.HoldReopened || rec.Told || rec.Note != "it is there" || len(rec.Acts) != 2 ||
			rec.Acts[0].Did != persist.ActAbsentTold || rec.Acts[0].Note != "not there" || rec.Acts[1].Did != persist.ActReopened {
			t.Errorf("%+v", rec)
		}
		delivers(t, c)
		_, err = c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
		clienttest.Refused(t, err, persist.StateHeld, []error{oncehttp.ErrHeld})
		if _, err := c.Redrive(t.Context(), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Error(err)
		}
		clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Note: "seen"}))
		delivers(t, c)
		if rec := clienttest.Lookup(t, c, "k"); rec.Note != "seen" || len(rec.Acts) != 2 {
			t.Errorf("%+v", rec)
		}
		if w.Count() != 1 || asked {
			t.Errorf("%d sends, Reconcile was asked: %t", w.Count(), asked)
		}
		if len(owed) != 3 || owed[0] != "settled" || owed[1] != "heldreopened" || owed[2] != "settled" {
			t.Errorf("OnResult had %q", owed)
		}
	})
}
