package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// TestFaultAtEachCall kills a process at each of its system calls, and lets each of them fail with EIO and ENOSPC, while
// it creates, opens, repairs, changes and closes a journal. Another process goes on from there, with what the kernel has
// kept or lost of pages that it could not write. The power is cut at each call of either.
func TestFaultAtEachCall(t *testing.T) {
	t.Parallel()
	root := memoryDir(t)
	for name, s := range situations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(root, strings.ReplaceAll(name, " ", "-"))
			mkdir(t, dir)
			start := powercut.NewDisk(dir, s.files)
			plain := live(t, dir, start.Clone(), s.before, s.script, powercut.Fault{})
			r := rand.New(rand.NewPCG(7, 35))
			faults, opened := 0, plain.cuts(t, dir, r, *images/40)
			for _, fault := range faultsOf(plain.calls) {
				l := live(t, dir, start.Clone(), s.before, s.script, fault)
				opened += l.cuts(t, dir, r, *images/1000)
				if faults++; t.Failed() {
					return
				}
				l.after.Evict(r, []float64{0, 0.5, 1}[faults%3])
				next := live(t, dir, l.after, l.at[len(l.at)-1], "open\nbegin next 30\nclose", powercut.Fault{})
				if sign, _, _ := lastSaid(next.calls); sign != "=" {
					t.Errorf("%s: the next process says %q", l.name, sign)
				}
				opened += next.cuts(t, dir, r, *images/1000)
			}
			t.Logf("%d faults, %d images", faults, opened)
			if faults < 20 {
				t.Errorf("only %d faults", faults)
			}
		})
	}
}

// situation is what a process finds, and what it does.
type situation struct {
	files  powercut.Files
	before expected
	script string
}

// situations are those in which each call matters.
func situations(t *testing.T) map[string]situation {
	t.Helper()
	path := newPath(t)
	j := open(t, path)
	for i := range 3 {
		begin(t, j, sized(fmt.Sprintf("order-%d", i), 100+i*9000))
	}
	older, err := compact(j)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, j, sized("newest", 20_000))
	newest, err := compact(j)
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, j)
	closed := readFile(t, path)
	unmarked, cut := unmark(closed), unmark(closed)
	pages := bolt.NewPages(cut)
	clear(cut[int(pages[len(pages)-1])*pageSize:][:pageSize])
	whole, either := expected{any: []string{newest}}, expected{any: []string{newest, older}}
	one := func(b []byte) powercut.Files { return powercut.Files{journalName: b} }
	return map[string]situation{
		"creation":                       {nil, empty, "open\nclose"},
		"open and close":                 {one(closed), whole, "open\nclose"},
		"changes":                        {one(closed), whole, "open\nbegin a 100\nbegin b 150000\nfinish newest 30\nupdate a\nclose"},
		"changes, two syncs":             {one(closed), whole, "open another\nbegin a 100\nfinish newest 30\nclose"},
		"recovery of a whole commit":     {one(unmarked), either, "open\nclose"},
		"recovery after one cut off":     {one(cut), expected{any: []string{older}}, "open\nclose"},
		"recovery that was cut off":      {one(halfRecovered(t, unmarked)), whole, "open\nclose"},
		"recovery of the commit alone":   {one(withoutOlder(unmarked)), whole, "open\nclose"},
		"recovery, and then the changes": {one(unmarked), either, "open\nbegin a 100\nbegin b 9000\nclose"},
	}
}

// unmark is a file whose newest commit has lost its mark.
func unmark(file []byte) []byte {
	b := append([]byte(nil), file...)
	clear(b[(1-bolt.NewestMeta(b))*pageSize+sectorSize:][:sectorSize])
	return b
}

// withoutOlder is a file whose meta page of the commit before is gone: the next commit was cut off.
func withoutOlder(file []byte) []byte {
	b := append([]byte(nil), file...)
	clear(b[(1-bolt.NewestMeta(b))*pageSize:][:pageSize])
	return b
}

// halfRecovered is a file whose recovery has written its copy, and then lost the newest meta page.
func halfRecovered(t *testing.T, unmarked []byte) []byte {
	t.Helper()
	dir := memoryDir(t)
	start := powercut.NewDisk(dir, powercut.Files{journalName: unmarked})
	if err := writeFiles(dir, start.Memory()); err != nil {
		t.Fatal(err)
	}
	calls := recorded(t, filepath.Join(dir, journalName), "open\nclose", powercut.Fault{})
	r := rand.New(rand.NewPCG(1, 1))
	for i := range calls {
		start.Do(&calls[i], r)
		if calls[i].Name == "pwrite64" && calls[i].At < 2*pageSize { // the meta page is under way
			break
		}
	}
	file := start.Memory()[journalName]
	if len(file) <= len(unmarked) {
		t.Fatal("there is no copy behind the file")
	}
	clear(file[bolt.NewestMeta(unmarked)*pageSize:][:pageSize])
	return file
}

// faultsOf are the faults of each call that a script has made.
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
		for _, what := range []string{"signal=KILL", "error=EIO", "error=ENOSPC"} {
			if began {
				faults = append(faults, powercut.Fault{Call: c.Name, Nth: nth[c.Name], What: what})
			}
		}
	}
	return faults
}
