package bolt_test

import (
	"context"
	"errors"
	"fmt"
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
	start   *powercut.Disk
	calls   []powercut.Call
	before  expected
	at      []expected // what must be there before each call, and at last after all
	after   *powercut.Disk
	showing string // what the journal shows at the end, if it can be opened
}

// expected is what a journal may hold.
type expected struct {
	any []string // one of these; a record is a word
	// If mixed is set, all words of must, and any of may.
	mixed     bool
	must, may []string
}

func (e expected) allows(state string) bool {
	if !e.mixed {
		return slices.Contains(e.any, state)
	}
	words := strings.Fields(state)
	for _, w := range e.must {
		if !slices.Contains(words, w) {
			return false
		}
	}
	for _, w := range words {
		if !slices.Contains(e.may, w) && !slices.Contains(e.must, w) {
			return false
		}
	}
	return true
}

// or is e, or this state.
func (e expected) or(state string) expected {
	if e.allows(state) {
		return e
	}
	if e.mixed {
		return expected{any: []string{state}}
	}
	return expected{any: append(slices.Clone(e.any), state)}
}

func (e expected) String() string {
	if e.mixed {
		return fmt.Sprintf("all of %q and any of %q", e.must, e.may)
	}
	return fmt.Sprintf("one of %q", e.any)
}

// empty is a journal before anything was acknowledged.
var empty = expected{any: []string{""}}

// journalName is the journal below a disk's root.
const journalName = "journal.db"

// live runs a script on what the kernel shows of a disk, with a fault, and records it.
func live(t testing.TB, dir string, start *powercut.Disk, before expected, script string, fault powercut.Fault) *life {
	t.Helper()
	if err := writeFiles(dir, start.Memory()); err != nil {
		t.Fatal(err)
	}
	calls := recorded(t, filepath.Join(dir, journalName), script, fault)
	l := &life{name: script, start: start, calls: calls, before: before}
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
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
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
	d, now, begun := l.start.Clone(), l.before, 0
	r := rand.New(rand.NewPCG(1, 1))
	// perhaps notes that a state may be there since the operation under way was begun.
	perhaps := func(state string) {
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
			now, begun = l.underWay(i, now, rest), i+1
		case "+":
			now.must = append(slices.Clone(now.must), rest)
		case "=":
			if !now.allows(rest) {
				t.Errorf("%s: it shows %q, want %v", l.name, rest, now)
			}
			now = expected{any: []string{rest}}
		case "~":
			perhaps(rest)
		case "?":
			if shown, err := shows(dir, d.Memory()); err == nil {
				perhaps(shown)
			}
		}
	}
	d.Exit()
	shown, err := shows(dir, d.Memory())
	if err != nil {
		t.Errorf("%s: at the end the kernel's files cannot be opened: %v", l.name, err)
	}
	if sign, _, ok := lastSaid(l.calls); ok && (sign == ">" || sign == "+") { // it was killed
		perhaps(shown)
	}
	l.at, l.after, l.showing = append(l.at, now), d, shown
}

// underWay is what may be there while an operation is under way that begins at call i.
func (l *life) underWay(i int, now expected, op string) expected {
	for j := i + 1; j < len(l.calls); j++ {
		sign, rest, ok := said(&l.calls[j])
		if !ok || sign == "+" {
			continue
		}
		if sign != "=" {
			break
		}
		if strings.HasPrefix(op, "many") && len(now.any) == 1 {
			return expected{mixed: true, must: strings.Fields(now.any[0]), may: strings.Fields(rest)}
		}
		return now.or(rest)
	}
	return now
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

// cuts takes n images of a life, at each call that changes the disk, and checks them.
func (l *life) cuts(t testing.TB, dir string, r *rand.Rand, n int) (images int) {
	t.Helper()
	var at []int
	d := l.start.Clone()
	for i := range l.calls {
		if d.Changes(&l.calls[i]) {
			at = append(at, i)
		}
		d.Do(&l.calls[i], r)
	}
	at = append(at, len(l.calls))
	seen := map[string]bool{}
	for tries := 0; images < n && tries < 20; tries++ {
		d, next := l.start.Clone(), 0
		for _, i := range at {
			for ; next < i; next++ {
				d.Do(&l.calls[next], r)
			}
			for range max(1, n/len(at)/4) {
				files := d.Cut(powercut.Random(r))
				if id := fmt.Sprint(files.Sum(), l.at[i]); seen[id] {
					continue
				} else {
					seen[id] = true
				}
				images++
				if err := check(dir, files, l.at[i], r); err != nil {
					l.failed(t, d, files, i, err)
				}
			}
		}
	}
	return images
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
	t.Fatalf("%s\na power cut before call %d, %s: %v\nit is in %s (%v)", l.name, i, call, err, kept, mkErr)
}

// check opens an image. It must hold what is expected, and go on working.
func check(dir string, files powercut.Files, want expected, r *rand.Rand) error {
	got, err := shows(dir, files)
	if err != nil {
		return err
	}
	if !want.allows(got) {
		return fmt.Errorf("it holds\n%q\nwant\n%v", got, want)
	}
	if r.IntN(8) != 0 {
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
