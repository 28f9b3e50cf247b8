package operation

import "testing"

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

// TestNamesNext: a new try has a key only if callers know the key before it.
func TestNamesNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   Op
		want bool
	}{
		"a caller's key": {Op{}, true}, "made for one call": {Op{Generated: true}, false}, "made of the request": {Op{Generated: true, Business: true}, true},
		"the server's": {Op{ServerToken: true}, false},
	} {
		if got := c.op.NamesNext(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
