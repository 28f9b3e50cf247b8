package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestReadOnly reads journals of many shapes through a journal opened for reading. It finds what another journal finds, and changes no byte.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 40, 2000} { // in the root page, and in trees of one to three levels
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			ids := filled(t, path, n)
			before := readFile(t, path)
			want := readThrough(t, openWith(t, path, bolt.Options{}), ids)
			got := readThrough(t, openWith(t, path, bolt.Options{ReadOnly: true}), ids)
			if !slices.Equal(got, want) {
				t.Errorf("it reads\n%q\nwant\n%q", got, want)
			}
			if len(want) < n {
				t.Errorf("only %d results", len(want))
			}
			if after := readFile(t, path); !slices.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// filled makes a journal of n records in many states, some with large bodies, some erased, and some removed again. It returns the keys that were
// used.
func filled(t *testing.T, path string, n int) (ids []persist.ID) {
	t.Helper()
	j, rnd := open(t, path), rand.New(rand.NewPCG(uint64(n), 7))
	for i := range n {
		size := []int{20, 300, 3000, 9000, 200_000}[min(rnd.IntN(60)/12, 3+rnd.IntN(20)/19)]
		r := begin(t, j, sized(fmt.Sprintf("key %d", i), size))
		ids = append(ids, r.ID)
		switch rnd.IntN(5) {
		case 0:
			finish(t, j, r)
		case 1:
			r.NextAttempt = r.Created.Add(time.Duration(rnd.IntN(100)) * time.Hour)
			if _, err := j.Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := j.Forget(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		case 3:
			finish(t, j, r)
			if i%7 == 0 {
				eraseIn(t, j, r.ID)
			}
		}
	}
	closeIt(t, j)
	return append(ids, persist.ID{Account: "acct", Key: "never used"})
}

// eraseIn erases a finished record.
func eraseIn(t *testing.T, j *bolt.Journal, id persist.ID) {
	t.Helper()
	r, err := j.Get(t.Context(), id)
	secret, secretErr := j.Secret(t.Context())
	if err := errors.Join(err, secretErr); err != nil {
		t.Fatal(err)
	}
	was := r.Fingerprint
	r.Erase(secret)
	if _, err := j.Erase(t.Context(), r, was); err != nil {
		t.Fatal(err)
	}
}

// readThrough returns the results of all that reads, and closes the journal.
func readThrough(t *testing.T, j *bolt.Journal, ids []persist.ID) (results []string) {
	t.Helper()
	ctx := context.Background()
	note := func(format string, args ...any) { results = append(results, fmt.Sprintf(format, args...)) }
	for _, q := range []persist.Query{
		{AllAccounts: true}, {Account: "acct", States: []persist.State{persist.StatePending}}, {AllAccounts: true, After: 17}, {Account: "acct", Key: "key 3"},
		{AllAccounts: true, DueBy: time.Unix(1_750_000_000, 0).Add(48 * time.Hour)}, {Account: "other"},
	} {
		for r, err := range j.List(ctx, q) {
			note("List: %s %v", line(&r), err)
		}
	}
	for _, id := range ids {
		r, err := j.Get(ctx, id)
		note("Get: %s %v", line(&r), err)
	}
	err := j.GetEach(ctx, ids, func(i int, r persist.Record) bool {
		note("GetEach: %d %s", i, line(&r))
		return true
	})
	counts, countErr := j.Count(ctx)
	due, dueErr := j.DueTimes(ctx, persist.Query{AllAccounts: true})
	secret, secretErr := j.Secret(ctx)
	fact, factErr := j.Fact(ctx, persist.FactSeal, nil, nil)
	note("%v %+v %v %+v %v %x %v %q %v %v", err, counts, countErr, due, dueErr, secret, secretErr, fact, factErr, j.Flush(ctx))
	closeIt(t, j)
	if _, err := j.Get(ctx, ids[0]); !errors.Is(err, persist.ErrClosed) {
		t.Errorf("Get after Close: %v, want ErrClosed", err)
	}
	return results
}

// TestReadOnlyWrites calls all that writes. Each call is refused, and the file stays.
func TestReadOnlyWrites(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path)
	pending, ended := begin(t, w, record("pending")), begin(t, w, record("ended"))
	finish(t, w, ended)
	flush(t, w)
	ended, err := w.Get(t.Context(), ended.ID)
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, w)
	before, ctx := readFile(t, path), t.Context()
	j := openWith(t, path, bolt.Options{ReadOnly: true})
	_, _, begun := j.Begin(ctx, record("new"))
	_, updated := j.Update(ctx, pending)
	_, amended := j.Amend(ctx, ended)
	_, assigned := j.Assign(ctx, pending, "b")
	_, erased := j.Erase(ctx, ended, nil)
	_, delivered := j.MarkDelivered(ctx, ended.ID, ended.Revision)
	_, fact := j.Fact(ctx, "name", nil, []byte("value"))
	_, swept := j.Sweep(ctx, persist.Limits{})
	for name, err := range map[string]error{
		"Begin": begun, "Update": updated, "Finish": j.Finish(ctx, confirmed(pending)), "Forget": j.Forget(ctx, pending), "MarkReported": j.MarkReported(ctx, ended.ID),
		"MarkDelivered": delivered, "Amend": amended, "Assign": assigned, "Erase": erased, "Fact": fact, "Sweep": swept,
	} {
		if !errors.Is(err, persist.ErrReadOnly) || errors.Is(err, persist.ErrUncertain) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	if _, err := tryOpen(path, bolt.Options{LockWait: -1}); !errors.Is(err, persist.ErrLocked) {
		t.Errorf("another Open: %v, want ErrLocked", err)
	}
	closeIt(t, j)
	if !slices.Equal(before, readFile(t, path)) {
		t.Error("the file was changed")
	}
	closeIt(t, open(t, path))
}

// TestReadOnlyOpens opens for reading what is not there, and what a crash has left without its mark.
func TestReadOnlyOpens(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	if _, err := tryOpen(path, bolt.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is one now: %v", err)
	}
	writeFile(t, path, flippedFiles(t)["unmarked"])
	got := readThrough(t, openWith(t, path, bolt.Options{ReadOnly: true}), []persist.ID{record("order-3").ID, record("large").ID})
	want := readThrough(t, openWith(t, path, bolt.Options{}), []persist.ID{record("order-3").ID, record("large").ID})
	if !slices.Equal(got, want) || len(got) < 21 {
		t.Errorf("of a crash it reads\n%q\nwant\n%q", got, want)
	}
}
