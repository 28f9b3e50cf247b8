package conformance_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// A target that does not take connections is one error, not a hundred.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := conformance.Run(t.Context(), conformance.Options{URL: url})
	if rep != nil || !errors.Is(err, conformance.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, %v, want ErrUnreachable in one line", rep, err)
	}
}

// Every profile of the package is honoured by the mock, and a correct server of
// it fails nothing.
func TestProfiles(t *testing.T) {
	t.Parallel()
	strict := releasing()
	strict.Encoding = profile.SFString
	query := releasing()
	query.Carrier = profile.Carrier{Place: profile.Query, Name: "idempotency_key"}
	body := releasing()
	body.Carrier = profile.Carrier{Place: profile.Body, Name: "/idempotency_key"}
	uuids := releasing()
	uuids.Key.Format = profile.UUIDv4
	for i, p := range []*profile.Profile{strict, query, body, uuids} {
		p.Name = []string{"quoted", "query", "body", "uuids"}[i]
	}
	all := []*profile.Profile{profile.Draft07(), profile.StripeV1(), profile.GoCardless(), strict, query, body, uuids}
	virtually(t, all, func(t *testing.T, _ int, p *profile.Profile) {
		o := options(start(t, mockserver.Config{Profile: p}), p)
		if p == body {
			o.Body = `{"reference":"{ref}","amount":100,"idempotency_key":"{key}"}`
			o.ActionPath = "" // its body is empty, and could not carry the key
		}
		rep := run(t, o)
		if got := wrong(rep); len(got) > 0 || rep.Summary.Pass < 30 {
			t.Errorf("%s: got %v and %d passes, want none and at least 30\n%s", p.Name, got, rep.Summary.Pass, text(rep))
		}
	})
}

// What a profile declares is compared and not failed; undeclared, it warns.
func TestDeclared(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		locked := releasing()
		locked.InProgress = []profile.Matcher{{Status: []int{423}}}
		locked.Mismatch = []profile.Matcher{{Status: []int{400}, Pointer: "/error/type", Equals: []string{"idempotency_error"}}}
		url := start(t, mockserver.Config{Profile: locked})
		rep := run(t, options(url, locked))
		if got := wrong(rep); len(got) > 0 {
			t.Errorf("declared: got %v, want none\n%s", got, text(rep))
		}
		rep = run(t, options(url, releasing()))
		want := parseVerdicts("?inflight/status-or-wait ?conflict/rejected-status ?conflict/error-shape")
		if got := wrong(rep); !maps.Equal(got, want) {
			t.Errorf("undeclared: got %v, want %v\n%s", got, want, text(rep))
		}
	})
}

// An API that stores its 500s passes where that is declared, and fails where the
// contrary is.
func TestDeclaredStored(t *testing.T) {
	t.Parallel()
	storing := profile.Draft07()
	storing.Stored.ServerError = profile.Yes
	type row struct {
		server, suite *profile.Profile
		want          conformance.Verdict
	}
	virtually(t, []row{
		{storing, storing, conformance.VerdictPass}, {storing, releasing(), conformance.VerdictFail},
		{releasing(), storing, conformance.VerdictFail}, {releasing(), releasing(), conformance.VerdictPass},
		{storing, profile.Draft07(), conformance.VerdictSeen},
	}, func(t *testing.T, _ int, c row) {
		o := options(start(t, mockserver.Config{Profile: c.server}), c.suite)
		o.Run, o.Reruns = []string{"outcome/5xx"}, -1
		if got := find(t, run(t, o), "outcome/5xx"); got.Verdict != c.want {
			t.Errorf("server %v, suite %v: got %s %s, want %s", c.server.Stored.ServerError, c.suite.Stored.ServerError, got.Verdict, got.Actual, c.want)
		}
	})
}

// Without anything but a URL, cases that need more are skipped with the reason,
// effects are inferred, and nothing fails on a correct server.
func TestBare(t *testing.T) {
	t.Parallel()
	url := start(t, mockserver.Config{})
	rep := run(t, conformance.Options{URL: url + "/payments", Settle: time.Second, Rounds: 3})
	if got := wrong(rep); len(got) > 0 {
		t.Errorf("got %v, want none\n%s", got, text(rep))
	}
	c := find(t, rep, "replay/effects-once")
	if c.Verdict != conformance.VerdictPass || c.Witness != conformance.WitnessInferred {
		t.Errorf("replay/effects-once: got %s by %s, want pass, inferred", c.Verdict, c.Witness)
	}
	for id, word := range map[string]string{
		"inflight/once": "--delay-query", "outcome/5xx": "--fail-query", "scope/other-principal-not-answered": "--as",
		"scope/other-path-not-answered": "--second-path", "restart/replay-survives": "--restart-cmd", "time/expires": "--expire-cmd",
		"replay/binary": "RunHandler",
	} {
		if c := find(t, rep, id); c.Verdict != conformance.VerdictSkip || !strings.Contains(c.Reason, word) {
			t.Errorf("%s: got %s %q, want a skip that names %s", id, c.Verdict, c.Reason, word)
		}
	}
}

// A broken server is caught by the ids in its answers alone.
func TestInferred(t *testing.T) {
	t.Parallel()
	caught := map[string]string{
		"keys-ignored": "replay/effects-once", "no-exclusion": "inflight/once", "burst-race": "inflight/burst",
		"mismatch-executed": "conflict/not-executed", "other-path-answered": "scope/other-path-not-answered",
		"connection-scoped": "replay/effects-once", "released-on-abort": "",
	}
	beside(testrun.Some(slices.Sorted(maps.Keys(caught)), 3), func(_ int, bug string) {
		id := caught[bug]
		o := options(start(t, mockserver.Config{Bug: bug, Profile: releasing()}), releasing())
		o.Witness, o.Reruns = "", -1
		got := wrong(run(t, o))
		if id == "" && len(got) > 0 || id != "" && got[id] != conformance.VerdictFail {
			t.Errorf("%s: got %v, want %q to fail", bug, got, id)
		}
	})
}

// A witness that does not answer, or not with a number, proves nothing.
func TestWitnessBroken(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		url := start(t, mockserver.Config{})
		for _, witness := range []string{url + "/nowhere?ref={ref}#/count", url + "/_effects?ref={ref}#/nothing", url + "/_effects?ref={ref}"} {
			o := conformance.Options{URL: url + "/payments", Witness: witness, Run: []string{"replay/effects-once"}}
			c := find(t, run(t, o), "replay/effects-once")
			if c.Verdict != conformance.VerdictInconclusive || !strings.Contains(c.Reason, "witness") {
				t.Errorf("%s: got %s %q, want inconclusive", witness, c.Verdict, c.Reason)
			}
		}
	})
}

// A target that does not take a plain operation is one error that says what it
// answered, and nothing is judged.
func TestRefuses(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	rep, err := conformance.Run(t.Context(), conformance.Options{URL: server.URL + "/nothing?secret=here"})
	if rep != nil || !errors.Is(err, conformance.ErrRefuses) || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, %v, want ErrRefuses with the status", rep, err)
	}
	if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n")) {
		t.Errorf("got %q, want one line without the query", err)
	}
}

// So is a peer that speaks something else, or closes, or is silent.
func TestNoHTTP(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]func(net.Conn){
		"garbage": func(c net.Conn) { _, _ = io.WriteString(c, "220 ready\r\n\r\n") },
		"closes":  func(net.Conn) {},
		"silent":  func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := listen(t, speak)
			rep, err := conformance.Run(t.Context(), conformance.Options{URL: url, AnswerTimeout: 500 * time.Millisecond})
			if rep != nil || !errors.Is(err, conformance.ErrRefuses) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %v, want ErrRefuses in one line", rep, err)
			}
		})
	}
}

func listen(t *testing.T, speak func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it ends the loop
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				speak(conn)
				_ = conn.Close() // it is thrown away
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// The budget of requests holds, and what it cuts short is inconclusive. Only requests on the wire count.
func TestBudget(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }() // other tests look at it
	rep := run(t, conformance.Options{URL: server.URL() + "/payments", Run: []string{"replay/after-100-requests"}, MaxRequests: 40})
	c := find(t, rep, "replay/after-100-requests")
	if c.Verdict != conformance.VerdictInconclusive || !strings.Contains(c.Reason, "budget") || rep.ExitStatus() != 4 {
		t.Errorf("got %s %q, status %d; want inconclusive, with the budget, and 4", c.Verdict, c.Reason, rep.ExitStatus())
	}
	if sends := server.Ledger().Snapshot().Sends; sends > 40 || rep.Requests != 40 {
		t.Errorf("got %d sends, and %d requests in the report; want at most 40, and 40", sends, rep.Requests)
	}
}

// A run that takes too long ends, and what it had no time for is inconclusive.
func TestTimeout(t *testing.T) {
	t.Parallel()
	url := start(t, mockserver.Config{})
	o := options(url, releasing())
	o.Timeout, o.Hold, o.Run = 1500*time.Millisecond, 10*time.Second, []string{"inflight/once", "replay/status"}
	rep := run(t, o)
	c := find(t, rep, "inflight/once")
	if c.Verdict != conformance.VerdictInconclusive || !strings.Contains(c.Reason, "timeout") {
		t.Errorf("got %s %q, want inconclusive for want of time", c.Verdict, c.Reason)
	}
	if c := find(t, rep, "replay/status"); c.Verdict != conformance.VerdictPass {
		t.Errorf("replay/status: got %s, want a pass before the time was up", c.Verdict)
	}
	if rep.MS > 5000 {
		t.Errorf("the run took %v ms, want it to end with its timeout", rep.MS)
	}
}

// A caller who cancels gets the report so far, and the context's error.
func TestCancel(t *testing.T) {
	t.Parallel()
	url := start(t, mockserver.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(url, releasing())
	o.Hold, o.Run = 10*time.Second, []string{"inflight/once", "replay/status"}
	o.Done = func(c conformance.Result) {
		if c.ID == "replay/status" {
			cancel()
		}
	}
	rep, err := conformance.Run(ctx, o)
	if !errors.Is(err, context.Canceled) || rep == nil {
		t.Fatalf("got %v, %v, want the report and context.Canceled", rep, err)
	}
	if c := find(t, rep, "inflight/once"); c.Verdict != conformance.VerdictInconclusive {
		t.Errorf("inflight/once: got %s, want inconclusive", c.Verdict)
	}
}

// Each case is told once, when it is finished, and never two at a time.
func TestDone(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	o := options(start(t, mockserver.Config{}), releasing())
	o.Run = []string{"replay/**", "scope/**"}
	o.Done = func(c conformance.Result) {
		if !mu.TryLock() {
			t.Error("Done was called while it was running")
			return
		}
		defer mu.Unlock()
		told = append(told, c.ID)
	}
	rep := run(t, o)
	var ids []string
	for _, c := range rep.Cases {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	slices.Sort(told)
	if !slices.Equal(ids, told) {
		t.Errorf("told of %v, want %v", told, ids)
	}
}

// Repeat runs each case so often, and shows how often it failed.
func TestRepeat(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		o := options(start(t, mockserver.Config{Bug: "mismatch-silent"}), profile.Draft07())
		o.Repeat, o.Run = 4, []string{"conflict/not-silent", "conflict/error-shape"}
		rep := run(t, o)
		if c := find(t, rep, "conflict/not-silent"); c.Verdict != conformance.VerdictFail || c.Odds != "failed 4/4" {
			t.Errorf("got %s %q, want failed 4/4", c.Verdict, c.Odds)
		}
		if rep.Requests < 16 {
			t.Errorf("got %d requests, want four times two cases", rep.Requests)
		}
	})
}

// Two runs on one server never meet each other's keys, with the same seed too.
func TestRunsApart(t *testing.T) {
	t.Parallel()
	url := start(t, mockserver.Config{Profile: releasing()})
	o := options(url, releasing())
	o.Quick = true
	first, second := run(t, o), run(t, o)
	if first.Run == second.Run || first.Seed != second.Seed {
		t.Errorf("got runs %s and %s with seeds %d and %d", first.Run, second.Run, first.Seed, second.Seed)
	}
	for i := range first.Cases {
		if a, b := first.Cases[i], second.Cases[i]; a.Verdict != b.Verdict {
			t.Errorf("%s: got %s, then %s", a.ID, a.Verdict, b.Verdict)
		}
	}
}

// The report can be written in every format, and read back.
func TestReport(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		o := options(start(t, mockserver.Config{Bug: "mismatch-silent"}), profile.Draft07())
		o.Quick, o.Name = true, "mock"
		rep := run(t, o)
		written, err := rendered(rep)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range report.Formats() {
			var b strings.Builder
			if err := report.Write(&b, format, report.Options{}, written); err != nil || b.Len() == 0 {
				t.Errorf("%s: %v, %d bytes", format, err, b.Len())
			}
			if strings.Contains(b.String(), "alice-alice") {
				t.Errorf("%s shows the credential", format)
			}
			if format == report.JSON {
				if _, err := report.Parse(strings.NewReader(b.String())); err != nil {
					t.Errorf("the JSON does not read back: %v", err)
				}
			}
		}
	})
}

// lateContext has a deadline, and sees it late: as on a busy machine, where a dialer has seen it already.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A connection that fails at the caller's deadline is no error of the transport, also if the context does not say yet that it has ended.
func TestDeadlineSeenByTheDialer(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Until(deadline))
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(time.Second))
	defer cancel()
	rep, err := conformance.Run(lateContext{ctx, deadline}, conformance.Options{URL: server.URL, Run: []string{"replay/status"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's deadline", err)
	}
	if rep != nil && rep.Cases[0].Verdict == conformance.VerdictError {
		t.Errorf("got %s, %q, want no error of the transport", rep.Cases[0].Verdict, rep.Cases[0].Reason)
	}
}
