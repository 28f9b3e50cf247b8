package conformance_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// only judges some cases of a sample.
func only(t *testing.T, c choices, q quirk, change func(*conformance.Options), ids ...string) *conformance.Report {
	t.Helper()
	_, url := newSample(t, c, q)
	o := sampleOptions(url)
	o.Profile, o.Run = c.declare(), ids
	if change != nil {
		change(&o)
	}
	return run(t, o)
}

// Where no effect can be seen no case that needs effects passes, the report says
// so first, and the run is not clean: the server may well ignore keys.
func TestNothingSeen(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		for name, c := range map[string]choices{"nothing named": {nameless: true, updates: true}, "no body": {status: 204, nameless: true, updates: true}} {
			rep := only(t, c, quirk{key: func(*call, labelled) labelled { return labelled{} }}, func(o *conformance.Options) { o.Witness = "" }, "replay/**", "conflict/**", "key/missing-not-merged")
			if rep.ExitStatus() != 4 || !strings.Contains(rep.Headline, "no effect can be seen") || rep.Witness != conformance.WitnessNone {
				t.Errorf("%s: got status %d, headline %q, witness %s, want 4 and a word", name, rep.ExitStatus(), rep.Headline, rep.Witness)
			}
			for _, c := range rep.Cases {
				if c.Verdict == conformance.VerdictPass && (c.Level == conformance.LevelSafety || c.ID == "replay/answered") {
					t.Errorf("%s: %s passes without evidence: %v", name, c.ID, c.Findings)
				}
			}
		}
	})
}

// A witness that counts for everybody is not believed, and the server is not
// blamed for what it says.
func TestWitnessNotBelieved(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		for _, witness := range []string{"/_effects?ref={ref}#/all", "/_effects?ref=x{ref}#/count", "/_effects?ref={ref}#/{ref}"} {
			s, url := newSample(t, choices{}, quirk{})
			s.number()
			o := sampleOptions(url)
			o.Witness, o.Run = url+witness, []string{"replay/effects-once", "conflict/not-executed", "replay/status"}
			rep := run(t, o)
			if rep.Summary.Fail > 0 || rep.ExitStatus() != 4 || !strings.Contains(rep.Headline, "witness") {
				t.Errorf("%s: got %s, status %d, headline %q, want no failure and a word about the witness", witness, list(wrong(rep)), rep.ExitStatus(), rep.Headline)
			}
		}
	})
}

// A delay that does nothing makes no overlap, and no case that needs one passes.
func TestDeadDelay(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		rep := only(t, choices{}, quirk{}, func(o *conformance.Options) { o.DelayQuery = "slumber={ms}" }, "inflight/**", "net/**")
		for _, c := range rep.Cases {
			book, _ := conformance.Find(c.ID)
			for _, need := range book.Needs {
				if need == conformance.NeedDelay && c.Verdict != conformance.VerdictInconclusive && c.Verdict != conformance.VerdictSkip {
					t.Errorf("%s: got %s, want it to be open: %v", c.ID, c.Verdict, c.Findings)
				}
			}
		}
		if c := find(t, rep, "inflight/once"); !strings.Contains(c.Reason, "--delay-query") || rep.ExitStatus() != 4 {
			t.Errorf("got %q and status %d, want the flag named and 4", c.Reason, rep.ExitStatus())
		}
	})
}

// Where no other method is served the case is skipped. One that is named and not served is no evidence, and the flag is named.
func TestOtherMethodUnserved(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		rep := only(t, choices{}, quirk{}, nil, "scope/other-method")
		if c := find(t, rep, "scope/other-method"); c.Verdict != conformance.VerdictSkip || !strings.Contains(c.Reason, "--other-method") || rep.ExitStatus() == 4 {
			t.Errorf("got %s %q, status %d; want it skipped with the flag", c.Verdict, c.Reason, rep.ExitStatus())
		}
		named := func(o *conformance.Options) { o.OtherMethod = http.MethodPut }
		if c := find(t, only(t, choices{updates: true}, quirk{}, named, "scope/other-method"), "scope/other-method"); c.Verdict != conformance.VerdictPass {
			t.Errorf("PUT: got %s %q, want a pass", c.Verdict, c.Reason)
		}
		if c := find(t, only(t, choices{}, quirk{}, named, "scope/other-method"), "scope/other-method"); c.Verdict != conformance.VerdictInconclusive || !strings.Contains(c.Reason, "--other-method") {
			t.Errorf("PUT where it is not served: got %s %q, want inconclusive and the flag", c.Verdict, c.Reason)
		}
	})
}

// A case on which others depend, and which fails now and then only, keeps nobody
// out.
func TestFlakyGate(t *testing.T) {
	t.Parallel()
	var repeats atomic.Int64
	flaky := quirk{repeat: func(c *call, _ *entry) (reply, bool) {
		if repeats.Add(1) != 1 {
			return reply{}, false
		}
		return c.refusal(http.StatusTeapot, "odd", "not this time"), true
	}}
	rep := only(t, choices{}, flaky, func(o *conformance.Options) { o.Skip = []string{"conflict/late-difference"} }, "replay/answered", "replay/status", "conflict/**")
	gate := find(t, rep, "replay/answered")
	if gate.Verdict != conformance.VerdictFail || gate.Odds != "failed 1/3" {
		t.Errorf("the gate: got %s %q, want failed 1/3", gate.Verdict, gate.Odds)
	}
	if rep.Summary.Skip > 0 || rep.Summary.Pass < 8 {
		t.Errorf("got %d skips and %d passes, want the others judged\n%s", rep.Summary.Skip, rep.Summary.Pass, text(rep))
	}
}

// What fails only while other cases run beside it is said to do so, and is not
// held against the server unless an effect or an answer proves it.
func TestOnlyInCompany(t *testing.T) {
	t.Parallel()
	var working atomic.Int64
	crowded := quirk{front: func(c *call) bool {
		working.Add(1)
		defer working.Add(-1)
		if c.r.Method != http.MethodGet || c.r.Header.Get("Idempotency-Key") == "" {
			time.Sleep(5 * time.Millisecond) // to be company
			return false
		}
		deadline := time.Now().Add(300 * time.Millisecond)
		n := working.Load()
		for ; n < 2 && time.Now().Before(deadline); n = working.Load() {
			time.Sleep(time.Millisecond) // for company
		}
		if n > 1 {
			c.send(reply{status: http.StatusOK, body: "replayed", header: map[string]string{"Idempotent-Replayed": "true"}})
		}
		return n > 1
	}}
	_, url := newSample(t, choices{}, crowded)
	o := sampleOptions(url)
	o.Profile.Replay = []profile.Matcher{{Header: "Idempotent-Replayed"}}
	o.Run = []string{"scope/safe-method-not-answered", "key/hostile-names", "key/empty-not-shared"}
	c := find(t, run(t, o), "scope/safe-method-not-answered")
	if c.Verdict != conformance.VerdictInconclusive || c.Odds != "failed 1/3" || !strings.Contains(c.Reason, "beside other cases") {
		t.Errorf("got %s %q %q, want it open, with its odds", c.Verdict, c.Odds, c.Reason)
	}
}

// Keys that are all refused say nothing about whether two of them are kept apart.
func TestEveryKeyRefused(t *testing.T) {
	t.Parallel()
	uuids := quirk{key: func(_ *call, k labelled) labelled {
		k.ok = k.ok && len(k.key) == 36
		return k
	}}
	rep := only(t, choices{}, uuids, nil, "key/case-sensitive", "key/digits")
	for _, c := range rep.Cases {
		if c.Verdict != conformance.VerdictInconclusive || !strings.Contains(c.Reason, "refused") {
			t.Errorf("%s: got %s %q, want inconclusive", c.ID, c.Verdict, c.Reason)
		}
	}
}

// A warning in one part of a case stands, though another part is not decided.
func TestWorstPartStands(t *testing.T) {
	t.Parallel()
	pinned := quirk{run: func(c *call) reply {
		if c.r.URL.Query().Get("fail") == "429" {
			return c.succeed() // it cannot be made to answer that
		}
		return c.serve()
	}, keep: func(_ *call, a reply) *reply {
		if a.status == 503 || a.status < 400 {
			return &a
		}
		return nil
	}}
	c := find(t, only(t, choices{}, pinned, nil, "outcome/transient-not-pinned"), "outcome/transient-not-pinned")
	if c.Verdict != conformance.VerdictWarn {
		t.Errorf("got %s %v, want the warning", c.Verdict, c.Findings)
	}
}

// A second run against the same server meets none of the first one's keys.
func TestTwiceTheSameServer(t *testing.T) {
	t.Parallel()
	_, url := newSample(t, choices{}, quirk{covers: func(_ *call, parts []string) []string { return parts[:3] }})
	o := sampleOptions(url)
	o.Run = []string{"key/**"}
	for n := range 2 {
		if rep := run(t, o); rep.Summary.Fail+rep.Summary.Warn > 0 {
			t.Errorf("run %d: got %s", n+1, list(wrong(rep)))
		}
	}
}

// A refusal that is plain text is warned about at most, for a missing key as for
// another body.
func TestPlainRefusals(t *testing.T) {
	t.Parallel()
	c := choices{plain: true, required: true}
	rep := only(t, c, quirk{}, func(o *conformance.Options) { o.Profile = releasing() }, "key/missing", "conflict/error-shape", "conflict/rejected-status")
	if got := list(wrong(rep)); got != "?conflict/error-shape ?key/missing" {
		t.Errorf("got %q, want two warnings", got)
	}
}

// A 500 is no refusal of a malformed key.
func TestErrorIsNoRefusal(t *testing.T) {
	t.Parallel()
	broken := quirk{key: func(c *call, k labelled) labelled {
		if k.there && !k.ok {
			panic(http.ErrAbortHandler)
		}
		return k
	}, front: func(c *call) bool {
		if text := c.r.Header.Get("Idempotency-Key"); strings.HasPrefix(text, `"`) && !strings.HasSuffix(text, `"`) {
			c.send(c.refusal(http.StatusInternalServerError, "failed", "unterminated"))
			return true
		}
		return false
	}}
	if c := find(t, only(t, choices{}, broken, nil, "key/malformed-sf-rejected"), "key/malformed-sf-rejected"); c.Verdict != conformance.VerdictWarn {
		t.Errorf("got %s %v, want a warning", c.Verdict, c.Findings)
	}
}

// A repeat on a fresh connection that is given another answer is a failure.
func TestKeepAliveFails(t *testing.T) {
	t.Parallel()
	var kept atomic.Value // the connection of the first request with the latest key
	pooled := quirk{keep: func(c *call, a reply) *reply {
		kept.Store(c.r.RemoteAddr)
		return &a
	}, repeat: func(c *call, _ *entry) (reply, bool) {
		another := reply{status: http.StatusOK, header: map[string]string{}, body: `{"id":"p1"}`}
		return another, c.r.RemoteAddr != kept.Load()
	}}
	if c := find(t, only(t, choices{}, pooled, nil, "net/keep-alive"), "net/keep-alive"); c.Verdict != conformance.VerdictFail {
		t.Errorf("got %s %v, want a failure", c.Verdict, c.Findings)
	}
}

// A witness that forgets in a restart counts too little, and clears nobody.
func TestRestartForgetsWitness(t *testing.T) {
	t.Parallel()
	s, _ := newSample(t, choices{}, quirk{})
	p := newPhoenix(t, func() http.Handler { return s })
	o := sampleOptions("http://" + p.address)
	o.Run, o.Hold = []string{"restart/no-double-after-kill"}, time.Second
	o.Restart = func(ctx context.Context) error {
		s.mu.Lock()
		clear(s.effects)
		s.mu.Unlock()
		return p.restart(ctx)
	}
	if c := find(t, run(t, o), o.Run[0]); c.Verdict != conformance.VerdictInconclusive {
		t.Errorf("got %s %v, want inconclusive", c.Verdict, c.Findings)
	}
}

// Without a witness a replayed id is not credited to another reference, and an
// answer that has lost its id is known by its Location.
func TestInferredNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		for bug, want := range map[string]string{
			"mismatch-silent": "conflict/not-silent", "replay-loses-body": "?replay/body-bytes", "replay-cuts-body": "?replay/body-bytes replay/large-body",
		} {
			p := releasing()
			o := options(start(t, mockserver.Config{Bug: bug, Profile: p}), p)
			o.Witness, o.Run = "", []string{"replay/**", "conflict/not-*"}
			if got := list(wrong(run(t, o))); got != list(parseVerdicts(want)) {
				t.Errorf("%s: got %q, want %q", bug, got, want)
			}
		}
	})
}
