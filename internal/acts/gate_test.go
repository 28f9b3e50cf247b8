package acts

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestLacksCredentials: where others send with Authorize, a client without it does not.
func TestLacksCredentials(t *testing.T) {
	t.Parallel()
	needs := persist.Needs{Format: persist.Format}
	has := Has{Profile: true, OriginAllowed: true, OthersAuthorize: "https://api.test"}
	if got := Gate(needs, "https://api.test", has).Need; got != Authorize {
		t.Errorf("without Authorize: %d", got)
	}
	if has.Authorize = true; Gate(needs, "https://api.test", has).Need != Nothing {
		t.Error("with Authorize it may not act")
	}
}

// everything is a client that meets the needs of rec.
func everything(rec *persist.Record) Has {
	return Has{Credential: rec.Credential, Region: rec.Region, Authorize: true, Profile: true, OriginAllowed: true}
}

// Each need that a client does not meet is named, and nothing else keeps it from an operation.
func TestGate(t *testing.T) {
	t.Parallel()
	rec := persist.Record{Profile: "own", ProfileVersion: "2", Region: "eu", Credential: "sha256:" + strings.Repeat("ab", 32), Omitted: []string{"Authorization"}}
	for name, c := range map[string]struct {
		needs func(*persist.Needs)
		has   func(*Has)
		want  Need
		says  string
		is    error
	}{
		"nothing":         {nil, nil, Nothing, "", nil},
		"a later format":  {func(n *persist.Needs) { *n = persist.ParseNeeds("2 what=ever") }, nil, Newer, "newer version", persist.ErrNewer},
		"an unknown word": {func(n *persist.Needs) { *n = persist.ParseNeeds("1 what=ever") }, nil, Newer, "newer version", persist.ErrNewer},
		"a frozen fact":   {nil, func(h *Has) { h.Unknown = "its key travels in smoke" }, Newer, "smoke", persist.ErrNewer},
		"the seal's key":  {func(n *persist.Needs) { *n = n.Lock("k1+k2", "x") }, nil, SealKey, `"k1+k2"`, persist.ErrSealed},
		"a seal":          {func(n *persist.Needs) { n.Plain = true }, nil, NotSealed, "not sealed", persist.ErrSealed},
		"the origin":      {nil, func(h *Has) { h.OriginAllowed = false }, Origin, "https://x:443", nil},
		"the region":      {nil, func(h *Has) { h.Region = "us" }, Region, `region "eu"`, nil},
		"no region":       {nil, func(h *Has) { h.Region = "" }, Region, `region "eu"`, nil},
		"the credential":  {nil, func(h *Has) { h.Credential = "" }, Credential, "another credential", nil},
		"Authorize":       {nil, func(h *Has) { h.Authorize, h.Omitted = false, "Authorization" }, Authorize, "keeps (Authorization); set Config.Authorize", nil},
		"the profile":     {nil, func(h *Has) { h.Profile = false }, Profile, `profile "own" version "2"`, nil},
	} {
		needs, has := rec.Needs(), everything(&rec)
		if c.needs != nil {
			c.needs(&needs)
		}
		if c.has != nil {
			c.has(&has)
		}
		lack := Gate(needs, "https://x:443", has)
		err := lack.Err()
		if lack.Need != c.want || (err == nil) != (c.want == Nothing) || (lack.Short == "") != (c.want == Nothing) {
			t.Errorf("%s: lacks %+v, error %v", name, lack, err)
			continue
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) || strings.Contains(err.Error(), "damaged")) {
			t.Errorf("%s: %v, want %q that matches %v", name, err, c.says, c.is)
		}
	}
	if lack := Gate((&persist.Record{Profile: "own"}).Needs(), "", Has{Profile: true, OriginAllowed: true}); lack != (Lack{}) {
		t.Errorf("an operation that needs nothing: %+v", lack)
	}
	if lack := Gate((&persist.Record{}).Needs(), "", Has{}); lack.Need == Nothing {
		t.Error("a client that has nothing may act")
	}
}

// TestMayGoTo: bytes go to the recorded origin, and only while the client sends there.
func TestMayGoTo(t *testing.T) {
	t.Parallel()
	const own, other = "https://api.example", "https://other.example"
	if !MayGoTo(own, own, true) || MayGoTo(own, own, false) || MayGoTo(other, own, true) {
		t.Error("an origin is judged wrongly")
	}
}

// TestExceptionsOfTheGate goes through all acts and all clients: a need does not stop an act exactly if the client meets it, or an exception of the table
// stands for both. A send has no exception.
func TestExceptionsOfTheGate(t *testing.T) {
	t.Parallel()
	lacking := map[Need]func(*Has){
		Origin: func(h *Has) { h.OriginAllowed = false }, Authorize: func(h *Has) { h.Authorize = false },
		Several: func(h *Has) { h.Authorize, h.OthersAuthorize = false, "https://x:443" }, // Authorize, since others send with it
		Profile: func(h *Has) { h.Profile = false }, Region: func(h *Has) { h.Region = "us" }, Credential: func(h *Has) { h.Credential = "" },
	}
	excepted := func(need Need, h Has, a Asking) bool {
		switch need {
		case Origin:
			return a.Enqueues || a.Replaces && h.Producer || a.Early && h.TellsOrigin
		case Authorize:
			return a.Brought || a.Replaces
		case Several:
			return a.Brought || a.Replaces || a.Enqueues
		case Profile:
			return a.Early && h.TellsProfile
		}
		return false
	}
	rec := persist.Record{Profile: "own", ProfileVersion: "2", Region: "eu", Credential: "sha256:" + strings.Repeat("ab", 32)}
	for bits := range 1 << 7 {
		is := func(n int) bool { return bits>>n&1 == 1 }
		act := Asking{Enqueues: is(0), Replaces: is(1), Brought: is(2), Early: is(3)}
		for need, lacks := range lacking {
			has, of := everything(&rec), rec
			has.TellsOrigin, has.TellsProfile, has.Producer = is(4), is(5), is(6)
			if of.Omitted = []string{"Authorization"}; need == Several {
				of.Omitted = nil
			}
			if got := Gate(of.Needs(), of.Origin, has.For(act)); got.Need != Nothing {
				t.Fatalf("a client that has everything lacks %+v for %+v", got, act)
			}
			lacks(&has)
			if got, want := Gate(of.Needs(), of.Origin, has.For(act)).Need == Nothing, excepted(need, has, act); got != want {
				t.Errorf("the need %d, %+v, %+v: the act may be done: %t, want %t", need, act, has, got, want)
			}
		}
	}
	for _, state := range []persist.State{persist.StatePending, persist.StateHeld, persist.StateConfirmed} {
		if got := AskingOfPass(state); got != (Asking{Brought: state == persist.StateHeld}) {
			t.Errorf("a pass on an operation that is %v: %+v", state, got)
		}
	}
}

// TestMayTake: a client that may not act on an operation hears of that first; a damaged request, or another process, keeps any client from it.
func TestMayTake(t *testing.T) {
	t.Parallel()
	for lacks := Nothing; lacks <= Several; lacks++ {
		for _, leased := range []bool{false, true} {
			for _, intact := range []bool{false, true} {
				want := NoBar
				if leased {
					want = HasOwner
				}
				if !intact {
					want = IsDamaged
				}
				if lacks != Nothing {
					want = LacksNeed
				}
				if got := MayTake(lacks, intact, leased); got != want {
					t.Errorf("lacks %d, intact %t, leased %t: %d, want %d", lacks, intact, leased, got, want)
				}
			}
		}
	}
}
