package bolt_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// The long measurement of broken assumptions is
//
//	go test ./persist/bolt -run TestBrokenAssumptions -v -timeout 1h -args -measured 6000
var measured = flag.Int("measured", 150, "how many images TestBrokenAssumptions makes for each assumption")

// assumption is one that doc.go names, and how it is broken. It is measured what that costs.
type assumption struct {
	name string
	// A cut has pages and sectors of these sizes; 0: as the model has them.
	page, sector int
	order        bool // all arrives up to a moment
	lies         int  // one sync of so many does nothing and says that it succeeded; 0: none
	atRest       bool // a page that was not written to holds anything
	// What the measurement must have found. Without either, files are refused or older.
	harmless bool // no file is refused, and none is older
	opens    bool // files are older, and none is refused
}

// TestBrokenAssumptions measures what it costs where a disk does not keep to what doc.go assumes: how many images are
// refused, and how many show an older state than what was acknowledged. None shows a state that never was. Smaller sectors do
// no harm, and where the order of writes is kept no file is refused; each other one does harm, so that the measurement sees it.
func TestBrokenAssumptions(t *testing.T) {
	t.Parallel()
	dir := testrun.Dir(t)
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
	opened := filepath.Join(testrun.Dir(t), journalName)
	for _, a := range []assumption{
		{name: "none is broken", harmless: true},
		{name: "sectors of 64 bytes", sector: 64, harmless: true},
		{name: "sectors of 1 byte", sector: 1, harmless: true},
		{name: "junk over 8 KB", page: 8 << 10},
		{name: "junk over 16 KB", page: 16 << 10},
		{name: "junk over 64 KB", page: 64 << 10},
		{name: "one sync of four does nothing", lies: 4},
		{name: "no sync does anything", lies: 1},
		{name: "no sync does anything, the order is kept", lies: 1, order: true, opens: true},
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
					if a.opens {
						t.Errorf("%s: call %d is cut: %v", a.name, i, err)
					}
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
	switch {
	case a.harmless && refused+older > 0:
		t.Errorf("%s: %d images are refused, and %d older; want none", a.name, refused, older)
	case a.opens && (refused > 0 || older == 0):
		t.Errorf("%s: %d images are refused, and %d older; want older ones alone", a.name, refused, older)
	case !a.harmless && refused+older == 0:
		t.Errorf("%s: nothing is refused or older: the measurement does not see it", a.name)
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

// shownIn returns the records that a journal opened in a file shows.
func shownIn(path string, file []byte) (string, error) {
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return "", err
	}
	// A process that another test has just forked may hold the lock of the file that was open before, until it runs its program.
	j, err := tryOpen(path, bolt.Options{LockWait: 10 * time.Second})
	if err != nil {
		return "", err
	}
	state, err := compact(j)
	return state, errors.Join(err, j.Close())
}
