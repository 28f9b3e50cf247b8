package intent

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestGlanceOf: a record has ended, or has not.
func TestGlanceOf(t *testing.T) {
	t.Parallel()
	for state, want := range map[persist.State]Glance{
		persist.StatePending: SeesOpen, persist.StateHeld: SeesOpen, persist.StateConfirmed: SeesEnded, persist.StateSettled: SeesEnded,
		persist.StateMismatched: SeesEnded, persist.StateAbandoned: SeesEnded,
	} {
		if got := GlanceOf(&persist.Record{State: state}); got != want {
			t.Errorf("%v: %d, want %d", state, got, want)
		}
	}
}

// TestCallKeyNamed: of a call that named its key each error names it. Of any other call an error names no key that its caller could not go on with.
func TestCallKeyNamed(t *testing.T) {
	t.Parallel()
	made, random := CallKey{Keyless: true}, CallKey{Keyless: true, Random: true}
	for at, want := range map[Glance]struct{ made, random bool }{
		SeesNothing: {false, true}, SeesNone: {true, true}, SeesOpen: {true, true}, SeesEnded: {false, true},
		SeesRunning: {false, false}, HasNotLooked: {false, false},
	} {
		if !(CallKey{}).Named(at) {
			t.Errorf("a glance of %d: the call's own key is not named", at)
		}
		if got := made.Named(at); got != want.made {
			t.Errorf("a glance of %d: a made key is named: %t, want %t", at, got, want.made)
		}
		if got := random.Named(at); got != want.random {
			t.Errorf("a glance of %d: a random key is named: %t, want %t", at, got, want.random)
		}
	}
}

// TestLooks: after a failed Begin the call looks at its keys if no record of it can appear since: not at a shared journal that was asked, unless nobody
// else can know the key.
func TestLooks(t *testing.T) {
	t.Parallel()
	random := CallKey{Random: true}
	for f, want := range map[FailedBegin]bool{
		{}:                             true,
		{Shared: true}:                 false,
		{Shared: true, NotAsked: true}: true,
		{Shared: true, Key: random}:    true,
		{Uncertain: true}:              false,
		{Uncertain: true, Shared: true, NotAsked: true}: false,
		{Uncertain: true, Shared: true, Key: random}:    false,
	} {
		if got := f.Looks(); got != want {
			t.Errorf("%+v: %t", f, got)
		}
	}
}

// TestSays: what is another caller's comes first, then a call under way, and then the record.
func TestSays(t *testing.T) {
	t.Parallel()
	for k, want := range map[AtKey]Saying{
		{}:                    SaysUnclear,
		{Glance: SeesNone}:    SaysNothing,
		{Glance: SeesRunning}: SaysUnclear,
		{Glance: SeesOpen}:    SaysRecord,
		{Glance: SeesEnded}:   SaysRecord,
		{Glance: SeesEnded, Keyless: true, Leased: true}: SaysRecord,
		{Glance: SeesOpen, Keyless: true}:                SaysRecord,
		{Glance: SeesOpen, Leased: true}:                 SaysRecord,
		{Glance: SeesOpen, Keyless: true, Leased: true}:  SaysBusyElsewhere,
		{Glance: SeesNone, Keyless: true, Leased: true}:  SaysNothing,
		{Glance: SeesNone, MayAppear: true}:              SaysUnclear,
		{Glance: SeesNone, Unended: true}:                SaysBusy,
		{Glance: SeesNone, Running: true}:                SaysBusy,
		{Glance: SeesOpen, Running: true}:                SaysBusy,
		{Glance: SeesNone, Strange: true}:                SaysNothing,
		{Glance: SeesNone, Strange: true, Unended: true}: SaysBusy,
		{Glance: SeesNone, Strange: true, Running: true}: SaysAnothers,
		{Glance: SeesOpen, Strange: true}:                SaysAnothers,
		{Glance: SeesEnded, Strange: true}:               SaysAnothers,
		{Glance: SeesOpen, Strange: true, Unended: true}: SaysAnothers,
	} {
		if got := k.Says(); got != want {
			t.Errorf("%+v: %d, want %d", k, got, want)
		}
	}
}

// TestInTheWay: a call without a key begins nothing beside what is unresolved, or ended and told to nobody.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	open := operation.Op{Phase: operation.Phase{State: persist.StateHeld}}
	told := operation.Op{Phase: operation.Phase{State: persist.StateConfirmed}}
	untold := told
	untold.Unreported = true
	for name, c := range map[string]struct {
		l    Lookalike
		op   operation.Op
		want InTheWay
	}{
		"unresolved":                      {Lookalike{}, open, Unresolved},
		"in another process":              {Lookalike{Leased: true}, open, SentElsewhere},
		"its own":                         {Lookalike{OwnKey: true}, open, NotInTheWay},
		"its own, and untold":             {Lookalike{OwnKey: true}, untold, NotInTheWay},
		"of another scope":                {Lookalike{OtherScope: true}, open, NotInTheWay},
		"of another scope, and untold":    {Lookalike{OtherScope: true}, untold, NotInTheWay},
		"run by a call, without a doubt":  {Lookalike{Undoubted: true}, open, NotInTheWay},
		"told":                            {Lookalike{}, told, NotInTheWay},
		"told, and in another process":    {Lookalike{Leased: true}, told, NotInTheWay},
		"untold":                          {Lookalike{}, untold, Unreported},
		"untold, and in another process":  {Lookalike{Leased: true}, untold, Unreported},
		"untold, though without a doubt":  {Lookalike{Undoubted: true}, untold, Unreported},
		"in doubt, whatever was reported": {Lookalike{}, operation.Op{Phase: open.Phase, Unreported: true}, Unresolved},
	} {
		if got := c.l.InTheWay(&c.op); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestLeavesBegun: what a call has begun is taken back only if it went on because of a record that is gone.
func TestLeavesBegun(t *testing.T) {
	t.Parallel()
	for _, created := range []bool{false, true} {
		for _, stood := range []bool{false, true} {
			if got := LeavesBegun(created, stood); got != (created && stood) {
				t.Errorf("created %t, stood %t: %t", created, stood, got)
			}
		}
	}
}

// TestWhy: the error of a Begin that was refused for its size says that, and any other says that nothing was sent.
func TestWhy(t *testing.T) {
	t.Parallel()
	for f, want := range map[FailedBegin]operation.Trouble{{}: operation.IsNotSent, {TooLarge: true}: operation.IsTooLarge} {
		if got := f.Why(); got != want {
			t.Errorf("%+v: %d, want %d", f, got, want)
		}
	}
}

// TestNamesByRecord: the record under the key decides only of a made key that another call may have begun.
func TestNamesByRecord(t *testing.T) {
	t.Parallel()
	for key, want := range map[CallKey]bool{{}: false, {Keyless: true}: true, {Keyless: true, Random: true}: false} {
		if got := (FailedBegin{Key: key}).NamesByRecord(); got != want {
			t.Errorf("%+v: %t", key, got)
		}
	}
}

// TestTakesKept: after a failed Begin only a call that names its key takes what was recorded before, and only an answer that needs no write.
func TestTakesKept(t *testing.T) {
	t.Parallel()
	for says := operation.SaysUnreadable; says <= operation.Adopts; says++ {
		if got := (CallKey{}).TakesKept(says); got != (says == operation.GivesAnswer) {
			t.Errorf("the call names its key, opening %d: %t", says, got)
		}
		if (CallKey{Keyless: true}).TakesKept(says) {
			t.Errorf("the key was made, opening %d: it takes it", says)
		}
	}
}

// TestFailedPlace: a call without a place that names no key is told nothing; one that names it is told what stands there, unless the journal failed.
func TestFailedPlace(t *testing.T) {
	t.Parallel()
	for f, want := range map[FailedPlace]PlaceError{
		{}: AsFailedBegin, {Forgotten: true}: LooksAtKeys, {Unnamed: true}: PlaceUnclear, {Unnamed: true, Forgotten: true}: PlaceUnclear,
	} {
		if got := f.Says(); got != want {
			t.Errorf("%+v: %d, want %d", f, got, want)
		}
	}
}

// TestUnlooked: without a look a call says "nothing" of a random key alone, and of no key that could not be read, or whose Begin is in doubt.
func TestUnlooked(t *testing.T) {
	t.Parallel()
	random := CallKey{Random: true}
	for u, want := range map[Unlooked]Saying{
		{}: LooksFirst, {Key: random}: SaysNothing, {Unread: true}: SaysUnclear, {Uncertain: true}: SaysUnclear,
		{Unread: true, Key: random}: SaysUnclear, {Uncertain: true, Key: random}: SaysUnclear,
	} {
		if got := u.Says(); got != want {
			t.Errorf("%+v: %d, want %d", u, got, want)
		}
	}
}

// TestWatched: what was found at a key counts, but for nothing at one that was begun since.
func TestWatched(t *testing.T) {
	t.Parallel()
	for found := operation.Unclear; found <= operation.Abandoned; found++ {
		if got := Watched(found, false); got != found {
			t.Errorf("standing %d, not begun: %d", found, got)
		}
		want := found
		if found == operation.None {
			want = operation.Unclear
		}
		if got := Watched(found, true); got != want {
			t.Errorf("standing %d, begun since: %d, want %d", found, got, want)
		}
	}
}

// TestSimilar: of a possible operation of the same request another's is told first, then a lost Begin, and then a run elsewhere.
func TestSimilar(t *testing.T) {
	t.Parallel()
	for s, want := range map[Similar]Saying{
		{}: SaysRecord, {Leased: true}: SaysBusyElsewhere, {Noted: true}: SaysUnclear, {Noted: true, Leased: true}: SaysUnclear,
		{Strange: true}: SaysAnothers, {Strange: true, Noted: true, Leased: true}: SaysAnothers,
	} {
		if got := s.Says(); got != want {
			t.Errorf("%+v: %d, want %d", s, got, want)
		}
	}
}
