package bolt_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// The long matrix of power cuts is
//
//	go test ./persist/bolt -run TestPowerCut -v -timeout 1h -args -images 200000
//
// and one trace again is -args -trace NAME -round N.
var (
	images    = flag.Int("images", testrun.N(200, 5_000), "how many images of disks TestPowerCut opens")
	onlyTrace = flag.String("trace", "", "the only trace that TestPowerCut plays")
	onlyRound = flag.Int("round", 0, "the only round in which it plays it")
)

const (
	long      = 100_000 // from so many images on, all of the matrix is played
	randomly  = 16      // so many random traces are in each round
	tracesMin = 40
)

// TestPowerCut plays traces of processes whose system calls are recorded, cuts the
// power at each of them, and opens what that may have left.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	root, named, m := testrun.Dir(t), traces(t), newMatrix()
	randomly := testrun.N(4, randomly)
	if *onlyTrace == "" {
		named = testrun.Some(named, 4)
	}
	perTrace := min(*images/(len(named)+randomly)+1, 600) // the rest in further rounds, which go on otherwise
	for round := 0; m.images() < *images && round < 100; round++ {
		for n := range len(named) + randomly {
			h := &history{dir: filepath.Join(root, "disk"), r: rand.New(rand.NewPCG(uint64(n), uint64(round))), m: m}
			s := h.trace(named, n, round)
			if *onlyTrace != "" && (s.name != *onlyTrace || round != *onlyRound) || round > 0 && m.images() >= *images {
				continue
			}
			m.trace = s.name
			if h.play(t, s, perTrace); t.Failed() {
				t.Fatalf("again: go test ./persist/bolt -run TestPowerCut -args -images %d -trace %q -round %d", *images, s.name, round)
			}
		}
		if *onlyTrace != "" && round >= *onlyRound {
			t.Logf("%d images of %d processes", m.images(), m.lives)
			return
		}
	}
	m.wantSpread(t, *images, testrun.N(15, tracesMin))
}

// history is a trace, and the processes after it.
type history struct {
	dir  string
	r    *rand.Rand
	m    *matrix
	keys []string // "KEY SIZE" that were begun
	open string   // how the first process opens the journal
}

// trace is the n-th of a round: one that has a name, or a random one.
func (h *history) trace(named []trace, n, round int) trace {
	if n < len(named) {
		return named[n]
	}
	n += round*randomly - len(named)
	return trace{name: fmt.Sprintf("random %d", n), before: empty, script: h.script(n), fault: h.fault()}
}

// play plays a trace with up to four processes that follow.
func (h *history) play(t *testing.T, s trace, images int) {
	h.open = "open"
	for line := range strings.Lines(s.script) {
		if key, ok := strings.CutPrefix(strings.TrimSpace(line), "begin "); ok && !slices.Contains(h.keys, key) {
			h.keys = append(h.keys, key)
		}
		if strings.HasPrefix(line, "open another") {
			h.open = "open another"
		}
	}
	h.keys = append(h.keys, "another 100")
	mkdir(t, h.dir)
	disk, before, script, fault := powercut.NewDisk(h.dir, s.files), s.before, s.script, s.fault
	for process := range testrun.N(2, 5) {
		l := live(t, h.dir, disk, before, script, fault)
		l.name = s.name + ": " + l.name
		h.m.lives++
		l.cuts(t, h.dir, h.r, images/5, h.m)
		if t.Failed() {
			return
		}
		if process == 0 && s.then != nil {
			disk, before, script, fault = l.ended(h.r), l.at[len(l.at)-1], s.then.script, s.then.fault
			continue
		}
		disk, before = h.next(l)
		script, fault = h.open+"\nbegin "+strings.Join(h.keys, "\nbegin ")+"\nclose", h.fault()
		if h.r.IntN(3) == 0 {
			script = strings.ReplaceAll(h.random(4+h.r.IntN(4)), "open", h.open)
		}
	}
}

// next is the disk before the next process: the power was cut, or the process has only ended.
func (h *history) next(l *life) (*powercut.Disk, expected) {
	if h.r.IntN(4) == 0 {
		l.after.Evict(h.r, []float64{0, 0.5, 1}[h.r.IntN(3)])
		return l.after, l.at[len(l.at)-1]
	}
	d, at := l.start.Clone(), 1+h.r.IntN(len(l.calls))
	for i := range at {
		d.Do(&l.calls[i], h.r)
	}
	return powercut.NewDisk(h.dir, d.Cut(powercut.Random(h.r))), l.at[at]
}

// ended is the disk after the process, where chance says what of a failed sync has arrived.
func (l *life) ended(r *rand.Rand) *powercut.Disk {
	d := l.start.Clone()
	for i := range l.calls {
		d.Do(&l.calls[i], r)
	}
	d.Exit()
	return d
}

// fault is one for a process, or none.
func (h *history) fault() powercut.Fault {
	if h.r.IntN(3) != 0 {
		return powercut.Fault{}
	}
	f := powercut.Fault{Call: []string{"fdatasync", "pwrite64", "fsync", "ftruncate"}[h.r.IntN(4)], Nth: 1 + h.r.IntN(12)}
	if f.Call == "fsync" || f.Call == "ftruncate" {
		f.Nth = 1 + h.r.IntN(3)
	}
	f.What = []string{"error=EIO", "error=ENOSPC", "signal=KILL"}[h.r.IntN(3)]
	return f
}

// script is the first script of history n.
func (h *history) script(n int) string {
	switch n % 6 {
	case 0:
		return h.random(3)
	case 1:
		return strings.Replace(h.random(12), "open", "open another", 1)
	case 2:
		return "open\nmany m 30\nclose\n" + h.random(6)
	}
	return h.random(20)
}

// random is a script of about so many operations.
func (h *history) random(n int) string {
	lines := []string{"open"}
	for range n {
		key := ""
		if len(h.keys) > 0 {
			key, _, _ = strings.Cut(h.keys[h.r.IntN(len(h.keys))], " ")
		}
		switch op := h.r.IntN(14); {
		case op < 5 || key == "":
			size := 1 + h.r.IntN(300)
			if h.r.IntN(6) == 0 {
				size = 1 + h.r.IntN(60_000)
			}
			h.keys = append(h.keys, fmt.Sprintf("order-%d %d", len(h.keys), size))
			lines = append(lines, "begin "+h.keys[len(h.keys)-1])
		case op < 7:
			lines = append(lines, "update "+key)
		case op < 9:
			size := 10
			if h.r.IntN(4) == 0 {
				size = h.r.IntN(40_000)
			}
			lines = append(lines, fmt.Sprintf("finish %s %d", key, size))
		case op == 9:
			lines = append(lines, "forget "+key)
		case op == 10:
			lines = append(lines, "mark "+key)
		case op == 11:
			if h.r.IntN(2) == 0 {
				lines = append(lines, fmt.Sprintf("sweep %d %d", 1+h.r.IntN(10), h.r.IntN(2)))
				break
			}
			lines = append(lines, "text 10", fmt.Sprintf("text %d", 1+h.r.IntN(10)))
		case op == 12:
			lines = append(lines, "close", "open")
		default:
			lines = append(lines, "update "+key)
		}
	}
	return strings.Join(append(lines, "close"), "\n")
}
