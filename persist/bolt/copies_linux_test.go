package bolt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// The long measurement of copies is
//
//	go test ./persist/bolt -run TestCopies -v -args -copies 150
var copies = flag.Int("copies", testrun.N(2, 8), "how many copies TestCopies makes of each journal; with 100 or more it has large journals, too")

// copied is a journal that is copied, and how it is written to meanwhile.
type copied struct {
	records, writers int
	pause            time.Duration // of each writer, between its records
}

// TestCopies copies the file with cp while it is written to. A copy may be refused, and it may be older than the last
// acknowledgement, as doc.go says. One that opens shows the journal as it was at one moment. A copy of a closed file is whole.
func TestCopies(t *testing.T) {
	t.Parallel()
	all := []copied{{300, 1, 5 * time.Millisecond}, {300, 1, 0}}
	if *copies >= 100 {
		all = []copied{{1000, 1, 20 * time.Millisecond}, {1000, 1, 0}, {20_000, 1, 20 * time.Millisecond}, {20_000, 8, 0}}
	}
	for _, c := range all {
		c.measure(t)
	}
}

// measure copies the journal again and again, and says how many copies are refused, and how many are older.
func (c *copied) measure(t *testing.T) {
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
	for range *copies {
		before := begun.Load()
		copyFile(t, path, path+".copy")
		after := begun.Load()
		switch newest, err := c.newestOf(path + ".copy"); {
		case errors.Is(err, persist.ErrCorrupt):
			refused++
		case err != nil:
			t.Error(err)
		case newest < before-1: // 1: two commits can come while cp reads both meta pages
			t.Errorf("%+v: a copy has %d records of a writer that had begun %d before it", *c, newest, before)
		case newest < after:
			older++
		}
		time.Sleep(c.pause / 2)
	}
	close(stop)
	wg.Wait()
	t.Logf("%d records and %d writers, pause %v: of %d copies %d are refused, and %d older", c.records, c.writers, c.pause, *copies, refused, older)
	closeIt(t, j)
	copyFile(t, path, path+".copy")
	if newest, err := c.newestOf(path + ".copy"); err != nil || newest != begun.Load() {
		t.Errorf("%+v: a copy of the closed file has %d records of a writer, %v; want %d", *c, newest, err, begun.Load())
	}
}

// copyFile copies a file with cp.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
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

// newestOf is the number of the last record that writer 0 has begun, in a copy. All that was begun before it must be there.
func (c *copied) newestOf(path string) (n int64, err error) {
	j, err := tryOpen(path, bolt.Options{LockWait: -1})
	if err != nil {
		return 0, err
	}
	defer j.Close()
	records, written := 0, int64(0)
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(r.Key, "before-") {
			records++
		}
		if number, found := strings.CutPrefix(r.Key, "writer-0-"); found {
			i, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return 0, err
			}
			n, written = max(n, i), written+1
		}
	}
	if records != c.records || written != n {
		return 0, fmt.Errorf("a state that never was: %d of %d records, and %d of a writer's first %d", records, c.records, written, n)
	}
	return n, nil
}
