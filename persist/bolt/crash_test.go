package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// moment is the file and what it must hold, after something was acknowledged.
type moment struct {
	what string
	file []byte
	want []string
}

// story runs one commit after the other, and takes down the moment after each.
func story(t *testing.T) []moment {
	t.Helper()
	return storyWith(t, bolt.Options{})
}

func storyWith(t *testing.T, opts bolt.Options) []moment {
	t.Helper()
	path := newPath(t)
	j := openWith(t, path, opts)
	var moments []moment
	take := func(what string) {
		moments = append(moments, moment{what, readFile(t, path), mustContents(t, j)})
	}
	take("creation")
	var held []persist.Record
	for i := range 12 {
		r := record(fmt.Sprintf("order-%d", i))
		r.Generated = i%3 == 0
		held = append(held, begin(t, j, r))
		take("Begin of " + r.Key)
	}
	held = append(held, begin(t, j, sized("large", 150_000)))
	take("Begin with a large body")
	for i := range held {
		r := held[i]
		switch i % 4 {
		case 0:
			r.Attempts = i + 1
			var err error
			if held[i], err = j.Update(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			take("Update of " + r.Key)
		case 1:
			finish(t, j, r)
			flush(t, j)
			take("Finish of " + r.Key)
		case 2:
			if err := j.Forget(context.Background(), r); err != nil {
				t.Fatal(err)
			}
			take("Forget of " + r.Key)
		}
	}
	large := confirmed(held[len(held)-1])
	large.Answer.Body = bytes.Repeat([]byte("answer"), 20_000)
	if err := j.Finish(context.Background(), large); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	take("Finish with a large answer")
	if _, err := j.Sweep(context.Background(), persist.Limits{Prune: true, KeepAnswer: -1}); err != nil {
		t.Fatal(err)
	}
	take("Sweep")
	if _, err := j.Sweep(context.Background(), persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1}); err != nil {
		t.Fatal(err)
	}
	take("second Sweep")
	closeIt(t, j)
	return moments
}

// longStory is two commits to a journal whose trees have branches, and pages that
// were used before.
func longStory(t *testing.T) []moment {
	t.Helper()
	path := newPath(t)
	j := open(t, path)
	ctx := context.Background()
	begun := make([]persist.Record, 500)
	var wg sync.WaitGroup
	for i := range begun {
		wg.Go(func() {
			r, _, err := j.Begin(ctx, record(fmt.Sprintf("order-%03d", i)))
			if err == nil && i%3 != 0 {
				err = j.Finish(ctx, confirmed(r))
			}
			if err != nil {
				t.Error(err)
			}
			begun[i] = r
		})
	}
	wg.Wait()
	if _, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1, Max: 100}); err != nil {
		t.Fatal(err)
	}
	moments := []moment{{"500 Begins and a Sweep", readFile(t, path), mustContents(t, j)}}
	for _, i := range []int{0, 249, 498} {
		begun[i].Attempts = 7
		if _, err := j.Update(ctx, begun[i]); err != nil {
			t.Fatal(err)
		}
		moments = append(moments, moment{fmt.Sprintf("Update of record %d of 500", i), readFile(t, path), mustContents(t, j)})
	}
	if _, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1, Max: 60}); err != nil {
		t.Fatal(err)
	}
	moments = append(moments, moment{"Sweep of 60 of 500", readFile(t, path), mustContents(t, j)})
	closeIt(t, j)
	return moments
}

// crash is one state in which a crash may leave the file.
type crash struct {
	how  string
	file []byte
}

// crashes are the states between two moments: the pages that the commit wrote,
// in its order up to each of them, and each of them missing while all others
// are there, the meta page included. What is written after the sync, the mark,
// is in none of them.
func crashes(before, after []byte) []crash {
	base := append(slices.Clone(before), make([]byte, max(0, len(after)-len(before)))...)
	var data []int
	meta := -1
	for p := 0; p < len(after)/pageSize; p++ {
		was, is := base[p*pageSize:][:pageSize], after[p*pageSize:][:pageSize]
		switch {
		case p < 2 && !bytes.Equal(was[:80], is[:80]):
			meta = p
		case p >= 2 && !bytes.Equal(was, is):
			data = append(data, p)
		}
	}
	var all []crash
	state := func(how string, pages []int) {
		file := slices.Clone(base)
		for _, p := range pages {
			copy(file[p*pageSize:][:pageSize], after[p*pageSize:])
		}
		all = append(all, crash{how, file})
	}
	all = append(all, crash{"nothing was written", before})
	for k := range data {
		state(fmt.Sprintf("only %d of %d pages were written", k, len(data)), data[:k])
	}
	state("only the meta page was not written", data)
	state("only the meta page was written", []int{meta})
	for i, p := range data {
		rest := append(slices.Delete(slices.Clone(data), i, i+1), meta)
		state(fmt.Sprintf("page %d was not written", p), rest)
		state(fmt.Sprintf("page %d was written by half", p), rest)
		half := all[len(all)-1].file
		copy(half[p*pageSize:][:pageSize/2], after[p*pageSize:])
	}
	state("the meta page was written by half", data)
	torn := all[len(all)-1].file
	copy(torn[meta*pageSize:][:60], after[meta*pageSize:])
	state("everything was written, and not synced", append(slices.Clone(data), meta))
	return all
}

// TestCrash stops every commit of a story at every step of its writing, and
// checks that the journal then holds what it held before the commit, or after.
func TestCrash(t *testing.T) {
	t.Parallel()
	twoSyncs := storyWith(t, bolt.WithBboltVersion(bolt.Options{}, "another"))
	for name, moments := range map[string][]moment{"story": story(t), "long story": longStory(t), "two syncs": twoSyncs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCrashes(t, moments)
		})
	}
}

func testCrashes(t *testing.T, moments []moment) {
	for i := 1; i < len(moments); i += testrun.N(6, 1) {
		before, after := moments[i-1], moments[i]
		t.Run(after.what, func(t *testing.T) {
			t.Parallel()
			dir := testrun.Dir(t)
			lost := 0
			for n, c := range crashes(before.file, after.file) {
				path := filepath.Join(dir, fmt.Sprint(n))
				writeFile(t, path, c.file)
				got := survive(t, path, c.how)
				switch {
				case slices.Equal(got, before.want):
					lost++
				case !slices.Equal(got, after.want):
					t.Errorf("%s: got\n%q\nwant\n%q\nor\n%q", c.how, got, before.want, after.want)
				case c.how == "nothing was written":
					t.Errorf("%s, and yet it is there", c.how)
				}
			}
			if lost == 0 {
				t.Error("no crash lost the commit: this proves nothing")
			}
		})
	}
}

// survive opens what a crash has left, works with it, and returns what it held.
func survive(t *testing.T, path, how string) []string {
	t.Helper()
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		t.Errorf("%s: %v", how, err)
		return nil
	}
	held, err := contents(j)
	if err != nil {
		t.Errorf("%s: List: %v", how, err)
	}
	for i := range 3 {
		begin(t, j, sized(fmt.Sprintf("afterwards-%d", i), 50+i*40_000))
	}
	want := mustContents(t, j)
	closeIt(t, j)
	j = open(t, path)
	if got := mustContents(t, j); !slices.Equal(got, want) || !slices.Equal(got[:len(held)], held) {
		t.Errorf("%s: after more work and reopening got\n%q\nwant\n%q", how, got, want)
	}
	closeIt(t, j)
	return held
}

// TestOpenSyncs: a commit that is in the file, and of which nobody knows whether
// it is on the disk, is synced before anybody is told of it.
func TestOpenSyncs(t *testing.T) {
	t.Parallel()
	moments := story(t)
	path := newPath(t)
	for i, c := range crashes(moments[2].file, moments[3].file) {
		if c.how != "everything was written, and not synced" {
			continue
		}
		writeFile(t, path, c.file)
		_, err := tryOpen(path, bolt.Options{Sync: func(*os.File) error { return syscall.EIO }})
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("crash %d: Open when the file cannot be synced: %v", i, err)
		}
		synced := 0 // for a copy of the commit, for the commit, for its mark
		j := openWith(t, path, bolt.Options{Sync: func(f *os.File) error { synced++; return f.Sync() }})
		if got := mustContents(t, j); synced != 3 || !slices.Equal(got, moments[3].want) {
			t.Errorf("crash %d: Open synced %d times, and gave %q", i, synced, got)
		}
		closeIt(t, j)
		j = openWith(t, path, bolt.Options{Sync: func(*os.File) error { return syscall.EIO }})
		if got := mustContents(t, j); !slices.Equal(got, moments[3].want) {
			t.Errorf("crash %d: opened once more it gave %q", i, got)
		}
		return
	}
	t.Error("no crash is the one that this is about")
}
