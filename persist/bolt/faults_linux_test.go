package bolt_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// TestFaultAtEachCall kills a process at each of its system calls, and lets each of them fail with EIO and ENOSPC, while
// it creates, opens, repairs, changes and closes a journal. Another process goes on from there, with what the kernel has
// kept or lost of pages that it could not write. The power is cut at each call of either.
func TestFaultAtEachCall(t *testing.T) {
	t.Parallel()
	root := testrun.Dir(t)
	for _, s := range situations(t, newBases(t)) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(root, strings.ReplaceAll(s.name, " ", "-"))
			mkdir(t, dir)
			start := powercut.NewDisk(dir, s.files)
			plain := live(t, dir, start.Clone(), s.before, s.script, powercut.Fault{})
			m, r := newMatrix(), rand.New(rand.NewPCG(7, 35))
			plain.cuts(t, dir, r, *images/80, m)
			faults := faultsOf(plain.calls)
			for n, fault := range testrun.Some(faults, 8) {
				l := live(t, dir, start.Clone(), s.before, s.script, fault)
				l.cuts(t, dir, r, *images/1000, m)
				l.after.Evict(r, []float64{0, 0.5, 1}[n%3])
				next := live(t, dir, l.after, l.at[len(l.at)-1], "open\nbegin next 30\nbegin large 100000\nclose", powercut.Fault{})
				if sign, _, _ := lastSaid(next.calls); sign != "=" {
					t.Errorf("%s: %s: the next process says %q", violation, l.name, sign)
				}
				next.cuts(t, dir, r, *images/1000, m)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d faults, %d images", len(faults), m.images())
			if len(faults) < 9 {
				t.Errorf("only %d faults", len(faults))
			}
		})
	}
}

// faultsOf are the faults of each call that a script has made: one of them in the short matrix, and all three in the
// long one.
func faultsOf(calls []powercut.Call) []powercut.Fault {
	var faults []powercut.Fault
	nth, began := map[string]int{}, false
	thread := 0
	for i := range calls {
		if sign, _, ok := said(&calls[i]); ok && sign == ">" {
			thread = calls[i].Thread
		}
	}
	for i := range calls {
		c := &calls[i]
		if c.Thread != thread {
			continue
		}
		nth[c.Name]++
		if _, _, ok := said(c); ok {
			began = true
			continue
		}
		for n, what := range []string{"signal=KILL", "error=EIO", "error=ENOSPC"} {
			if began && (*images >= long || n == i%3) {
				faults = append(faults, powercut.Fault{Call: c.Name, Nth: nth[c.Name], What: what})
			}
		}
	}
	return faults
}
