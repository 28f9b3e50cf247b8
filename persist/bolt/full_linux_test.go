package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	limit := func(n uint64) error {
		var l syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			return err
		}
		l.Cur = min(n, l.Max)
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	if err := limit(100_000); err != nil {
		return err
	}
	ctx := context.Background()
	var acknowledged []string
	refused := 0
	var last persist.Record
	for i := range 1000 {
		r, created, err := j.Begin(ctx, record(fmt.Sprintf("order-%d", i)))
		switch {
		case err == nil && created:
			acknowledged = append(acknowledged, r.Key)
			last = r
			continue
		case errors.Is(err, persist.ErrUncertain):
			fmt.Println("a full disk was answered with", err)
		case !strings.Contains(err.Error(), path) || !errors.Is(err, syscall.EFBIG) && !strings.Contains(err.Error(), "file too large"):
			fmt.Println("a full disk was answered with", err)
		}
		if _, err := j.Get(ctx, record(fmt.Sprintf("order-%d", i)).ID); !errors.Is(err, persist.ErrNotFound) {
			fmt.Println("what was refused is there:", err)
		}
		if refused++; refused == 5 {
			break
		}
	}
	if len(acknowledged) < 20 || refused < 5 {
		fmt.Println(len(acknowledged), "were acknowledged and", refused, "refused")
	}
	if err := j.Finish(ctx, confirmed(last)); err != nil {
		fmt.Println("Finish on a full disk:", err)
	}
	_ = j.Flush(ctx)
	if err := limit(1 << 40); err != nil {
		return err
	}
	r, created, err := j.Begin(ctx, record("with space again"))
	if err != nil || !created {
		fmt.Println("Begin when there is space again:", created, err)
	}
	acknowledged = append(acknowledged, r.Key)
	if err := j.Flush(ctx); err != nil {
		fmt.Println("Flush when there is space again:", err)
	}
	if err := j.Close(); err != nil {
		fmt.Println("Close:", err)
	}
	if j, err = bolt.Open(path, bolt.Options{}); err != nil {
		return err
	}
	var got []string
	for r, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
		if err != nil {
			return err
		}
		got = append(got, r.Key)
		if r.Key == last.Key && r.State != persist.Confirmed {
			fmt.Println("the Finish on a full disk was lost")
		}
	}
	if !slices.Equal(got, acknowledged) {
		fmt.Println("it holds", got, "and acknowledged", acknowledged)
	}
	_, _ = os.Stdout.Sync(), j.Close()
	return nil
}
