package profile

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// randomFindings draws findings, also those that a profile cannot have.
func randomFindings(r *rand.Rand) []DriftFinding {
	var list []DriftFinding
	for range r.IntN(5) {
		list = append(list, DriftFinding{
			Finding:    []string{driftReplayGone, driftAnew, driftMismatch, driftInProgress, driftKeptError}[r.IntN(5)],
			Status:     []int{409, 422, 423, 425, 500}[r.IntN(5)],
			Operations: 1 + r.IntN(9), Last: time.Unix(r.Int64N(2e9), 0),
			within: time.Duration(r.Int64N(int64([]time.Duration{time.Microsecond, 3 * time.Second, time.Hour, 40 * 24 * time.Hour}[r.IntN(4)]))),
		})
	}
	return list
}

// randomAnswer draws an answer that meets a matcher of the profile, or any.
func randomAnswer(r *rand.Rand, p *profile.Profile) classify.Answer {
	statuses := []int{200, 201, 202, 303, 307, 400, 401, 402, 404, 408, 409, 410, 412, 422, 423, 425, 429, 500, 502, 503}
	a := classify.Answer{Status: statuses[r.IntN(len(statuses))], Header: http.Header{}, Body: []byte(`{"n":1}`), Whole: r.IntN(5) > 0, Framed: true}
	matchers := slices.Concat(p.AlreadyDone, p.Mismatch, p.Poisoned, p.BusinessConflict, p.InProgress, p.Unclear, p.Stored.Client, p.Replay)
	if len(matchers) > 0 && r.IntN(2) == 0 {
		m := matchers[r.IntN(len(matchers))]
		if len(m.Status) > 0 {
			a.Status = m.Status[r.IntN(len(m.Status))]
		}
		if m.Header != "" {
			a.Header.Set(m.Header, slices.Concat(m.Has, []string{"true"})[0])
		}
		if parts := bytes.Split([]byte(m.Pointer), []byte("/")); len(parts) == 2 && len(m.Equals) > 0 {
			a.Body = []byte(`{"` + string(parts[1]) + `":"` + m.Equals[0] + `"}`)
		}
	}
	if p.ShouldRetry.Header != "" && r.IntN(2) == 0 {
		a.Header.Set(p.ShouldRetry.Header, []string{p.ShouldRetry.Yes, p.ShouldRetry.No}[r.IntN(2)])
	}
	return a
}

// TestTightened: whatever is found, the patch reads each answer as the profile does, or holds it. Its window is no longer, it calls no
// more errors kept and none not kept, nothing else changes, and it is a file that loads.
func TestTightened(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	names, now := profile.Names(), time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	held := 0
	for range testrun.N(500, 4000) {
		p, _ := profile.ByName(names[r.IntN(len(names))])
		before := p.Clone()
		found := randomFindings(r)
		c := tightened(p, found, now)
		if diff := before.Differences(p); diff != nil {
			t.Fatalf("seed %d: %s itself has changed: %v", seed, p.Name, diff)
		}
		for _, fact := range c.Differences(p) {
			if !slices.Contains([]string{"name", "window", "unclear", "stored"}, fact) {
				t.Fatalf("seed %d: %s: %s has changed by %+v", seed, p.Name, fact, found)
			}
		}
		longest := p.Window.Floor
		for _, x := range found {
			if x.Finding == driftReplayGone || x.Finding == driftAnew || x.Finding == driftMismatch {
				longest = max(min(longest, x.within), time.Millisecond) // a file spells no shorter time
			}
		}
		if c.Window.Floor > longest || c.Stored.Success != p.Stored.Success || c.Stored.ServerError == profile.No && p.Stored.ServerError != profile.No || c.Stored.ServerError == profile.Yes && p.Stored.ServerError != profile.Yes {
			t.Fatalf("seed %d: %s by %+v: window %v, want at most %v; stored %+v of %+v", seed, p.Name, found, c.Window.Floor, longest, c.Stored, p.Stored)
		}
		for range 20 {
			a, facts := randomAnswer(r, p), classify.Facts{InDoubt: r.IntN(2) == 0, Protected: r.IntN(4) > 0, Repeated: r.IntN(4) == 0}
			was, is := classify.Classify(p, a, facts), classify.Classify(c, a, facts)
			holds := is.Kind == classify.KindUnknown && is.Hold && !is.Again && !is.Stored && !is.AlreadyDone
			if was != is && !holds {
				t.Fatalf("seed %d: %s by %+v: %d %v %s in %+v was %+v, and is %+v", seed, p.Name, found, a.Status, a.Header, a.Body, facts, was, is)
			}
			if was != is {
				held++
			}
		}
		text, err := c.File()
		if err != nil {
			t.Fatalf("seed %d: %s by %+v: %v", seed, p.Name, found, err)
		}
		if again, err := profile.Load(bytes.NewReader(text)); err != nil || again.Differences(c) != nil {
			t.Fatalf("seed %d: %s by %+v: %v, read otherwise in %v:\n%s", seed, p.Name, found, err, again.Differences(c), text)
		}
	}
	if held == 0 {
		t.Errorf("seed %d: no answer is held that was not before", seed)
	}
}

// TestDriftLook: attempts that only look like a finding are none.
func TestDriftLook(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	cut := persist.Attempt{Sent: true, Error: "answer 201 was cut off: unexpected EOF"}
	gone := persist.Attempt{Sent: true, Error: "no answer"}
	with := func(status int) persist.Attempt { return persist.Attempt{Sent: true, Status: status} }
	for name, c := range map[string]struct {
		profile string
		history []persist.Attempt
		change  func(*persist.Record)
		want    string
	}{
		"a cut success, and one without a mark": {"stripe", []persist.Attempt{cut, with(201)}, nil, driftReplayGone},
		"at the window":                         {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.History[1].At = first.Add(24 * time.Hour) }, driftOlderGone},
		"just before the window":                {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.History[1].At = first.Add(24*time.Hour - 1) }, driftReplayGone},
		"a cut 202":                             {"stripe", []persist.Attempt{{Sent: true, Error: "answer 202 was cut off: x"}, with(201)}, nil, ""},
		"a cut 402":                             {"stripe", []persist.Attempt{{Sent: true, Error: "answer 402 was cut off: x"}, with(201)}, nil, ""},
		"a whole 200 that was not final":        {"stripe", []persist.Attempt{with(200), with(201)}, nil, ""}, // such as a page
		"a mark":                                {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.Answer.Replayed = true }, ""},
		"a mark that was not read":              {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.Answer.Header = http.Header{"Idempotent-Replayed": {"true"}} }, ""},
		"no key protects":                       {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.Protected = false }, ""},
		"settled by a person":                   {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.State, rec.Effect = persist.StateHeld, "" }, ""},
		"the answer of a lookup":                {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.Answer.Status = 200 }, ""},
		"verdicts":                              {"zuora", []persist.Attempt{cut, with(201)}, nil, ""},
		"verdicts of flags":                     {"stripe", []persist.Attempt{cut, with(201)}, func(rec *persist.Record) { rec.Facts = "v00" }, ""},
		"a kept 500":                            {"stripe", []persist.Attempt{with(500), with(201)}, nil, driftKeptError},
		"a 500 and a success at the window":     {"stripe", []persist.Attempt{with(500), with(201)}, func(rec *persist.Record) { rec.History[1].At = first.Add(24 * time.Hour) }, ""},
		"a 500 of a gateway":                    {"stripe", []persist.Attempt{with(502), with(503), with(504), with(201)}, nil, ""},
		"a 500 and a refusal":                   {"stripe", []persist.Attempt{with(500), with(402)}, func(rec *persist.Record) { rec.Effect = persist.EffectRefused }, ""},
		"in progress at first":                  {"draft-07", []persist.Attempt{with(423), with(201)}, nil, ""}, // of no earlier request
		"in progress after a lost answer":       {"draft-07", []persist.Attempt{gone, with(423), with(201)}, nil, driftInProgress},
		"after a request that was not sent":     {"draft-07", []persist.Attempt{{Error: "refused"}, with(423), with(201)}, nil, ""},
		"a status of a layer in front":          {"draft-07", []persist.Attempt{gone, with(401), with(404), with(429), with(201)}, nil, ""},
		"422, which the draft names":            {"draft-07", []persist.Attempt{gone, with(422), with(201)}, nil, ""},
		"409 where nothing is in progress":      {"mollie", []persist.Attempt{gone, with(409), with(201)}, func(rec *persist.Record) { rec.Answer.Replayed = true }, ""},
	} {
		last := c.history[len(c.history)-1]
		rec := &persist.Record{
			ID: persist.ID{Key: "k"}, Origin: "https://a:443", Profile: c.profile, FirstSent: first, Sends: len(c.history), Protected: true,
			State: persist.StateConfirmed, Effect: persist.EffectHappened, History: slices.Clone(c.history), Answer: &persist.Answer{Status: last.Status, Body: []byte("{}")},
		}
		for i := range rec.History {
			rec.History[i].At = first.Add(time.Duration(i) * time.Second)
		}
		if c.change != nil {
			c.change(rec)
		}
		d := &drift{profiles: map[string]*profile.Profile{}, unknown: map[string]int{}}
		if err := d.look(rec); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range d.findings() {
			got += f.Finding
		}
		if got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}
