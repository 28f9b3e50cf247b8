package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// life is one process that ran a script, and the disk before it.
type life struct {
	name    string
	fault   powercut.Fault
	start   *powercut.Disk
	calls   []powercut.Call
	before  expected
	at      []expected // what must be there before each call, and at last after all
	after   *powercut.Disk
	showing string // what the journal shows at the end, if it can be opened
}

// violation begins what is said of a process that broke a promise, or of an image.
const violation = "VIOLATION"

// journalName is the journal below a disk's root.
const journalName = "journal.db"

// live runs a script on what the kernel shows of a disk, with a fault, and records it.
func live(t testing.TB, dir string, start *powercut.Disk, before expected, script string, fault powercut.Fault) *life {
	t.Helper()
	if err := writeFiles(dir, start.Memory()); err != nil {
		t.Fatal(err)
	}
	calls := recorded(t, filepath.Join(dir, journalName), script, fault)
	l := &life{name: script, fault: fault, start: start, calls: calls, before: before}
	if fault != (powercut.Fault{}) {
		l.name = fmt.Sprintf("%s of %s %d: %s", fault.What, fault.Call, fault.Nth, script)
	}
	l.expect(t, dir)
	return l
}

// recorded records the system calls of a process that runs a script. It needs strace, and fails without it if
// ONCEHTTP_REQUIRE_SERVICES is 1.
func recorded(t testing.TB, path, script string, fault powercut.Fault) []powercut.Call {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
			t.Fatal("there is no strace, and ONCEHTTP_REQUIRE_SERVICES is 1")
		}
		t.Skip("there is no strace")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), "ONCEHTTP_BOLT_ROLE=script", "ONCEHTTP_BOLT_SCRIPT="+script)
	calls, err := powercut.Record(cmd, fault)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// writeFiles makes files all that there is in a directory.
func writeFiles(dir string, files powercut.Files) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) { // a directory before its files
		path := filepath.Join(dir, name)
		target, isLink := powercut.Target(files[name])
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.Mkdir(path, 0o700)
		case isLink:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, files[name], 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// said are the lines that a call writes to standard output, with their signs.
func said(c *powercut.Call) (sign, rest string, ok bool) {
	if c.Name != "write" || c.FD != 1 {
		return "", "", false
	}
	return strings.Cut(strings.TrimSuffix(string(c.Data), "\n"), " ")
}

// expect finds out what must be there at each call, and the disk at the end.
func (l *life) expect(t testing.TB, dir string) {
	t.Helper()
	d, now, begun, op := l.start.Clone(), l.before, 0, ""
	lost := false // a sync had failed when the journal was opened
	r := rand.New(rand.NewPCG(1, 1))
	// perhaps notes that a state may be there since the operation under way was begun.
	perhaps := func(state string) {
		if now.allows(state) {
			return
		}
		if !now.leadsTo(op, state) {
			t.Errorf("%s: %s: after %q it shows %q, want %v", violation, l.name, op, state, now)
		}
		now = now.or(state)
		for i := begun; i < len(l.at); i++ {
			l.at[i] = l.at[i].or(state)
		}
	}
	for i := range l.calls {
		l.at = append(l.at, now)
		c := &l.calls[i]
		d.Do(c, r)
		sign, rest, ok := said(c)
		if !ok {
			continue
		}
		switch sign {
		case ">":
			if op, begun = rest, i+1; strings.HasPrefix(op, "open") {
				lost = d.SyncFailed()
			}
			done, known := l.doneAt(i)
			now = now.begins(op, done, !known)
		case ".":
			if done, known := l.doneAt(i); known && now.allows(done) {
				now = expected{any: []string{done}, closed: l.marks(op, lost)}
			}
		case "+":
			now.must = append(slices.Clone(now.must), rest)
		case "=":
			if !now.allows(rest) || !achieved(op, rest) {
				t.Errorf("%s: %s: %q shows %q, want %v", violation, l.name, op, rest, now)
			}
			now = expected{any: []string{rest}, closed: l.marks(op, lost)}
		case "~":
			if perhaps(rest); now.mixed { // each that was not acknowledged was not written
				now = expected{any: []string{rest}}
			}
		case "?":
			if shown, err := shows(dir, d.Memory()); err == nil {
				perhaps(shown)
			}
			for j := begun; j < len(l.at); j++ { // even if the kernel's files do not show it
				l.at[j] = l.at[j].uncertain(op)
			}
			now = now.uncertain(op)
		}
	}
	d.Exit()
	shown, err := shows(dir, d.Memory())
	if err != nil {
		t.Errorf("%s: %s: at the end the kernel's files cannot be opened: %v", violation, l.name, err)
	}
	if sign, _, ok := lastSaid(l.calls); ok && err == nil && strings.Contains(">+.", sign) { // it was killed
		perhaps(shown)
	}
	l.at, l.after, l.showing = append(l.at, now), d, shown
}

// marks reports whether an operation that succeeds leaves the mark on the disk. The write of a mark may fail, and a sync before
// this Open may have lost a mark that the kernel still shows. Either costs the next Open some time.
func (l *life) marks(op string, lost bool) bool {
	return op == "close" && l.fault.Call != "pwrite64" && !lost
}

// doneAt is what the journal holds after the operation that is under way at call i. known is false if the operation failed, or
// the process did not come to its end.
func (l *life) doneAt(i int) (done string, known bool) {
	for j := i + 1; j < len(l.calls); j++ {
		if sign, rest, ok := said(&l.calls[j]); ok && sign != "+" && sign != "." {
			return rest, sign == "="
		}
	}
	return "", false
}

// lastSaid is the last line that a process has written.
func lastSaid(calls []powercut.Call) (sign, rest string, ok bool) {
	for i := range slices.Backward(calls) {
		if sign, rest, ok = said(&calls[i]); ok {
			return sign, rest, true
		}
	}
	return "", "", false
}

// imageDir is where images are opened, beside the directory of a process.
func imageDir(dir string) string { return dir + ".image" }

// shows opens a journal on copies of files and says what it holds.
func shows(dir string, files powercut.Files) (string, error) {
	dir = imageDir(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := writeFiles(dir, files); err != nil {
		return "", err
	}
	j, err := tryOpen(filepath.Join(dir, journalName), bolt.Options{LockWait: -1})
	if err != nil {
		return "", err
	}
	state, err := compact(j)
	return state, errors.Join(err, j.Close())
}

// cuts takes n images of a life, at each call that changes the disk, and checks them. It enters them in m.
func (l *life) cuts(t testing.TB, dir string, r *rand.Rand, n int, m *matrix) {
	t.Helper()
	at := l.changing(r)
	weight := func(i int) int {
		if i < len(l.calls) && strings.HasSuffix(l.calls[i].Name, "sync") {
			return 3 // then most is under way
		}
		return 1
	}
	all := 0
	for _, i := range at {
		all += weight(i)
	}
	type image struct {
		sum  uint64
		want string
	}
	seen := map[image]bool{}
	for tries := 0; len(seen) < n && tries < 20; tries++ {
		d, next := l.start.Clone(), 0
		for _, i := range at {
			for ; next < i; next++ {
				d.Do(&l.calls[next], r)
			}
			for range (n*weight(i)/min(4, n/50+1) + r.IntN(all)) / all {
				files, further := d.Cut(powercut.Random(r)), r.IntN(8) == 0
				it := image{files.Sum(), l.at[i].String()}
				if seen[it] {
					continue
				}
				seen[it] = true
				m.enter(it.sum)
				if err := check(dir, files, l.at[i], further); err != nil {
					l.failed(t, d, files, i, err)
				}
			}
		}
	}
}

// changing are the calls that change the disk, and the end.
func (l *life) changing(r *rand.Rand) (at []int) {
	d := l.start.Clone()
	for i := range l.calls {
		if d.Changes(&l.calls[i]) {
			at = append(at, i)
		}
		d.Do(&l.calls[i], r)
	}
	return append(at, len(l.calls))
}

// failed says which image is wrong, and keeps it.
func (l *life) failed(t testing.TB, d *powercut.Disk, files powercut.Files, i int, err error) {
	t.Helper()
	kept, mkErr := os.MkdirTemp("", "powercut")
	if mkErr == nil {
		mkErr = writeFiles(kept, files)
	}
	call := "the end"
	if i < len(l.calls) {
		call = fmt.Sprintf("%s at %d", l.calls[i].Name, l.calls[i].At)
	}
	t.Fatalf("%s: %s\na power cut before call %d, %s: %v\nit is in %s (%v)", violation, l.name, i, call, err, kept, mkErr)
}

// check opens an image. It must hold what is expected, and, where that is asked for, go on working.
func check(dir string, files powercut.Files, want expected, further bool) error {
	got, err := shows(dir, files)
	if err != nil {
		return err
	}
	if !want.allows(got) {
		return fmt.Errorf("it holds\n%q\nwant\n%v", got, want)
	}
	if name, found := unmarked(files); want.closed && found {
		return fmt.Errorf("it was closed, and the mark of %s is not on the disk", name)
	}
	if !further {
		return nil
	}
	return goesOn(filepath.Join(imageDir(dir), journalName), got)
}

// goesOn works with a journal that was opened before, and opens it again.
func goesOn(path, got string) error {
	j, err := tryOpen(path, bolt.Options{LockWait: -1})
	if err != nil {
		return err
	}
	again, err := compact(j)
	_, _, beginErr := j.Begin(context.Background(), sized("afterwards", 20_000))
	after, err2 := compact(j)
	if err := errors.Join(err, err2, beginErr, j.Close()); err != nil {
		return err
	}
	if j, err = tryOpen(path, bolt.Options{LockWait: -1}); err != nil {
		return err
	}
	last, err := compact(j)
	if err == nil && (again != got || last != after || len(strings.Fields(after)) != len(strings.Fields(got))+1) {
		err = fmt.Errorf("opened again and again it holds\n%q\n%q\n%q\n%q", got, again, after, last)
	}
	return errors.Join(err, j.Close())
}
