package intent

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestPlaceholder: the record of a lower generation that no call has begun is valid before and after its end, is kept for ever, and names the generation
// that is sent. Nobody acts on it, or begins anything in its place.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	next := persist.Record{
		ID: persist.ID{Account: "a", Key: "k:gen=2"}, Origin: "https://api.example.com:443", Method: "POST", Target: "/v1", Body: []byte("x"), WireKey: "k:gen=2",
		Fingerprint: make([]byte, 32), Scopes: []persist.Scope{{Name: "X", Value: "1"}}, KeepKey: time.Hour, Enqueued: true, MaybeSent: true, FirstSent: now, Generated: true,
	}
	held := Placeholder(&next, persist.ID{Account: "a", Key: "k"}, "k", now)
	ended := EndedPlaceholder(held, now)
	for _, rec := range []*persist.Record{&held, &ended} {
		if err := rec.Validate(); err != nil || !IsSkipped(rec) || rec.KeepKey != 0 || rec.ReplacedBy != "k:gen=2" || rec.Body != nil || rec.MaybeSent || rec.Enqueued || rec.Generated {
			t.Errorf("%+v: %v", rec, err)
		}
		op := operation.OpOf(rec, 0)
		if !op.Skipped || !op.IsActedOn() || (Successor{Begun: true, Early: true, Another: true, Unbegun: true}).IsStoppedBy(&op) {
			t.Errorf("%+v", op)
		}
		if op.Witnessed = true; !(Successor{}).IsStoppedBy(&op) {
			t.Error("an event proves an effect, and the later generation is sent")
		}
	}
	for _, act := range []acts.Anew{acts.Redrives, acts.Unsettles, acts.Rekeys} {
		op := operation.OpOf(&ended, 0)
		if got := act.MayAnew(&op, acts.Successors{}, now); got != acts.IsReplaced {
			t.Errorf("act %d: %v", act, got)
		}
	}
	if ended.State != persist.StateSettled || ended.Effect != persist.EffectAbsent || ended.HoldReason != "" {
		t.Errorf("it ended as %v, %q", ended.State, ended.Effect)
	}
}

// TestWantsPlaceholder: a placeholder is written for a generation without a record, and ended if it is held. What a record names is no generation.
func TestWantsPlaceholder(t *testing.T) {
	t.Parallel()
	acts := []persist.Act{{Did: persist.ActSkipped}}
	for name, c := range map[string]struct {
		elder  Relative
		stands bool
		at     persist.Record
		want   bool
	}{
		"none":            {Relative{Key: "k"}, false, persist.Record{}, true},
		"named":           {Relative{Key: "k", Named: true}, false, persist.Record{}, false},
		"a held one":      {Relative{Key: "k"}, true, persist.Record{State: persist.StateHeld, Acts: acts}, true},
		"an ended one":    {Relative{Key: "k"}, true, persist.Record{State: persist.StateSettled, Acts: acts}, false},
		"an operation":    {Relative{Key: "k"}, true, persist.Record{State: persist.StatePending}, false},
		"a held one, too": {Relative{Key: "k", Named: true}, true, persist.Record{State: persist.StateHeld, Acts: acts}, false},
	} {
		if got := WantsPlaceholder(c.elder, c.stands, &c.at); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLeftNothing: only of a placeholder it is known that a later generation without a record had no effect, and only if none may appear.
func TestLeftNothing(t *testing.T) {
	t.Parallel()
	for _, skipped := range []bool{false, true} {
		for _, stands := range []bool{false, true} {
			for _, appears := range []bool{false, true} {
				op := operation.Op{Phase: operation.Phase{Skipped: skipped}}
				if got := LeftNothing(&op, stands, appears); got != (skipped && !stands && !appears) {
					t.Errorf("skipped %t, stands %t, may appear %t: %t", skipped, stands, appears, got)
				}
			}
		}
	}
}

// TestSkippedSuccessor: the operation that a placeholder names is its successor, whatever its bytes, unless it is of another scope.
func TestSkippedSuccessor(t *testing.T) {
	t.Parallel()
	of := func(value string) []persist.Scope { return []persist.Scope{{Name: "X", Value: value}} }
	old := persist.Record{ID: persist.ID{Key: "k"}, ReplacedBy: "k:gen=2", Scopes: of("1"), Acts: []persist.Act{{Did: persist.ActSkipped}}}
	next := persist.Record{ID: persist.ID{Key: "k:gen=2"}, Fingerprint: []byte("other"), Scopes: of("1")}
	other := next
	other.Scopes = of("2")
	if !IsSuccessor(&old, &next) || IsSuccessor(&old, &other) {
		t.Error("the wrong successor")
	}
	if old.Acts = nil; IsSuccessor(&old, &next) {
		t.Error("a record that nobody has skipped has a successor of other bytes")
	}
}
