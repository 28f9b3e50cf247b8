package conformance_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
)

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
		"replay/binary", "replay/empty-body-204", "replay/gzip", "replay/large-answer", "replay/other-method", "replay/plain-after-gzip", "replay/without-body", "restart/inflight-killed-resolves",
		"restart/no-double-after-kill", "restart/replay-survives", "time/not-before",
		"token/fetched-apart", "token/other-caller-refused", "token/unknown-refused"} // keys are made here
	virtually(t, []int{1, 8, 32}, func(t *testing.T, _, parallel int) {
		p := releasing()
		url := start(t, mockserver.Config{Profile: p})
		o := options(url, p)
		o.Expire, o.Parallel = hook(url+"/_expire"), parallel
		rep := runSure(t, o)
		if got := wrong(rep); len(got) > 0 || rep.Summary.Pass < 60 {
			t.Errorf("%d at once: got %v and %d passes, want none and at least 60\n%s", parallel, got, rep.Summary.Pass, text(rep))
		}
		if got := skips(rep); !slices.Equal(got, skipped) {
			t.Errorf("%d at once: got skips %v, want %v", parallel, got, skipped)
		}
	})
}

// Nor does it over TCP, in real time.
func TestCorrectOverTCP(t *testing.T) {
	t.Parallel()
	beside([]int{1, 16}, func(_, parallel int) {
		p := releasing()
		o := options(start(t, mockserver.Config{Profile: p}), p)
		o.Parallel = parallel
		if rep := runSure(t, o); len(wrong(rep)) > 0 || rep.Summary.Pass < 55 {
			t.Errorf("%d at once: got %v and %d passes, want none and at least 55\n%s", parallel, wrong(rep), rep.Summary.Pass, text(rep))
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
