package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestMatrixDiskFull lets the disk be full at every write of a creation, a commit
// and a recovery. It runs in a process of its own, because the limit on the size
// of files that stands for a full disk is one for the whole process: a write at or
// behind the limit fails, one across it is cut.
func TestMatrixDiskFull(t *testing.T) {
	if *images >= long {
		t.Setenv("ONCEHTTP_BOLT_LONG", "1")
	}
	cmd, out, _ := spawn(t, "full-matrix", filepath.Join(testrun.Dir(t), "journal.db"))
	last := ""
	for {
		s, err := out.ReadString('\n')
		if err != nil {
			break
		}
		if last = strings.TrimSpace(s); !strings.HasPrefix(last, "tried") {
			t.Error(last)
		}
	}
	if err := cmd.Wait(); err != nil || last == "" {
		t.Errorf("%v; it said %q last", err, last)
	}
	t.Log(last)
}

// fullOps are the operations that meet a full disk.
func fullOps() map[string]func(j *bolt.Journal, r persist.Record) error {
	ctx := context.Background()
	return map[string]func(j *bolt.Journal, r persist.Record) error{
		"Begin": func(j *bolt.Journal, _ persist.Record) error { _, _, err := j.Begin(ctx, record("new")); return err },
		"large Begin": func(j *bolt.Journal, _ persist.Record) error {
			_, _, err := j.Begin(ctx, sized("new", 60_000))
			return err
		},
		"Update": func(j *bolt.Journal, r persist.Record) error {
			r.Attempts++
			_, err := j.Update(ctx, r)
			return err
		},
		"Forget": func(j *bolt.Journal, r persist.Record) error { return j.Forget(ctx, r) },
	}
}

// fullMatrix prints what is wrong, and at last how many limits it tried.
func fullMatrix(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	stride := pageSize + sectorSize
	if os.Getenv("ONCEHTTP_BOLT_LONG") != "" {
		stride = sectorSize
	}
	tried, failed := 0, 0
	for name, op := range fullOps() {
		for _, unmarked := range []bool{false, true} {
			base, rec, err := fullBase(path, unmarked)
			if err != nil {
				return err
			}
			for limit := 0; limit < len(base)+100_000; limit += stride {
				tried++
				stopped, err := fullAt(path, base, rec, limit, unmarked, op)
				if err != nil {
					fmt.Printf("%s, full from byte %d on, unmarked %t: %v\n", name, limit, unmarked, err)
				}
				if stopped {
					failed++
				}
			}
		}
	}
	for limit := 0; limit < 20_000; limit += 512 {
		tried++
		if err := fullCreation(path+".new", limit); err != nil {
			fmt.Printf("creation, full from byte %d on: %v\n", limit, err)
		}
	}
	fmt.Printf("tried %d limits, of which %d stopped a commit or an open\n", tried, failed)
	return nil
}

// fullBase makes a journal with some records and returns it, and one of them.
func fullBase(path string, unmarked bool) ([]byte, persist.Record, error) {
	_ = os.Remove(path)
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return nil, persist.Record{}, err
	}
	var rec persist.Record
	for i := range 20 {
		if rec, _, err = j.Begin(context.Background(), record(fmt.Sprintf("order-%d", i))); err != nil {
			return nil, rec, err
		}
	}
	if err := j.Close(); err != nil {
		return nil, rec, err
	}
	file, err := os.ReadFile(path)
	if unmarked && err == nil {
		older := 1 - bolt.NewestMeta(file)
		clear(file[older*pageSize+sectorSize:][:sectorSize])
	}
	return file, rec, err
}

// fullAt opens the journal and does one operation while the disk is full from a byte
// on, and does both again once there is space.
func fullAt(path string, base []byte, rec persist.Record, limit int, unmarked bool, op func(*bolt.Journal, persist.Record) error) (stopped bool, err error) {
	if err := os.WriteFile(path, base, 0o600); err != nil {
		return false, err
	}
	if err := limitFiles(uint64(limit)); err != nil {
		return false, err
	}
	j, openErr := tryOpen(path, bolt.Options{})
	var before, held []string
	var opErr error
	if openErr == nil {
		before, err = contents(j)
		opErr = op(j, rec)
		if held = before; !errors.Is(opErr, persist.ErrUncertain) {
			var err2 error
			held, err2 = contents(j)
			err = errors.Join(err, err2)
		}
	}
	if err := errors.Join(err, limitFiles(1<<40)); err != nil {
		return false, err
	}
	switch {
	case openErr != nil && (!unmarked || errors.Is(openErr, persist.ErrCorrupt)):
		return true, fmt.Errorf("Open: %w", openErr)
	case openErr != nil:
	case opErr == nil && slices.Equal(before, held):
		return false, errors.New("it said that it did what it did not")
	case opErr != nil && !slices.Equal(before, held):
		return true, fmt.Errorf("it failed (%w) and shows %q", opErr, held)
	}
	return opErr != nil || openErr != nil, spaceAgain(path, j, rec, held, opErr, op)
}

// spaceAgain looks at the journal after there is space again.
func spaceAgain(path string, j *bolt.Journal, rec persist.Record, held []string, opErr error, op func(*bolt.Journal, persist.Record) error) error {
	if j != nil {
		definite := opErr != nil && !errors.Is(opErr, persist.ErrUncertain)
		if definite {
			if err := op(j, rec); err != nil {
				return fmt.Errorf("with space again: %w", err)
			}
			var err error
			if held, err = contents(j); err != nil {
				return err
			}
		}
		if err := j.Close(); err != nil && !errors.Is(opErr, persist.ErrUncertain) {
			return fmt.Errorf("Close: %w", err)
		}
	}
	k, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	got, err := contents(k)
	if err == nil && j != nil && !errors.Is(opErr, persist.ErrUncertain) && !slices.Equal(got, held) {
		err = fmt.Errorf("opened again it holds %q, want %q", got, held)
	}
	if err == nil && len(got) < 19 {
		err = fmt.Errorf("opened again it holds %q", got)
	}
	return errors.Join(err, k.Close())
}

// fullCreation creates a journal on a disk that is full from a byte on.
func fullCreation(path string, limit int) error {
	_ = os.Remove(path)
	if err := limitFiles(uint64(limit)); err != nil {
		return err
	}
	j, err := tryOpen(path, bolt.Options{})
	if limitErr := limitFiles(1 << 40); limitErr != nil {
		return limitErr
	}
	if err != nil {
		if _, statErr := os.Stat(path); statErr == nil {
			return fmt.Errorf("it failed (%w) and left a file", err)
		}
		if left, _ := filepath.Glob(path + ".*.tmp"); len(left) > 0 {
			return fmt.Errorf("it left %q", left)
		}
		if j, err = tryOpen(path, bolt.Options{}); err != nil {
			return fmt.Errorf("with space again: %w", err)
		}
	}
	return j.Close()
}
