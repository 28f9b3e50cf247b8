package oncehttp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestOtherFacts: a client whose profile has the name and version of an operation's, and states other facts, sends it. A success confirms
// it; what a 4xx or a matcher alone would settle is held or goes on, with words that say why, whether it was in doubt or never sent. The
// client of the same facts goes on with what is pending.
func TestOtherFacts(t *testing.T) {
	t.Parallel()
	matches := []profile.Matcher{{Status: []int{409}, Pointer: "/done"}}
	other := withProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Mismatch = matches, []profile.Matcher{{Status: []int{422}}}
		p.Stored.Client = []profile.Matcher{{Status: []int{402}}}
	})
	for name, row := range map[string]struct {
		answer reply
		want   persist.State
	}{
		"a success":       {reply{status: 201, body: "{}"}, persist.StateConfirmed},
		"a final 4xx":     {reply{status: 402, body: "{}"}, persist.StateHeld},
		"already done":    {reply{status: 409, body: `{"done":1}`}, persist.StateHeld},
		"a mismatch":      {reply{status: 422, body: "{}"}, persist.StateHeld},
		"unauthorized":    {reply{status: 401, body: "{}"}, persist.StatePending},
		"another attempt": {reply{status: 429, body: "{}"}, persist.StatePending},
		"a server error":  {reply{status: 503, body: "{}"}, persist.StatePending},
	} {
		for _, doubt := range []bool{true, false} {
			how := map[bool]string{true: ", in doubt", false: ", never sent"}[doubt]
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					begins, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt, withProfile("x", func(*profile.Profile) {})))
					if err := begins.Enqueue(companyRequest(t), "k"); err != nil {
						t.Fatal(err)
					}
					if doubt {
						resume(t, begins)
						time.Sleep(time.Hour)
					}
					w := &wire{replies: []reply{row.answer}}
					reads, _ := newClient(t, w, on(j, oneAttempt, other))
					_, err := reads.DoKey(companyRequest(t), "k")
					rec := lookup(t, reads, "k")
					if rec.State != row.want || w.count() != 1 || len(w.keys()) != 1 {
						t.Errorf("%v after %d sends: %v, want %v", rec.State, w.count(), err, row.want)
					}
					if row.want == persist.StateConfirmed {
						if err != nil {
							t.Error(err)
						}
						return
					}
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("%v, want that it is unknown", err)
					}
					if row.want == persist.StateHeld && (!strings.Contains(err.Error(), "states other facts") || !strings.Contains(rec.Note, "states other facts")) {
						t.Errorf("%v, note %q; want words that say why", err, rec.Note)
					}
				})
			})
		}
	}
}

// TestShorterWindow: of the window of an operation and that of a client the shorter counts, whichever of them began it.
func TestShorterWindow(t *testing.T) {
	t.Parallel()
	window := func(d time.Duration) func(*oncehttp.Config) {
		return withProfile("x", func(p *profile.Profile) { p.Window.Floor = d })
	}
	for name, pair := range map[string][2]time.Duration{"corrected": {24 * time.Hour, 10 * time.Hour}, "not yet corrected": {10 * time.Hour, 24 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				first, _ := newClient(t, w, on(j, oneAttempt, window(pair[0])))
				second, _ := newClient(t, w, on(j, oneAttempt, window(pair[1])))
				_, _ = first.DoKey(companyRequest(t), "k")
				time.Sleep(12 * time.Hour)
				_, err := second.DoKey(companyRequest(t), "k")
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
					t.Errorf("%v after %d sends", err, w.count())
				}
			})
		})
	}
}

// ownWindow is a profile whose window is this.
func ownWindow(d time.Duration) *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Window.Floor = "x", d
	return p
}

// TestUnreadAnswerIsRead: what is held since a client of other facts could not read its answer is ended by one of the operation's own
// facts that reads it as a success, without a send; by a call with the key, and by Run. Nobody else ends it.
func TestUnreadAnswerIsRead(t *testing.T) {
	t.Parallel()
	done := []profile.Matcher{{Status: []int{200, 409}, Pointer: "/done"}}
	own := withProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Stored.Client = done, []profile.Matcher{{Status: []int{402}}}
	})
	refuses := withProfile("x", func(p *profile.Profile) { p.BusinessConflict = []profile.Matcher{{Status: []int{402, 409}}} })
	knows := withProfile("x", func(p *profile.Profile) {
		p.AlreadyDone = append([]profile.Matcher{{Status: []int{201}}}, done...)
	})
	finds := withProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Lookup = done, &profile.Lookup{Pointer: "/done", Path: "{path}/{id}"}
	})
	small := func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 2 }
	for name, row := range map[string]struct {
		answer reply
		holds  func(*oncehttp.Config) // sends it
		reads  func(*oncehttp.Config)
		end    string                 // empty: it stays held
		begins func(*oncehttp.Config) // nil: own
	}{
		"already done":               {reply{status: 409, body: `{"done":1}`}, refuses, own, "answer", nil},
		"a success":                  {reply{status: 201, body: `{"id":1}`}, knows, own, "answer", nil},
		"a refusal":                  {reply{status: 402, body: `{"no":1}`}, refuses, own, "", nil},
		"by other facts":             {reply{status: 409, body: `{"done":1}`}, refuses, knows, "", nil},
		"by those that held it":      {reply{status: 409, body: `{"done":1}`}, refuses, refuses, "", nil},
		"too large to be recorded":   {reply{status: 409, body: `{"done":1}`}, together(refuses, small), own, "", nil},
		"too large, and a success":   {reply{status: 201, body: `{"id":1}`}, together(knows, small), own, "gone", nil},
		"without the profile at all": {reply{status: 409, body: `{"done":1}`}, refuses, withProfile("y", func(*profile.Profile) {}), "", nil},
		"a lookup of other facts":    {reply{status: 409, body: `{"done":1}`}, finds, refuses, "", refuses},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, byRun := range []bool{false, true} {
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					change := own
					if row.begins != nil {
						change = row.begins
					}
					begins, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt, change))
					if err := begins.Enqueue(companyRequest(t), "k"); err != nil {
						t.Fatal(err)
					}
					w := &wire{replies: []reply{row.answer, {status: 200, body: `{"id":1}`}}}
					holds, _ := newClient(t, w, on(j, oneAttempt, row.holds))
					if held := resume(t, holds)["k"]; !errors.Is(held.err, oncehttp.ErrHeld) || lookup(t, holds, "k").HoldReason != persist.HoldUnread {
						t.Fatalf("%v, held: %q", held.err, lookup(t, holds, "k").HoldReason)
					}
					reads, _ := newClient(t, w, on(j, oneAttempt, row.reads))
					sends := w.count()
					readUnread(t, reads, byRun, row.end, row.answer)
					ended := row.end != ""
					if rec := lookup(t, holds, "k"); w.count() != sends || (rec.State == persist.StateConfirmed) != ended || ended && rec.Effect != oncehttp.EffectHappened {
						t.Errorf("%v (%s, effect %q) after %d more sends; want it ended: %t", rec.State, rec.HoldReason, rec.Effect, w.count()-sends, ended)
					}
				})
			}
		})
	}
}

// readUnread lets a client run, or call with the key.
func readUnread(t *testing.T, c *oncehttp.Client, byRun bool, end string, answer reply) {
	t.Helper()
	if byRun {
		stop := running(t, c)
		time.Sleep(2 * time.Hour)
		_ = stop() // it says what it lacks
		return
	}
	resp, err := c.DoKey(companyRequest(t), "k")
	if end != "answer" {
		exactlyOne(t, err)
	}
	switch end {
	case "":
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want that it is unknown", err)
		}
	case "gone":
		if !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrAnswerGone) {
			t.Errorf("%v, want that the answer is gone", err)
		}
	case "answer":
		if err != nil || resp.StatusCode != answer.status || read(t, resp) != answer.body || oncehttp.ResultOf(resp).Effect != oncehttp.EffectHappened {
			t.Errorf("%v, %+v; want the recorded answer", err, oncehttp.ResultOf(resp))
		}
	}
}
