package bolt_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// The long matrix of power cuts is
//
//	go test ./persist/bolt -run TestPowerCut -v -timeout 1h -args -images 200000
//
// and one history again is -args -history N.
var (
	images      = flag.Int("images", 12_000, "how many images of disks TestPowerCut opens")
	onlyHistory = flag.Int("history", -1, "the only history that TestPowerCut plays")
)

// TestPowerCut plays histories of processes whose system calls are recorded, cuts the
// power at each of them, and opens what that may have left.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	const perHistory = 1500
	root := memoryDir(t)
	total, lives := 0, 0
	for n := range max(1, *images/perHistory) {
		if *onlyHistory >= 0 {
			n = *onlyHistory
		}
		h := &history{dir: filepath.Join(root, "disk"), r: rand.New(rand.NewPCG(uint64(n), 35))}
		h.play(t, n, perHistory)
		total, lives = total+h.images, lives+h.lives
		if t.Failed() {
			t.Fatalf("again: go test ./persist/bolt -run TestPowerCut -args -history %d", n)
		}
		if *onlyHistory >= 0 {
			break
		}
	}
	t.Logf("%d images of %d processes", total, lives)
}

// history is a journal's life over several processes.
type history struct {
	dir    string
	r      *rand.Rand
	images int
	lives  int
	keys   []string // "KEY SIZE" that were begun
}

// play plays history n.
func (h *history) play(t *testing.T, n, images int) {
	mkdir(t, h.dir)
	disk, before := powercut.NewDisk(h.dir, nil), empty
	script := h.script(n)
	for depth := range 5 {
		l := live(t, h.dir, disk, before, script, h.fault(n, depth))
		h.lives++
		h.images += l.cuts(t, h.dir, h.r, images/5)
		if t.Failed() {
			return
		}
		disk, before = h.next(l)
		script = "open\nbegin " + strings.Join(h.keys, "\nbegin ") + "\nclose"
		if h.r.IntN(3) == 0 {
			script = h.random(4 + h.r.IntN(4))
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

// fault is what befalls a process.
func (h *history) fault(n, depth int) powercut.Fault {
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
			lines = append(lines, fmt.Sprintf("sweep %d %d", 1+h.r.IntN(10), h.r.IntN(2)))
		case op == 12:
			lines = append(lines, "close", "open")
		default:
			lines = append(lines, "update "+key)
		}
	}
	return strings.Join(append(lines, "close"), "\n")
}
