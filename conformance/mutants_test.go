package conformance_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
)

// mutants names, for each broken server, exactly the cases that must fail (or,
// behind a question mark, warn; behind a tilde, be inconclusive). Nothing else may. The two that concern the
// window, and the one whose case is only observed, have tests of their own.
func mutants() map[string]string {
	return map[string]string{
		"keys-ignored":         "replay/answered replay/effects-once",
		"other-header-name":    "replay/answered replay/effects-once",
		"connection-scoped":    "replay/answered replay/effects-once",
		"two-lines-first-wins": "?key/two-lines",
		"empty-key-shared":     "key/empty-not-shared",
		"keyless-merged":       "key/missing-not-merged",
		"key-truncated":        "key/255-accepted",
		"key-folded":           "key/case-sensitive",
		"key-trimmed":          "key/hostile-names",
		"key-normalised":       "key/hostile-names",
		// The quoted empty key and the unterminated one begin with a quote too.
		"quoted-key-500":            "key/sf-string-accepted key/invalid-is-4xx ?key/empty-not-shared ?key/malformed-sf-rejected",
		"malformed-quotes-accepted": "?key/malformed-sf-rejected",
		"parameters-in-key":         "?key/sf-parameters-ignored",
		// Each of these sends keys outside the bounds.
		"invalid-key-500":             "key/invalid-is-4xx key/two-lines key/5000-rejected-4xx ?key/empty-not-shared ?key/non-ascii ?key/malformed-sf-rejected",
		"invalid-key-executed":        "key/invalid-not-executed key/two-lines key/5000-rejected-4xx key/malformed-sf-rejected",
		"long-key-accepted":           "?key/5000-rejected-4xx",
		"mismatch-silent":             "conflict/not-silent",
		"mismatch-executed":           "conflict/not-executed",
		"mismatch-in-flight-executed": "inflight/other-body",
		"mismatch-replaces":           "conflict/original-survives",
		"mismatch-500":                "conflict/rejected-status",
		"mismatch-bare":               "?conflict/error-shape",
		"mismatch-leaks":              "conflict/no-leak",
		"other-path-answered":         "scope/other-path-not-answered",
		"other-method-answered":       "scope/other-method",
		"other-principal-answered":    "scope/other-principal-not-answered",
		"chunked-differs":             "net/chunked-equals-length",
		"fresh-key-refused":           "scope/fresh-key-executes",
		"get-answered":                "scope/safe-method-not-answered",
		"no-exclusion":                "inflight/once",
		"burst-race":                  "inflight/burst",
		"in-flight-stored":            "inflight/converges",
		"stuck-after-duplicate":       "inflight/leaves-no-trap",
		"in-flight-500":               "inflight/status-or-wait",
		"in-flight-200":               "inflight/status-or-wait inflight/converges",
		"in-flight-hangs":             "inflight/status-or-wait",
		"retry-after-absurd":          "?inflight/retry-after-sane",
		"retry-after-missing":         "?inflight/retry-after-present",
		"stuck-after-abort":           "net/abort-then-retry-resolves",
		// Whether the client left by FIN or by RST makes no difference to these.
		"released-on-abort":   "net/abort-then-retry-resolves net/once net/response-lost-then-retry",
		"stored-after-write":  "net/abort-then-retry-resolves net/once net/response-lost-then-retry",
		"truncated-claims":    "net/truncated-does-not-claim",
		"stuck-after-500":     "outcome/5xx-resolves",
		"stuck-after-4xx":     "outcome/4xx outcome/corrected-body ?outcome/transient-not-pinned", // 429 is a 4xx
		"stuck-after-crash":   "outcome/crash-resolves",
		"error-5xx-stored":    "outcome/5xx",
		"error-5xx-poisons":   "outcome/5xx-resolves outcome/crash-resolves", // a crash is a 500 as well
		"error-4xx-rerun":     "outcome/4xx",
		"transient-pinned":    "?outcome/transient-not-pinned",
		"replay-rejected":     "replay/answered",
		"replay-executes":     "replay/effects-once",
		"replay-loses-status": "?replay/status outcome/4xx", // a stored refusal becomes a success
		// A large body is lost and cut as any other is.
		"replay-loses-body":     "?replay/body-bytes",
		"replay-cuts-body":      "?replay/body-bytes replay/large-body",
		"replay-loses-type":     "?replay/headers",
		"replay-loses-location": "?replay/headers",
		"replay-gives-cookie":   "?replay/no-set-cookie",
		"first-marked":          "replay/not-marked-when-first",
		"store-too-small":       "replay/after-100-requests",
		"other-query-answered":  "", // see TestOtherQuery
		"expires-early":         "", // see TestWindow
		"never-expires":         "", // see TestWindow
	}
}

func parseVerdicts(list string) map[string]conformance.Verdict {
	all := map[string]conformance.Verdict{}
	for id := range strings.FieldsSeq(list) {
		if name, warned := strings.CutPrefix(id, "?"); warned {
			all[name] = conformance.VerdictWarn
		} else if name, open := strings.CutPrefix(id, "~"); open {
			all[name] = conformance.VerdictInconclusive
		} else {
			all[id] = conformance.VerdictFail
		}
	}
	return all
}

// Each broken server fails exactly the cases that are named for it.
func TestMutants(t *testing.T) {
	t.Parallel()
	want := mutants()
	catalogue := slices.DeleteFunc(bugs.All(), func(b bugs.Bug) bool { return len(b.Cases) == 0 }) // no case yet
	reports := make([]*conformance.Report, len(catalogue))
	beside(catalogue, func(i int, bug bugs.Bug) { reports[i] = runMutant(t, bug.Name) })
	for i, bug := range catalogue {
		cases, named := want[bug.Name]
		delete(want, bug.Name)
		if !named {
			t.Errorf("no cases are named for %s", bug.Name)
		}
		t.Run(bug.Name, func(t *testing.T) { checkMutant(t, bug, cases, reports[i]) })
	}
	for name := range want {
		t.Errorf("the mock has no bug %s", name)
	}
}

func runMutant(t *testing.T, bug string) *conformance.Report {
	p := releasing()
	o := options(start(t, mockserver.Config{Bug: bug, Profile: p}), p)
	if bug == "store-too-small" {
		o.Parallel = 1 // else the other cases push one another's keys out
	}
	if bug == "in-flight-hangs" {
		o.AnswerTimeout = 2 * time.Second // it is waited for in full
	}
	return runSure(t, o)
}

func checkMutant(t *testing.T, bug bugs.Bug, cases string, rep *conformance.Report) {
	got, want := wrong(rep), parseVerdicts(cases)
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v\n%s", got, want, text(rep))
	}
	for _, id := range bug.Cases {
		if _, caught := want[id]; !caught && want != nil && cases != "" {
			t.Errorf("the mock says that %s is caught by %s", bug.Name, id)
		}
	}
	for id, verdict := range got {
		c := find(t, rep, id)
		if c.Expected == "" || c.Actual == "" || !shown(&c) || len(c.Exchanges) == 0 {
			t.Errorf("%s has no evidence: %+v", id, c)
		}
		if verdict == conformance.VerdictFail && !strings.HasPrefix(c.Odds, "failed ") {
			t.Errorf("%s: got odds %q, want how often it failed", id, c.Odds)
		}
	}
}

// shown reports whether exchanges are marked as what shows the finding.
func shown(c *conformance.Result) bool {
	return slices.ContainsFunc(c.Exchanges, func(x conformance.Exchange) bool { return x.Shows })
}

// The query is only observed, and what is seen differs.
func TestOtherQuery(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"": "the query belongs to it", "other-query-answered": "the first answer was given",
	} {
		p := releasing()
		o := options(start(t, mockserver.Config{Bug: bug, Profile: p}), p)
		o.Run = []string{"scope/other-query"}
		c := find(t, run(t, o), "scope/other-query")
		if c.Verdict != conformance.VerdictSeen || !strings.Contains(c.Actual, want) {
			t.Errorf("bug %q: got %s %q, want seen %q", bug, c.Verdict, c.Actual, want)
		}
	}
}

// The window is tried on servers whose window is short.
func TestWindow(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"": "", "expires-early": "time/not-before", "never-expires": "time/expires",
	} {
		t.Run("bug "+bug, func(t *testing.T) {
			t.Parallel()
			p := releasing()
			window := 900 * time.Millisecond
			o := options(start(t, mockserver.Config{Bug: bug, Profile: p, Window: window}), p)
			o.Window, o.Run = window, []string{"time/**"}
			rep := run(t, o)
			if got := wrong(rep); !maps.Equal(got, parseVerdicts(want)) {
				t.Errorf("got %v, want %q\n%s", got, want, text(rep))
			}
		})
	}
}

// A correct server fails nothing, whatever profile it honours, and the verdicts
// are the same each time.
func TestCorrect(t *testing.T) {
	t.Parallel()
	skipped := []string{"oasis/repeatable-requests", "outcome/store-outage", "outcome/unauthorised-not-consumed",
		"replay/binary", "replay/empty-body-204", "replay/gzip", "replay/other-method", "replay/plain-after-gzip", "restart/inflight-killed-resolves",
		"restart/no-double-after-kill", "restart/replay-survives", "time/not-before",
		"token/fetched-apart", "token/other-caller-refused", "token/unknown-refused"} // keys are made here
	beside([]int{1, 8, 32}, func(_, parallel int) {
		p := releasing()
		url := start(t, mockserver.Config{Profile: p})
		o := options(url, p)
		o.Expire, o.Parallel = hook(url+"/_expire"), parallel
		rep := runSure(t, o)
		if got := wrong(rep); len(got) > 0 || rep.Summary.Pass < 60 {
			t.Errorf("%d at once: got %v and %d passes, want none and at least 60\n%s", parallel, got, rep.Summary.Pass, text(rep))
		}
		got := slices.DeleteFunc(skips(rep), func(id string) bool {
			return id == "inflight/retry-after-present" // on a busy machine the first may be over when the duplicate arrives
		})
		if !slices.Equal(got, skipped) {
			t.Errorf("%d at once: got skips %v, want %v", parallel, got, skipped)
		}
	})
}

func skips(rep *conformance.Report) []string {
	var ids []string
	for _, c := range rep.Cases {
		if c.Verdict == conformance.VerdictSkip {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
