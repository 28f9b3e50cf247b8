package bolt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

var measured = flag.Int("measured", 0, "how many images TestBrokenAssumptions makes for each assumption; TestCopies runs, too")

// assumption is one that doc.go names, and how it is broken. It is measured what that costs.
type assumption struct {
	name string
	// A cut has pages and sectors of these sizes; 0: as the model has them.
	page, sector int
	order        bool // all arrives up to a moment
	lies         int  // one sync of so many does nothing and says that it succeeded; 0: none
	atRest       bool // a page that was not written to holds anything
}

// TestBrokenAssumptions measures what it costs where a disk does not keep to what doc.go assumes: how many images are
// refused, and how many show an older state than what was acknowledged. None shows a state that never was.
func TestBrokenAssumptions(t *testing.T) {
	if *measured == 0 {
		t.Skip("it is run by command: -args -measured 6000")
	}
	dir := memoryDir(t)
	path := filepath.Join(dir, journalName)
	j := open(t, path)
	for i := range 20 {
		begin(t, j, sized(fmt.Sprint("before-", i), 100+i*1000))
	}
	closeIt(t, j)
	image := readFile(t, path)
	calls := runScriptOn(t, path, image, `open
begin a 100
begin b 20000
update a
begin c 90
finish b 30
forget a
begin d 300
begin e 150000
finish d 20000
update c
begin f 60000
forget f
begin g 400
mark d
begin h 4000
close`, powercut.Fault{})
	opened := filepath.Join(memoryDir(t), journalName)
	for _, a := range []assumption{
		{name: "none is broken"},
		{name: "sectors of 64 bytes", sector: 64},
		{name: "sectors of 1 byte", sector: 1},
		{name: "junk over 8 KB", page: 8 << 10},
		{name: "junk over 16 KB", page: 16 << 10},
		{name: "junk over 64 KB", page: 64 << 10},
		{name: "one sync of four does nothing", lies: 4},
		{name: "no sync does anything", lies: 1},
		{name: "no sync does anything, the order is kept", lies: 1, order: true},
		{name: "junk over a page at rest", atRest: true},
	} {
		a.measure(t, powercut.NewDisk(dir, powercut.Files{journalName: image}), opened, calls)
	}
}

// measure cuts the calls off at any place, opens each image at path, and says how many are fine, refused, and older.
func (a *assumption) measure(t *testing.T, start *powercut.Disk, path string, calls []powercut.Call) {
	r := rand.New(rand.NewPCG(7, 35))
	states := statesOf(calls)
	images, refused, older := 0, 0, 0
	for images < *measured {
		d := start.Clone()
		for i := range calls {
			if d.Changes(&calls[i]) {
				images++
				file := d.Cut(powercut.Broken(r, a.page, a.sector, a.order))[journalName]
				if a.atRest {
					at := r.IntN(len(file)/pageSize) * pageSize
					file = slices.Clone(file)
					for k := range pageSize {
						file[at+k] = byte(r.Uint32())
					}
				}
				switch state, err := shownIn(path, file); {
				case err != nil:
					refused++
				case state == states[i][0] || state == states[i][1]:
				case !a.was(state, states[:i]):
					t.Errorf("%s: call %d: a state that never was: %s", a.name, i, state)
				default:
					older++
				}
			}
			if sync := calls[i].Name == "fdatasync"; !sync || a.lies == 0 || r.IntN(a.lies) > 0 {
				d.Do(&calls[i], r)
			}
		}
	}
	part := func(n int) float64 { return 100 * float64(n) / float64(images) }
	t.Logf("%-42s %6d images, refused %5.2f %%, older %5.2f %%", a.name, images, part(refused), part(older))
	if a.name == "none is broken" && refused+older > 0 {
		t.Error("an assumption is missing")
	}
}

// was reports whether a journal had a state before. That of before the script began is one of the first records only.
func (*assumption) was(state string, states [][2]string) bool {
	for _, s := range states {
		if s[0] == state {
			return true
		}
	}
	return !slices.ContainsFunc(strings.Fields(state), func(line string) bool { return !strings.HasPrefix(line, "before-") })
}

// statesOf are the state that is acknowledged at each call, and the one that is under way.
func statesOf(calls []powercut.Call) [][2]string {
	states, next := make([][2]string, len(calls)), ""
	for i := len(calls) - 1; i >= 0; i-- {
		if sign, state, ok := saidLine(&calls[i]); ok && sign == "=" {
			next = state
		}
		states[i][1] = next
	}
	now := states[0][1] // that of the first open
	for i := range calls {
		states[i][0] = now
		if sign, state, ok := saidLine(&calls[i]); ok && sign == "=" {
			now = state
		}
	}
	return states
}

// shownIn is what a journal shows that is opened in a file.
func shownIn(path string, file []byte) (string, error) {
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return "", err
	}
	j, err := tryOpen(path, bolt.Options{LockWait: -1})
	if err != nil {
		return "", err
	}
	state, err := compact(j)
	return state, errors.Join(err, j.Close())
}

// TestCopies measures what a copy of the file is worth that is made while the journal is written to.
func TestCopies(t *testing.T) {
	if *measured == 0 {
		t.Skip("it is run by command: -args -measured 1")
	}
	for _, c := range []struct {
		records, writers int
		pause            time.Duration
	}{{1000, 1, 20 * time.Millisecond}, {1000, 1, 0}, {20_000, 1, 20 * time.Millisecond}, {20_000, 8, 0}} {
		path := newPath(t)
		j := openWith(t, path, bolt.Options{})
		var wg sync.WaitGroup
		for i := range c.records {
			wg.Go(func() { _, _, _ = j.Begin(context.Background(), sized(fmt.Sprint("before-", i), 500)) })
		}
		wg.Wait()
		var begun atomic.Int64 // of those that writer 0 has begun
		stop := make(chan bool)
		for w := range c.writers {
			wg.Go(func() { writeUntil(j, w, c.pause, &begun, stop) })
		}
		refused, older := 0, 0
		for range 150 {
			copied := path + ".copy"
			if out, err := exec.Command("cp", path, copied).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			n := begun.Load()
			switch newest, err := newestOf(copied); {
			case err != nil:
				refused++
			case newest < n:
				older++
			}
			time.Sleep(c.pause / 2)
		}
		close(stop)
		wg.Wait()
		t.Logf("%d records and %d writers, pause %v: of 150 copies %d are refused, and %d older", c.records, c.writers, c.pause, refused, older)
		closeIt(t, j)
	}
}

// writeUntil begins records, and finishes every other, until stop is closed.
func writeUntil(j *bolt.Journal, w int, pause time.Duration, begun *atomic.Int64, stop chan bool) {
	for i := int64(1); ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		r, _, err := j.Begin(context.Background(), sized(fmt.Sprint("writer-", w, "-", i), 500))
		if err == nil && w == 0 {
			begun.Store(i)
		}
		if err == nil && i%2 == 0 {
			_ = j.Finish(context.Background(), confirmed(r))
		}
	}
}

// newestOf is the number of the last record that writer 0 has begun, in a copy.
func newestOf(path string) (n int64, err error) {
	j, err := tryOpen(path, bolt.Options{LockWait: -1})
	if err != nil {
		return 0, err
	}
	defer j.Close()
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return 0, err
		}
		if number, found := strings.CutPrefix(r.Key, "writer-0-"); found {
			var i int64
			if _, err := fmt.Sscan(number, &i); err == nil {
				n = max(n, i)
			}
		}
	}
	return n, nil
}
