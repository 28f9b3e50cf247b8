package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestDiskFull runs full in a process of its own, because the limit on the size
// of files that stands for a full disk is one for the whole process.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	cmd, out, _ := spawn(t, "full", newPath(t))
	for {
		s, err := out.ReadString('\n')
		if err != nil {
			break
		}
		t.Error(strings.TrimSpace(s))
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// full fills a journal until it cannot grow, and checks that nothing that was
// refused is there, that everything that was acknowledged is, and that the work
// goes on once there is space. It prints what is wrong.
func full(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	if err := limitFiles(100_000); err != nil {
		return err
	}
	ctx := context.Background()
	acknowledged, last := fill(j, path)
	if err := j.Finish(ctx, confirmed(last)); err != nil {
		fmt.Println("Finish on a full disk:", err)
	}
	_ = j.Flush(ctx)
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	r, created, err := j.Begin(ctx, record("with space again"))
	if err != nil || !created {
		fmt.Println("Begin when there is space again:", created, err)
	}
	acknowledged = append(acknowledged, r.Key)
	if err := errors.Join(j.Flush(ctx), j.Close()); err != nil {
		fmt.Println("Flush and Close when there is space again:", err)
	}
	if j, err = tryOpen(path, bolt.Options{}); err != nil {
		return err
	}
	var got []string
	for r, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
		if err != nil {
			return err
		}
		got = append(got, r.Key)
		if r.Key == last.Key && r.State != persist.StateConfirmed {
			fmt.Println("the Finish on a full disk was lost")
		}
	}
	if !slices.Equal(got, acknowledged) {
		fmt.Println("it holds", got, "and acknowledged", acknowledged)
	}
	return j.Close()
}

// limitFiles sets how large a file may become.
func limitFiles(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(n, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// fill begins records until five were refused.
func fill(j *bolt.Journal, path string) (acknowledged []string, last persist.Record) {
	ctx, refused := context.Background(), 0
	for i := 0; i < 1000 && refused < 5; i++ {
		r, created, err := j.Begin(ctx, record(fmt.Sprintf("order-%d", i)))
		if err == nil && created {
			acknowledged, last = append(acknowledged, r.Key), r
			continue
		}
		refused++
		if errors.Is(err, persist.ErrUncertain) || !strings.Contains(err.Error(), path) ||
			!errors.Is(err, syscall.EFBIG) && !strings.Contains(err.Error(), "file too large") {
			fmt.Println("a full disk was answered with", err)
		}
		if _, err := j.Get(ctx, record(fmt.Sprintf("order-%d", i)).ID); !errors.Is(err, persist.ErrNotFound) {
			fmt.Println("what was refused is there:", err)
		}
	}
	if len(acknowledged) < 20 || refused < 5 {
		fmt.Println(len(acknowledged), "were acknowledged and", refused, "refused")
	}
	return acknowledged, last
}
