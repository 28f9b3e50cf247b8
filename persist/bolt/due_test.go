package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// dueAt is a record of an origin that is due at a time after record's Created.
func dueAt(key, origin string, after time.Duration) persist.Record {
	r := record(key)
	r.Origin, r.NextAttempt = "https://"+origin+":443", r.Created.Add(after)
	return r
}

// dueState is what a journal says of due times, one line for each origin, and what it lists as due.
func dueState(t testing.TB, j *bolt.Journal, by time.Time) []string {
	t.Helper()
	all, err := j.DueTimes(context.Background(), persist.Query{Account: "acct", DueBy: by})
	if err != nil {
		t.Fatalf("DueTimes: %v", err)
	}
	var lines []string
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("%s at %d, then %d", d.Origin, d.At.Unix(), d.Next.Unix()))
	}
	slices.Sort(lines)
	return append(lines, dueKeys(t, j, by)...)
}

// dueKeys are the keys of the pending records that are due by a time.
func dueKeys(t testing.TB, j *bolt.Journal, by time.Time) (keys []string) {
	t.Helper()
	for r, err := range j.List(context.Background(), persist.Query{Account: "acct", States: []persist.State{persist.StatePending}, DueBy: by}) {
		if err != nil {
			t.Errorf("List of what is due: %v", err)
			continue
		}
		keys = append(keys, r.Key)
	}
	return keys
}

// TestDueAfterFailure: what could not be written has not changed what is due.
func TestDueAfterFailure(t *testing.T) {
	t.Parallel()
	ctx, path := context.Background(), newPath(t)
	j := open(t, path)
	var recs []persist.Record
	for i := range 6 {
		recs = append(recs, begin(t, j, dueAt(fmt.Sprint(i), fmt.Sprintf("%d.example", i%2), time.Duration(i)*time.Minute)))
	}
	closeIt(t, j)
	// A file that can be read and locked only.
	j = openWith(t, path, bolt.Options{OpenFile: func(name string, _ int, perm os.FileMode) (*os.File, error) {
		return os.OpenFile(name, os.O_RDONLY, perm)
	}})
	by := recs[2].NextAttempt
	want := dueState(t, j, by)
	for _, fail := range []func() error{
		func() error { _, _, err := j.Begin(ctx, dueAt("new", "2.example", 0)); return err },
		func() error { r := recs[0]; r.NextAttempt = time.Time{}; _, err := j.Update(ctx, r); return err },
		func() error { r := recs[5]; r.NextAttempt = time.Time{}; _, err := j.Update(ctx, r); return err },
		func() error {
			r := recs[1]
			r.State, r.HoldReason = persist.StateHeld, persist.HoldExpired
			_, err := j.Update(ctx, r)
			return err
		},
		func() error { return j.Forget(ctx, recs[2]) },
	} {
		if err := fail(); err == nil || errors.Is(err, persist.ErrUncertain) {
			t.Fatalf("a change of a file that can only be read: %v", err)
		}
		if got := dueState(t, j, by); !slices.Equal(got, want) {
			t.Errorf("after a change that was not written:\n%q\nwant\n%q", got, want)
		}
	}
	finish(t, j, recs[0])
	_ = j.Flush(ctx) // fails, and the Finish stays queued
	if got, want := dueKeys(t, j, by), []string{"1", "2"}; !slices.Equal(got, want) {
		t.Errorf("with a Finish that could not be written yet, %q are due, want %q", got, want)
	}
	_ = j.Close()
	if got := dueState(t, open(t, path), by); !slices.Equal(got, want) {
		t.Errorf("after it was opened again:\n%q\nwant\n%q", got, want)
	}
}

// TestDueReadsNoOther: a listing of what is due, and the due times, read nothing that is not due: here that would be
// noticed, since all of it is damaged.
func TestDueReadsNoOther(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	const n = 500
	for i := range n {
		after := time.Hour
		if i%100 == 7 {
			after = 0
		}
		begin(t, j, dueAt(fmt.Sprintf("order-%d-%v", i, after), "api.example", after))
	}
	damageOpen(t, path, n-5, "-1h0m0s")
	by := record("").Created.Add(time.Minute)
	if got := dueKeys(t, j, by); len(got) != 5 {
		t.Errorf("%q are due, want 5", got)
	}
	if got := dueState(t, j, by); len(got) != 6 || !strings.Contains(got[0], fmt.Sprintf("at %d, then", by.Add(-time.Minute).Unix())) {
		t.Errorf("where the records that are due later are damaged:\n%q", got)
	}
	one := begin(t, j, dueAt("whole", "two.example", 2*time.Minute))
	if got, want := dueState(t, j, by), fmt.Sprintf("https://two.example:443 at %d, then %d", one.NextAttempt.Unix(), one.NextAttempt.Unix()); len(got) != 7 || got[1] != want {
		t.Errorf("of an origin without damage:\n%q\nwant second\n%q", got, want)
	}
}

// damageOpen flips a bit wherever text is in the file of a journal that is open.
func damageOpen(t testing.TB, path string, least int, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, n := readFile(t, path), 0
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i
		if _, err := f.WriteAt([]byte{b[at] ^ 1}, int64(at)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < least {
		t.Fatalf("%q is in the file %d times, want at least %d", text, n, least)
	}
}

// TestDueTimesForgotten: a Forget that is under way is waited for where its record is the only one of an origin.
func TestDueTimesForgotten(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var gate chan error // what the sync waits for and ends with
		j, err := tryOpen(path, bolt.Options{Sync: func(f *os.File) error {
			if gate != nil {
				return <-gate
			}
			return f.Sync()
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		only := begin(t, j, dueAt("only", "one.example", 0))
		// Damaged, so that a listing does not have it: the index has.
		first := begin(t, j, dueAt("order-damaged", "two.example", time.Minute))
		begin(t, j, dueAt("other", "two.example", time.Hour))
		damageOpen(t, path, 1, "order-damaged")
		gate = make(chan error)
		go func() { _ = j.Forget(ctx, only) }()
		synctest.Wait()
		var told []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			told = dueState(t, j, only.NextAttempt)
		}()
		synctest.Wait()
		if told != nil {
			t.Errorf("it said %q before it was known whether the record is gone", told)
		}
		gate <- nil
		close(gate)
		<-done
		want := fmt.Sprintf("https://two.example:443 at %d, then %[1]d", first.NextAttempt.Unix())
		if !slices.Equal(told, []string{want}) {
			t.Errorf("after a Forget it said %q, want %q", told, want)
		}
	})
}
