package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// trace is what a process finds, and what it does. Its system calls are recorded.
type trace struct {
	name   string
	files  powercut.Files
	before expected
	script string
	fault  powercut.Fault
	// then is a process that goes on without a power cut. If it is nil, chance chooses the second process, too.
	then *secondProcess
}

// secondProcess is what it does, and the fault that it has.
type secondProcess struct {
	script string
	fault  powercut.Fault
}

// bases are files with which a process begins.
type bases struct {
	closed   []byte // as Close leaves it
	unmarked []byte // the newest commit is whole, and has lost its mark
	cut      []byte // a page of the newest commit is missing
	rootCut  []byte // the root page of the second commit is missing, which has one record
	second   base   // the second commit has lost its mark
	large    base   // the newest commit has 150 kB, and has lost its mark

	older, newest string // what the commits hold
}

// base is a file, and what it may hold.
type base struct {
	file  []byte
	holds expected
}

// newBases makes them.
func newBases(t *testing.T) *bases {
	t.Helper()
	b := &bases{second: unmarkedAfter(t, 0, 300), large: unmarkedAfter(t, 2, 150_000)}
	path := newPath(t)
	j := open(t, path)
	for i := range 3 {
		begin(t, j, sized(fmt.Sprintf("order-%d", i), 100+i*9000))
	}
	b.older = mustCompact(t, j)
	begin(t, j, sized("newest", 20_000))
	b.newest = mustCompact(t, j)
	closeIt(t, j)
	b.closed = readFile(t, path)
	b.unmarked, b.cut = unmark(b.closed), unmark(b.closed)
	clearLast(b.cut)
	b.rootCut = slices.Clone(b.second.file)
	clearLast(b.rootCut)
	return b
}

// clearLast clears the last page of a file's newest commit.
func clearLast(file []byte) {
	pages := bolt.NewPages(file)
	clear(file[int(pages[len(pages)-1])*pageSize:][:pageSize])
}

// unmarkedAfter is a file with some records, and then one of this size, whose commit has lost its mark.
func unmarkedAfter(t *testing.T, records, size int) base {
	t.Helper()
	path := newPath(t)
	j := open(t, path)
	for i := range records {
		begin(t, j, sized(fmt.Sprintf("order-%d", i), 100))
	}
	holds := expected{any: []string{mustCompact(t, j)}}
	begin(t, j, sized("newest", size))
	holds = holds.or(mustCompact(t, j))
	closeIt(t, j)
	return base{unmark(readFile(t, path)), holds}
}

func mustCompact(t *testing.T, j *bolt.Journal) string {
	t.Helper()
	state, err := compact(j)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// situations are those in which each call matters. TestFaultAtEachCall lets each fail. "creation" alone does not find a
// directory that is not synced: it acknowledges nothing, and a new empty journal is as good as the lost one. The ones that begin a
// record do.
func situations(t *testing.T, b *bases) []trace {
	t.Helper()
	whole, either := expected{any: []string{b.newest}}, expected{any: []string{b.newest, b.older}}
	one := func(b []byte) powercut.Files { return powercut.Files{journalName: b} }
	return []trace{
		{name: "creation", before: empty, script: "open\nclose"},
		{name: "creation where a link leads", files: powercut.Files{"b/": nil}, before: empty, script: "symlink b/real.db\nopen\nbegin a 30\nclose"},
		{name: "open and close", files: one(b.closed), before: whole, script: "open\nclose"},
		{name: "changes", files: one(b.closed), before: whole, script: "open\nbegin a 100\nbegin b 150000\nfinish newest 30\nupdate a\nclose"},
		{name: "changes, two syncs", files: one(b.closed), before: whole, script: "open another\nbegin a 100\nfinish newest 30\nclose"},
		{name: "recovery of a whole commit", files: one(b.unmarked), before: either, script: "open\nclose"},
		{name: "recovery after one cut off", files: one(b.cut), before: expected{any: []string{b.older}}, script: "open\nclose"},
		{name: "recovery that was cut off", files: one(halfRecovered(t, b.unmarked)), before: whole, script: "open\nclose"},
		{name: "recovery of the commit alone", files: one(withoutOlder(b.unmarked)), before: whole, script: "open\nclose"},
		{name: "recovery, and then the changes", files: one(b.unmarked), before: either, script: "open\nbegin a 100\nbegin b 9000\nclose"},
	}
}

// traces are all that have a name of their own.
func traces(t *testing.T) []trace {
	t.Helper()
	b := newBases(t)
	all := append(situations(t, b), namesTraces(b)...)
	all = append(all, workTraces()...)
	all = append(all, failedTraces(b)...)
	all = append(all, comeBackTraces(t, b)...)
	return append(all, recoveryTraces(b)...)
}

// namesTraces are about the names of a file.
func namesTraces(b *bases) []trace {
	moved := expected{any: []string{"", b.newest}} // until the move is durable, Open makes a file
	dir := powercut.Files{"b/": nil, "b/real.db": b.closed}
	return []trace{
		{name: "creation that dies between its two names", before: empty, script: "open\nclose", fault: powercut.Fault{Call: "unlinkat", Nth: 1, What: "signal=KILL"}},
		{name: "creation that dies without a synced name", before: empty, script: "open\nclose", fault: powercut.Fault{Call: "fsync", Nth: 2, What: "signal=KILL"}},
		{name: "creation whose name cannot be synced", before: empty, script: "open\nopen\nbegin a 30\nclose", fault: powercut.Fault{Call: "fsync", Nth: 2, What: "error=EIO"}},
		{name: "moved", files: powercut.Files{"other.db": b.closed}, before: moved, script: "rename other.db\nopen\nbegin a 30\nclose"},
		{name: "moved from another directory", files: dir, before: moved, script: "rename b/real.db\nopen\nbegin a 30\nclose"},
		{name: "a link that is new", files: dir, before: moved, script: "symlink b/real.db\nopen\nbegin a 30\nclose"},
		{name: "a link that is there", files: powercut.Files{"b/": nil, "b/real.db": b.closed, journalName: powercut.Link("b/real.db")},
			before: expected{any: []string{b.newest}}, script: "open\nbegin a 30\nforget a\nclose"},
	}
}

// workTraces create a journal and work with it.
func workTraces() []trace {
	var all []trace
	for _, work := range [][2]string{
		{"a few records", "begin a 1\nbegin b 100\nbegin c 3000"},
		{"thirty at the same time", "many m 30\nmany n 30"},
		{"growth", "begin a 100\nbegin b 60000\nbegin c 90000"},
		{"growth by one", "begin a 100\nbegin b 400000"},
		{"growth by many", "many m 90\nmany n 60"},
		{"bodies over 16 KB", "begin a 17000\nbegin b 20000\nbegin c 33000\nforget b\nbegin d 50000"},
		{"answers over 16 KB", "begin a 10\nbegin b 20000\nfinish a 30000\nfinish b 40000"},
		{"updates of one", "begin a 10\nbegin b 10" + strings.Repeat("\nupdate a", 10)},
		{"updates of two", "begin a 10\nbegin b 20000" + strings.Repeat("\nupdate a\nupdate b", 6)},
		{"updates of many", "many m 16" + updates(16) + updates(8)},
		{"updates in a page of their own", "begin a 10\nbegin b 10\nfinish a 2000" + strings.Repeat("\nupdate b", 8)},
		{"Finish, and a commit takes it", "begin a 10\nbegin b 10\nlate a 10\nupdate b\nlate b 20000\nbegin c 10"},
		{"Finish, and Close", "begin a 10\nbegin b 10\nupdate a\nleave a 10\nleave b 20000"},
		{"MarkReported", "begin aa 10\nbegin bb 10\nfinish aa 10\nfinish bb 20000\nmark aa\nmark bb"},
		{"Forget", "begin a 10\nbegin b 10\nbegin c 10\nforget b\nforget a\nbegin b 20\nforget c"},
		{"Forget of large bodies", "begin a 40000\nbegin b 20000\nforget a\nbegin c 30000\nforget b\nforget c"},
		{"Sweep", "begin a 10\nbegin b 10\nfinish a 10\nfinish b 10\nsweep 10 1\nbegin c 10\nsweep 10 0\nbegin d 10"},
		{"Sweep of large bodies", "begin a 40000\nbegin b 10\nfinish a 20000\nfinish b 40000\nsweep 10 1\nbegin c 30000\nsweep 10 0\nbegin d 20000"},
		{"Sweep of many", "many m 20\nfinish m-1 10\nfinish m-2 10\nfinish m-3 10\nlate m-4 10\nsweep 2 0\nsweep 10 0\nbegin c 10"},
		{"Sweep of texts", "begin a 10\nbegin b 10\nbegin c 10\nfinish a 10\nfinish b 10\ntext 1\ntext 10\ntext 10\nbegin a 10\nfinish c 10\ntext 10\ntext 10\nbegin d 10\nsweep 2 0"},
		{"Sweep of texts of large bodies", "begin a 20000\nbegin b 40000\nfinish a 30000\nfinish b 10\ntext 10\ntext 1\nbegin d 20000\ntext 10\nsweep 10 0"},
		{"Sweep of many texts", "many m 30\nfinish m-1 10\nfinish m-2 10\nfinish m-3 10\nfinish m-4 10\ntext 10\ntext 3\ntext 10\nclose\nopen\nbegin m-2 10"},
		{"opened and closed again and again", "begin a 10\nclose\nopen\nbegin b 10\nclose\nopen\nclose\nopen\nupdate a"},
		{"two syncs", "another\nbegin a 100\nbegin b 20000\nfinish a 10\nupdate b\nforget b"},
		{"two syncs, growth", "another\nbegin a 100\nbegin b 200000\nfinish a 30000"},
		{"two syncs, Sweep", "another\nbegin a 10\nbegin b 20000\nfinish a 10\nfinish b 30000\nsweep 10 1\nsweep 10 0"},
		{"two syncs, thirty at the same time", "another\nmany m 30\nupdate m-1\nlate m-3 10"},
	} {
		name, script, version := work[0], work[1], "open"
		if rest, two := strings.CutPrefix(script, "another\n"); two {
			version, script = "open another", rest
		}
		all = append(all, trace{name: name, before: empty, script: version + "\n" + strings.ReplaceAll(script, "\nopen", "\n"+version) + "\nclose"})
	}
	return all
}

// updates are of the first records of "many m N". So many are no longer kept in the root page.
func updates(n int) (lines string) {
	for i := range n {
		lines += fmt.Sprintf("\nupdate m-%d", i)
	}
	return lines
}

// failedTraces are of commits that fail.
func failedTraces(b *bases) []trace {
	const script = "open\nbegin a 100\nbegin b 150000\nbegin b 30000\nfinish newest 30\nupdate a\nforget b\nclose\nopen\nbegin c 100\nbegin d 60000\nclose"
	var all []trace
	for _, f := range []powercut.Fault{
		{Call: "fdatasync", Nth: 1, What: "error=EIO"}, {Call: "fdatasync", Nth: 2, What: "error=EIO"}, {Call: "fdatasync", Nth: 4, What: "error=EIO"},
		{Call: "fdatasync", Nth: 1, What: "error=ENOSPC"}, {Call: "fdatasync", Nth: 3, What: "error=ENOSPC"}, {Call: "fdatasync", Nth: 6, What: "error=EDQUOT"},
		{Call: "pwrite64", Nth: 1, What: "error=ENOSPC"}, {Call: "pwrite64", Nth: 2, What: "error=EIO"}, {Call: "pwrite64", Nth: 5, What: "error=ENOSPC"},
		{Call: "pwrite64", Nth: 6, What: "error=EIO"}, {Call: "pwrite64", Nth: 9, What: "error=ENOSPC"},
		{Call: "ftruncate", Nth: 1, What: "error=ENOSPC"}, {Call: "ftruncate", Nth: 1, What: "error=EIO"},
		{Call: "fsync", Nth: 2, What: "error=EIO"}, {Call: "fsync", Nth: 2, What: "error=ENOSPC"},
	} {
		all = append(all, trace{name: fmt.Sprintf("commits, %s of %s %d", f.What, f.Call, f.Nth), files: powercut.Files{journalName: b.closed}, before: expected{any: []string{b.newest}}, script: script, fault: f})
	}
	// The mark of the commit before is under way when a first sync of two fails.
	const two = "open another\nbegin a 100\nbegin b 100\nclose"
	return append(all, trace{name: "two syncs, error=EIO of the first", before: empty, script: two, fault: powercut.Fault{Call: "fdatasync", Nth: 3, What: "error=EIO"}})
}

// comeBackTraces are of commits of which all has come to the disk but the meta page. The next one has other records of the
// same size, so that it uses the same pages.
func comeBackTraces(t *testing.T, b *bases) []trace {
	t.Helper()
	const script = "open\nbegin a 100\nbegin b 100\nbegin c 100\nbegin d 100\nbegin e 100\nclose"
	files, before := powercut.Files{journalName: b.closed}, expected{any: []string{b.newest}}
	dir := filepath.Join(testrun.Dir(t), "disk")
	mkdir(t, dir)
	l := live(t, dir, powercut.NewDisk(dir, files), before, script, powercut.Fault{})
	var metas []int // which writes of bbolt's are of meta pages
	writes := 0
	for i := range l.calls {
		if c := &l.calls[i]; c.Name == "pwrite64" {
			if writes++; c.At < 2*pageSize && len(c.Data) == pageSize {
				metas = append(metas, writes)
			}
		}
	}
	l = live(t, dir, powercut.NewDisk(dir, files), before, "open\nbegin a 100\nclose", powercut.Fault{})
	file := append(b.closed[:2*pageSize:2*pageSize], l.after.Memory()[journalName][2*pageSize:]...)
	all := []trace{{name: "a commit after one whose meta page is missing", files: powercut.Files{journalName: file}, before: before, script: "open\nbegin b 100\nbegin c 100\nclose"}}
	for n, meta := range metas[:2] {
		for _, f := range []struct {
			name  string
			fault powercut.Fault
		}{
			{"one whose meta page was not written", powercut.Fault{Call: "pwrite64", Nth: meta, What: "error=ENOSPC"}},
			{"three whose meta pages were not written", powercut.Fault{Call: "pwrite64", Nth: meta, Step: metas[2] - metas[1] - 1, Times: 3, What: "error=ENOSPC"}},
			{"a process that died before its meta page", powercut.Fault{Call: "pwrite64", Nth: meta, What: "signal=KILL"}},
		} {
			all = append(all, trace{name: fmt.Sprintf("a commit after %s: %d", f.name, n+1), files: files, before: before, script: script, fault: f.fault})
		}
	}
	return all
}

// recoveryTraces are of recoveries, of those that fail, and of the work after them.
func recoveryTraces(b *bases) []trace {
	const script = "open\nopen\nbegin a 100\nupdate a\nbegin b 60000\nclose"
	either := expected{any: []string{b.newest, b.older}}
	all := []trace{
		{name: "recovery of the first record's commit", files: powercut.Files{journalName: b.second.file}, before: b.second.holds, script: script},
		{name: "recovery of a large commit", files: powercut.Files{journalName: b.large.file}, before: b.large.holds, script: script},
		{name: "recovery, two syncs", files: powercut.Files{journalName: b.unmarked}, before: either, script: strings.ReplaceAll(script, "open", "open another")},
	}
	for _, f := range []powercut.Fault{
		{Call: "fsync", Nth: 1, What: "error=EIO"}, {Call: "fsync", Nth: 2, What: "error=EIO"}, {Call: "fsync", Nth: 3, What: "error=ENOSPC"},
		{Call: "pwrite64", Nth: 2, What: "error=ENOSPC"}, {Call: "pwrite64", Nth: 4, What: "signal=KILL"}, {Call: "fsync", Nth: 3, What: "signal=KILL"},
	} {
		all = append(all, trace{name: fmt.Sprintf("recovery, %s of %s %d", f.What, f.Call, f.Nth), files: powercut.Files{journalName: b.unmarked}, before: either, script: script, fault: f})
	}
	// The meta page of a commit that was cut off is wiped, and the disk does not take that. The next commit has its number and
	// its pages, and fails at its meta page. The next Open does not show it: the older meta page, which the kernel does not
	// show either, must not lead to it after a power cut.
	for _, nth := range []int{2, 4} { // 4 is the meta page; it would be 2 if Open trusted the mark that is not on the disk
		all = append(all, trace{name: fmt.Sprintf("recovery whose wipe fails, then error=ENOSPC of pwrite64 %d", nth),
			files: powercut.Files{journalName: b.rootCut}, before: empty, script: "open\nclose", fault: powercut.Fault{Call: "fsync", Nth: 1, What: "error=EIO"},
			then: &secondProcess{"open\nbegin a 300\nclose\nopen\nbegin b 300\nclose", powercut.Fault{Call: "pwrite64", Nth: nth, What: "error=ENOSPC"}}})
	}
	return all
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
	dir := testrun.Dir(t)
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
