package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// The long crash matrix is
//
//	go test ./persist/bolt -run TestMatrix -timeout 1h -args -histories 500
//
// and one history again is -args -histories 1 -seed N.
var (
	histories = flag.Int("histories", 4, "random histories of TestMatrixPowerLoss")
	firstSeed = flag.Uint64("seed", 1, "seed of the first of them")
)

// TestMatrixPowerLoss runs random histories of one journal on a disk that loses
// power at every named step of every commit, open and close, with the sectors that
// were not synced lost, torn and reordered at random; syncs fail, and the kernel
// drops the pages. Each image of the disk must give the state before the operation
// or the state after it, and the latter alone once that was acknowledged.
func TestMatrixPowerLoss(t *testing.T) {
	t.Parallel()
	steps, images, opens := map[string]int{}, 0, 0
	for i := range *histories {
		seed := *firstSeed + uint64(i)
		h := newHistory(t, seed)
		for n := 0; n < 45 && !t.Failed(); n++ {
			h.operate()
		}
		h.close()
		for s, n := range h.steps {
			steps[s] += n
		}
		images += h.checked
		opens += h.opens
		if t.Failed() {
			t.Fatalf("run it again: go test ./persist/bolt -run TestMatrixPowerLoss -args -histories 1 -seed %d", seed)
		}
	}
	t.Logf("%d histories, %d images, %d reopenings", *histories, images, opens)
	for _, s := range bolt.Steps() {
		if steps[s] == 0 && !strings.HasPrefix(s, "create") && s != bolt.StepCloseDone && *histories >= 4 {
			t.Errorf("no power loss came at the step %q", s)
		}
	}
}

// state of the journal, as contents gives it.
type contentState []string

// image is what a disk held when the power failed.
type image struct {
	when string
	file []byte
}

// history is one journal with its disk, and what it must hold.
type history struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	d      *disk
	j      *bolt.Journal
	before contentState // what the last acknowledged operation left

	what    string // the operation under way
	images  []image
	steps   map[string]int
	made    int // records
	checked int
	opens   int
	sums    map[[32]byte]bool // of images of this operation
}

func newHistory(t *testing.T, seed uint64) *history {
	path := newPath(t)
	closeIt(t, open(t, path))
	h := &history{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), steps: map[string]int{}, sums: map[[32]byte]bool{}}
	h.d = newDisk(t, path, h.r, readFile(t, path))
	if !h.open(nil) {
		t.Fatal("a new journal cannot be opened")
	}
	return h
}

// options are those of the journal: at every step the power fails.
func (h *history) options() bolt.Options {
	return bolt.WithStep(h.d.options(), func(name string) {
		h.d.step(name)
		h.powerLoss(name)
	})
}

// powerLoss takes images of the disk, as a failure of the power may leave it now,
// and the end of the process.
func (h *history) powerLoss(when string) {
	h.steps[when]++
	for _, reached := range []float64{1, 0, 0.5, 0.9} {
		file := h.d.afterPowerLoss(reached)
		if sum := sha256.Sum256(file); !h.sums[sum] {
			h.sums[sum] = true
			h.images = append(h.images, image{fmt.Sprintf("%s, %s, %.0f%% of the sectors arrived", h.what, when, 100*reached), file})
		}
	}
}

// fatal ends a history.
func (h *history) fatal(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("seed %d: %s: %s", h.seed, h.what, fmt.Sprintf(format, args...))
}

// check opens the images that were taken, and forgets them.
func (h *history) check(allowed ...contentState) {
	h.t.Helper()
	for i, img := range h.images {
		h.checked++
		got, err := h.recovered(img.file, i%4 == 0)
		if err != nil {
			h.fatal("%s: %v", img.when, err)
		}
		if !slices.ContainsFunc(allowed, func(s contentState) bool { return slices.Equal(s, got) }) {
			h.fatal("%s: got\n%s\nallowed\n%s", img.when, strings.Join(got, "\n"), show(allowed))
		}
	}
	h.forget()
}

// forget drops the images that were taken.
func (h *history) forget() {
	h.images = nil
	clear(h.sums)
}

func show(states []contentState) string {
	var b strings.Builder
	for i, s := range states {
		fmt.Fprintf(&b, "state %d\n%s\n", i, strings.Join(s, "\n"))
	}
	return b.String()
}

// recovered is what a journal holds that is opened on a copy of an image. If work is
// set, it also goes on from there, and is opened again.
func (h *history) recovered(file []byte, work bool) (contentState, error) {
	path := h.d.path + ".image"
	writeFile(h.t, path, file)
	opts := bolt.Options{Sync: func(*os.File) error { return nil }}
	j, err := tryOpen(path, opts)
	if err != nil {
		return nil, err
	}
	got, err := contents(j)
	if work && err == nil {
		var after, again contentState
		_, _, err = j.Begin(context.Background(), sized("afterwards", 20_000))
		after, err2 := contents(j)
		err = errors.Join(err, err2, j.Close())
		if j, err2 = tryOpen(path, opts); err2 != nil {
			return nil, errors.Join(err, err2)
		}
		again, err2 = contents(j)
		if err = errors.Join(err, err2); err == nil && (!slices.Equal(again, after) || len(after) != len(got)+1) {
			err = fmt.Errorf("after more work and another open it holds %q, and held %q", again, after)
		}
	}
	return got, errors.Join(err, j.Close())
}

// operate runs one random operation with a power loss at each of its steps, then
// perhaps goes on from one of them.
func (h *history) operate() {
	if h.r.IntN(8) == 0 {
		h.failedSync()
		return
	}
	acknowledged := h.change()
	after, err := contents(h.j)
	if err != nil || acknowledged != nil {
		h.fatal("%v, %v", acknowledged, err)
	}
	taken := slices.Clone(h.images)
	h.check(h.before, after)
	h.powerLoss("acknowledged")
	h.check(after)
	switch before := h.before; h.r.IntN(6) {
	case 0:
		h.before = after
		h.what = "reopening after Close"
		h.close()
		h.reopen(after)
	case 1:
		if len(taken) > 0 { // the power failed in the middle
			img := taken[h.r.IntN(len(taken))]
			h.what = "reopening after: " + img.when
			_ = h.j.Close()
			h.forget() // what became of that journal does not count
			h.d.reset(img.file)
			h.reopen(before, after)
		}
	default:
		h.before = after
	}
}

// change makes one random change, acknowledged and durable when it returns nil.
func (h *history) change() error {
	ctx := context.Background()
	rec, found := h.pick()
	switch op := h.r.IntN(12); {
	case op < 4 || !found:
		h.made++
		r := sized(fmt.Sprintf("order-%d", h.made), 1+h.r.IntN(200))
		if op == 0 {
			r = sized(r.Key, 1+h.r.IntN(90_000))
		}
		r.Generated, r.Enqueued = h.r.IntN(2) == 0, h.r.IntN(4) == 0
		h.what = fmt.Sprintf("Begin of %d bytes", len(r.Body))
		_, _, err := h.j.Begin(ctx, r)
		return err
	case op < 6 && !rec.State.Final():
		h.what = "Update"
		rec.Attempts++
		_, err := h.j.Update(ctx, rec)
		return err
	case op < 9 && !rec.State.Final():
		r := confirmed(rec)
		r.Unreported = r.Generated && h.r.IntN(2) == 0
		if h.r.IntN(4) == 0 {
			r.Answer.Body = bytes.Repeat([]byte("a"), h.r.IntN(60_000))
		}
		h.what = fmt.Sprintf("Finish with %d bytes", len(r.Answer.Body))
		return errors.Join(h.j.Finish(ctx, r), h.j.Flush(ctx))
	case op == 9 && !rec.State.Final():
		h.what = "Forget"
		return h.j.Forget(ctx, rec)
	case op == 10 && rec.Unreported:
		h.what = "MarkReported"
		return errors.Join(h.j.MarkReported(ctx, rec.ID), h.j.Flush(ctx))
	default:
		l := persist.Limits{KeepAnswer: -1, KeepKey: -time.Duration(h.r.IntN(2)), Max: 1 + h.r.IntN(20)}
		h.what = fmt.Sprintf("Sweep of at most %d", l.Max)
		_, err := h.j.Sweep(ctx, l)
		return err
	}
}

// pick is a random record of the journal.
func (h *history) pick() (persist.Record, bool) {
	var all []persist.Record
	for r, err := range h.j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			h.fatal("List: %v", err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return persist.Record{}, false
	}
	return all[h.r.IntN(len(all))], true
}

// failedSync lets the sync of an operation fail, loses what the kernel may lose
// then, and opens the journal again.
func (h *history) failedSync() {
	h.d.fail = true
	err := h.change()
	if h.d.fail { // it had nothing to sync
		h.d.fail = false
		h.before, err = contents(h.j)
		if err != nil {
			h.fatal("%v", err)
		}
		return
	}
	if !errors.Is(err, persist.ErrUncertain) {
		h.fatal("its sync failed: %v, want ErrUncertain", err)
	}
	whole := readFile(h.t, h.d.path)
	_ = h.j.Close()
	// The kernel still has all of the commit: that is what was to be.
	after, err := h.recovered(whole, false)
	if err != nil {
		h.fatal("after a failed sync: %v", err)
	}
	h.check(h.before, after)
	durable := slices.Clone(h.d.durable)
	kept := h.r.IntN(3) // of pages: all, none, some
	for p := 0; p*pageSize < len(whole); p++ {
		if kept == 1 || kept == 2 && h.r.IntN(2) == 0 {
			copy(whole[p*pageSize:], durable[p*pageSize:min((p+1)*pageSize, len(durable))])
		}
	}
	h.what = fmt.Sprintf("reopening after a failed sync of %s, pages kept: %s", h.what, []string{"all", "none", "some"}[kept])
	h.d.reset(whole)
	h.d.durable = durable
	h.reopen(h.before, after)
}

// reopen opens the journal with a power loss at each step; sometimes a sync of that
// fails first. It must hold one of these, and go on holding it.
func (h *history) reopen(allowed ...contentState) {
	h.opens++
	if h.r.IntN(3) == 0 {
		h.d.fail = true
		h.open(allowed)
		h.d.fail = false
		if h.j != nil {
			h.check(allowed...)
			h.close()
		}
	}
	if !h.open(allowed) {
		h.fatal("it cannot be opened")
	}
	got, err := contents(h.j)
	if err != nil {
		h.fatal("%v", err)
	}
	if !slices.ContainsFunc(allowed, func(s contentState) bool { return slices.Equal(s, got) }) {
		h.fatal("got\n%s\nallowed\n%s", strings.Join(got, "\n"), show(allowed))
	}
	h.check(allowed...)
	h.powerLoss("opened")
	h.check(got)
	h.before = got
}

// open opens the journal, and reports whether it could. Only a failed sync is a
// reason not to.
func (h *history) open(allowed []contentState) bool {
	j, err := tryOpen(h.d.path, h.options())
	h.j = j
	if err != nil && !errors.Is(err, syscall.EIO) {
		h.fatal("Open: %v", err)
	}
	if allowed == nil {
		h.before = nil
	}
	return err == nil
}

// close closes the journal, with a power loss at each step.
func (h *history) close() {
	after, err := contents(h.j)
	if err != nil {
		h.fatal("%v", err)
	}
	if err := h.j.Close(); err != nil {
		h.fatal("Close: %v", err)
	}
	h.check(after)
	h.j = nil
}
