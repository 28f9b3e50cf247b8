package conformance_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
)

// layer is the mock as a middleware: its key layer in front of another handler.
func layer(t *testing.T, bug string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		server := mockserver.New(mockserver.Config{Handler: next, Bug: bug, Profile: releasing()})
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return server
	}
}

func handlerOptions() conformance.Options {
	return conformance.Options{
		Profile: releasing(), Settle: 600 * time.Millisecond, AnswerTimeout: 2 * time.Second, Rounds: 5,
		Header: http.Header{"Authorization": {"Bearer alice-alice"}},
		As:     http.Header{"Authorization": {"Bearer bob-bob-bob"}},
	}
}

// In handler mode the same broken layers fail the same cases, and what needs a
// handler of the suite's own is judged too.
func TestHandler(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"":                      "",
		"no-exclusion":          "inflight/once",
		"stuck-after-duplicate": "inflight/leaves-no-trap",
		"stuck-after-crash":     "outcome/crash-resolves",
		"replay-loses-body":     "?replay/body-bytes ?replay/binary ?replay/gzip ?replay/plain-after-gzip replay/large-answer",
		"stuck-after-500":       "outcome/5xx-resolves",
		"mismatch-silent":       "conflict/not-silent",
	} {
		t.Run("bug "+bug, func(t *testing.T) {
			t.Parallel()
			var rep *conformance.Report
			virtual(t, func(t *testing.T) { rep = runHandler(t, layer(t, bug), handlerOptions()) })
			if got := wrong(rep); !maps.Equal(got, parseVerdicts(want)) {
				t.Errorf("got %v, want %q\n%s", got, want, text(rep))
			}
		})
	}
}

// runHandler judges a middleware in virtual time.
func runHandler(t *testing.T, middleware func(http.Handler) http.Handler, o conformance.Options) *conformance.Report {
	var url string
	rep, err := conformance.RunHandlerOver(t.Context(), middleware, o, func(h http.Handler) { url = serve(t, h) },
		func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialOf(url)(ctx, network, address)
		})
	if err != nil {
		t.Errorf("RunHandler: %v", err)
		return &conformance.Report{}
	}
	return rep
}

// What only a handler of the suite's own can show of the mock's bugs is seen by
// exactly the cases that the rows name.
func TestHandlerBugs(t *testing.T) {
	t.Parallel()
	rows := sights()
	var names []string
	for name, s := range rows {
		if s.owned != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	virtually(t, names, func(t *testing.T, _ int, bug string) {
		for seed := range uint64(3) {
			o := handlerOptions()
			o.Seed = seed + 1
			rep := runHandler(t, layer(t, bug), o)
			if got := list(wrong(rep)); got != list(parseVerdicts(rows[bug].owned)) {
				t.Errorf("%s, seed %d: got %q, want %q\n%s", bug, seed+1, got, rows[bug].owned, text(rep))
			}
		}
	})
}

// A correct layer passes what only a handler of the suite's own can show.
func TestHandlerOwned(t *testing.T) {
	t.Parallel()
	o := handlerOptions()
	o.Run = []string{"replay/**", "outcome/crash-*", "inflight/once"}
	rep, err := conformance.RunHandler(t.Context(), layer(t, ""), o)
	if err != nil {
		t.Fatalf("RunHandler: %v", err)
	}
	for _, id := range []string{"replay/empty-body-204", "replay/binary", "replay/gzip", "replay/large-answer", "replay/without-body", "outcome/crash-resolves"} {
		if c := find(t, rep, id); c.Verdict != conformance.VerdictPass {
			t.Errorf("%s: got %s, want pass: %s %s", id, c.Verdict, c.Actual, c.Reason)
		}
	}
	if c := find(t, rep, "inflight/once"); c.Witness != conformance.WitnessCounted {
		t.Errorf("inflight/once: got witness %s, want counted", c.Witness)
	}
}

// A layer that does nothing is caught.
func TestHandlerBare(t *testing.T) {
	t.Parallel()
	rep, err := conformance.RunHandler(t.Context(), func(next http.Handler) http.Handler { return next }, handlerOptions())
	if err != nil {
		t.Fatalf("RunHandler: %v", err)
	}
	got := wrong(rep)
	if got["replay/effects-once"] != conformance.VerdictFail || got["replay/answered"] != conformance.VerdictFail {
		t.Errorf("got %v, want replay/answered and replay/effects-once to fail", got)
	}
}
