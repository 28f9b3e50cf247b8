package explore

import (
	"flag"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// slices returns what is searched: in the gate a selection, or by command all of it within larger bounds.
func slices(long bool) []*Slice {
	names := map[ServerKind]string{KeepsAll: "keeps all", KeepsSuccess: "keeps successes", KeepsErrors: "keeps errors", KeepsNothing: "keeps nothing"}
	var all []*Slice
	add := func(name string, processes int, b Bounds, change func(*Slice), gate ...ServerKind) {
		if long {
			gate = []ServerKind{KeepsAll, KeepsSuccess, KeepsErrors, KeepsNothing}
		}
		for _, kind := range gate {
			s := &Slice{Name: name + ", " + names[kind], Processes: processes, Server: kind, Profile: profileOf(kind), Bounds: b}
			change(s)
			all = append(all, s)
		}
	}
	one, two := Bounds{Calls: 3, Sends: 3, Crashes: 1, Fails: 1}, Bounds{Calls: 2, Sends: 1, Crashes: 1}
	if long {
		one, two = Bounds{Calls: 4, Sends: 4, Crashes: 2, Fails: 2}, Bounds{Calls: 3, Sends: 2, Crashes: 1, Fails: 1}
	}
	as := func(*Slice) {}
	add("one process", 1, one, as, KeepsSuccess, KeepsErrors, KeepsNothing)
	add("one process, time and a person", 1, Bounds{Calls: 2, Sends: 2, Crashes: 1, Acts: 1, Times: 2}, as, KeepsErrors, KeepsNothing)
	add("a generated key", 1, one, func(s *Slice) { s.Generated = true }, KeepsSuccess)
	add("asked first", 1, one, func(s *Slice) { s.AskFirst = true }, KeepsAll)
	add("two processes", 2, two, as, KeepsSuccess, KeepsNothing)
	add("answers first", 1, one, func(s *Slice) { s.Late = true }, KeepsSuccess)
	add("two processes, answers first", 2, two, func(s *Slice) { s.Late = true }, KeepsSuccess)
	return all
}

// profileOf returns the profile of an API of a kind.
func profileOf(kind ServerKind) func() *profile.Profile {
	p := profile.Draft07()
	switch kind {
	case KeepsSuccess:
		p.Stored.Client = nil
	case KeepsNothing:
		p = profile.Draft07()
		p.Stored.Client = nil
	}
	return func() *profile.Profile { return p }
}

// long makes TestNoHistoryBreaks search within the bounds of the command.
var long = flag.Bool("long", false, "search within larger bounds")

// TestNoHistoryBreaks: no history within the bounds breaks an invariant.
func TestNoHistoryBreaks(t *testing.T) {
	t.Parallel()
	for _, s := range slices(*long) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			r, err := s.Search(50_000_000)
			if err != nil {
				t.Error(err)
			}
			if r.Broken != "" {
				t.Error("\n" + r.Broken)
			}
			t.Logf("%d states, %d moves deep, in %v", r.States, r.Depth, time.Since(start).Round(time.Millisecond))
		})
	}
}
