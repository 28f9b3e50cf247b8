package otherconfig_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestOtherFacts: a client whose profile has the name and version of an operation's, and states other facts, sends it. A success confirms
// it; what a 4xx or a matcher alone would settle is held or goes on, with words that say why, whether it was in doubt or never sent. The
// client of the same facts goes on with what is pending.
func TestOtherFacts(t *testing.T) {
	t.Parallel()
	matches := []profile.Matcher{{Status: []int{409}, Pointer: "/done"}}
	other := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Mismatch = matches, []profile.Matcher{{Status: []int{422}}}
		p.Stored.Client = []profile.Matcher{{Status: []int{402}}}
	})
	for name, row := range map[string]struct {
		answer wiretest.Reply
		want   persist.State
	}{
		"a success":       {wiretest.Reply{Status: 201, Body: "{}"}, persist.StateConfirmed},
		"a final 4xx":     {wiretest.Reply{Status: 402, Body: "{}"}, persist.StateHeld},
		"already done":    {wiretest.Reply{Status: 409, Body: `{"done":1}`}, persist.StateHeld},
		"a mismatch":      {wiretest.Reply{Status: 422, Body: "{}"}, persist.StateHeld},
		"unauthorized":    {wiretest.Reply{Status: 401, Body: "{}"}, persist.StatePending},
		"another attempt": {wiretest.Reply{Status: 429, Body: "{}"}, persist.StatePending},
		"a server error":  {wiretest.Reply{Status: 503, Body: "{}"}, persist.StatePending},
	} {
		for _, doubt := range []bool{true, false} {
			how := map[bool]string{true: ", in doubt", false: ", never sent"}[doubt]
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					begins, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, clienttest.WithProfile("x", func(*profile.Profile) {})))
					if err := begins.Enqueue(companyRequest(t), "k"); err != nil {
						t.Fatal(err)
					}
					if doubt {
						clienttest.Resume(t, begins)
						time.Sleep(time.Hour)
					}
					w := &wiretest.Wire{Replies: []wiretest.Reply{row.answer}}
					reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, other))
					_, err := reads.DoKey(companyRequest(t), "k")
					rec := clienttest.Lookup(t, reads, "k")
					if rec.State != row.want || w.Count() != 1 || len(w.Keys()) != 1 {
						t.Errorf("%v after %d sends: %v, want %v", rec.State, w.Count(), err, row.want)
					}
					if row.want == persist.StateConfirmed {
						if err != nil {
							t.Error(err)
						}
						return
					}
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
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
		return clienttest.WithProfile("x", func(p *profile.Profile) { p.Window.Floor = d })
	}
	for name, pair := range map[string][2]time.Duration{"corrected": {24 * time.Hour, 10 * time.Hour}, "not yet corrected": {10 * time.Hour, 24 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, window(pair[0])))
				second, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, window(pair[1])))
				_, _ = first.DoKey(companyRequest(t), "k")
				time.Sleep(12 * time.Hour)
				_, err := second.DoKey(companyRequest(t), "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
					t.Errorf("%v after %d sends", err, w.Count())
				}
			})
		})
	}
}

// TestNoTimeHere: a client whose own time limits leave no time in the window sends nothing, and leaves what was never sent as never sent, however often it tries; a client with
// shorter ones sends it as the first.
func TestNoTimeHere(t *testing.T) {
	t.Parallel()
	window := clienttest.WithProfile("x", func(p *profile.Profile) { p.Window.Floor = time.Hour })
	long := clienttest.WithProfile("x", func(p *profile.Profile) { p.Window.Floor = 10 * time.Hour })
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, window))
		if err := first.Enqueue(companyRequest(t), "k"); err != nil {
			t.Fatal(err)
		}
		slow, _ := clienttest.New(t, w, clienttest.On(j, long, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = 2 * time.Hour }))
		for range 3 {
			time.Sleep(5 * time.Minute) // it leaves the operation alone, ever longer
			res := clienttest.Resume(t, slow)["k"]
			rec := clienttest.Lookup(t, slow, "k")
			if !errors.Is(res.Err, oncehttp.ErrNotSent) || rec.MaybeSent || !rec.FirstSent.IsZero() || rec.Sends != 0 || rec.State != persist.StatePending || w.Count() != 0 {
				t.Fatalf("%v; maybe sent %t, first %v, %d sends, %v; %d on the wire", res.Err, rec.MaybeSent, rec.FirstSent, rec.Sends, rec.State, w.Count())
			}
		}
		if _, err := first.DoKey(companyRequest(t), "k"); err != nil || w.Count() != 1 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
	})
}

// TestUnreadAnswerIsRead: what is held since a client of other facts could not read its answer is ended by one of the operation's own
// facts that reads it as a success, without a send; by a call with the key, and by Run. Nobody else ends it.
func TestUnreadAnswerIsRead(t *testing.T) {
	t.Parallel()
	done := []profile.Matcher{{Status: []int{200, 409}, Pointer: "/done"}}
	own := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Stored.Client = done, []profile.Matcher{{Status: []int{402}}}
	})
	refuses := clienttest.WithProfile("x", func(p *profile.Profile) { p.BusinessConflict = []profile.Matcher{{Status: []int{402, 409}}} })
	knows := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.AlreadyDone = append([]profile.Matcher{{Status: []int{201}}}, done...)
	})
	finds := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.AlreadyDone, p.Lookup = done, &profile.Lookup{Pointer: "/done", Path: "{path}/{id}"}
	})
	small := func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 2 }
	for name, row := range map[string]struct {
		answer wiretest.Reply
		holds  func(*oncehttp.Config) // sends it
		reads  func(*oncehttp.Config)
		end    string                 // empty: it stays held
		begins func(*oncehttp.Config) // nil: own
	}{
		"already done":               {wiretest.Reply{Status: 409, Body: `{"done":1}`}, refuses, own, "answer", nil},
		"a success":                  {wiretest.Reply{Status: 201, Body: `{"id":1}`}, knows, own, "answer", nil},
		"a refusal":                  {wiretest.Reply{Status: 402, Body: `{"no":1}`}, refuses, own, "", nil},
		"by other facts":             {wiretest.Reply{Status: 409, Body: `{"done":1}`}, refuses, knows, "", nil},
		"by those that held it":      {wiretest.Reply{Status: 409, Body: `{"done":1}`}, refuses, refuses, "", nil},
		"too large to be recorded":   {wiretest.Reply{Status: 409, Body: `{"done":1}`}, clienttest.Together(refuses, small), own, "", nil},
		"too large, and a success":   {wiretest.Reply{Status: 201, Body: `{"id":1}`}, clienttest.Together(knows, small), own, "gone", nil},
		"without the profile at all": {wiretest.Reply{Status: 409, Body: `{"done":1}`}, refuses, clienttest.WithProfile("y", func(*profile.Profile) {}), "", nil},
		"a lookup of other facts":    {wiretest.Reply{Status: 409, Body: `{"done":1}`}, finds, refuses, "", refuses},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, byRun := range []bool{false, true} {
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					change := own
					if row.begins != nil {
						change = row.begins
					}
					begins, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, change))
					if err := begins.Enqueue(companyRequest(t), "k"); err != nil {
						t.Fatal(err)
					}
					w := &wiretest.Wire{Replies: []wiretest.Reply{row.answer, {Status: 200, Body: `{"id":1}`}}}
					holds, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, row.holds))
					if held := clienttest.Resume(t, holds)["k"]; !errors.Is(held.Err, oncehttp.ErrHeld) || clienttest.Lookup(t, holds, "k").HoldReason != persist.HoldUnread {
						t.Fatalf("%v, held: %q", held.Err, clienttest.Lookup(t, holds, "k").HoldReason)
					}
					reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, row.reads))
					sends := w.Count()
					readUnread(t, reads, byRun, row.end, row.answer)
					ended := row.end != ""
					if rec := clienttest.Lookup(t, holds, "k"); w.Count() != sends || (rec.State == persist.StateConfirmed) != ended || ended && rec.Effect != oncehttp.EffectHappened {
						t.Errorf("%v (%s, effect %q) after %d more sends; want it ended: %t", rec.State, rec.HoldReason, rec.Effect, w.Count()-sends, ended)
					}
				})
			}
		})
	}
}

// readUnread lets a client run, or call with the key.
func readUnread(t *testing.T, c *oncehttp.Client, byRun bool, end string, answer wiretest.Reply) {
	t.Helper()
	if byRun {
		stop := clienttest.Run(t, c)
		time.Sleep(2 * time.Hour)
		_ = stop() // it says what it lacks
		return
	}
	resp, err := c.DoKey(companyRequest(t), "k")
	if end != "answer" {
		clienttest.ExactlyOne(t, err)
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
		if err != nil || resp.StatusCode != answer.Status || clienttest.Read(t, resp) != answer.Body || oncehttp.ResultOf(resp).Effect != oncehttp.EffectHappened {
			t.Errorf("%v, %+v; want the recorded answer", err, oncehttp.ResultOf(resp))
		}
	}
}
