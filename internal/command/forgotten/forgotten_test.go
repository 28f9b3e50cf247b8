package forgotten

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// The log takes two files of the bound and a line each, and has the latest.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	at, now := place.Place{Path: filepath.Join(t.TempDir(), "j.db")}, time.Now()
	path, err := pathOf(at)
	if err != nil {
		t.Fatal(err)
	}
	first, second := &log{path: path, most: 2000}, &log{path: path, most: 2000} // two processes
	const lines = 200
	for i := range lines {
		l := []*log{first, second}[i%2]
		if err := l.add(&persist.Record{ID: persist.ID{Key: fmt.Sprint("k", i)}, Created: now}, now); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path, path + older} {
		if info, err := os.Stat(name); err != nil || info.Size() > 2000+2*200 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	all, _, err := Read(at, now)
	if err != nil || len(all) < 10 || all[len(all)-1].Key != fmt.Sprint("k", lines-1) {
		t.Errorf("%d lines, %v, the last %+v", len(all), err, all[max(0, len(all)-1):])
	}
	for i := range all {
		if i > 0 && all[i].Forgotten.Before(all[i-1].Forgotten) {
			t.Error("not oldest first")
		}
	}
}

// What is older than KeptFor is not shown, and goes with the next line. A line that a crash cut off hides no other.
func TestLogIsSwept(t *testing.T) {
	t.Parallel()
	at, now := place.Place{Path: filepath.Join(t.TempDir(), "j.db")}, time.Now()
	path, _ := pathOf(at)
	keys := func() string {
		t.Helper()
		all, _, err := Read(at, now)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, o := range all {
			keys = append(keys, o.Key)
		}
		return strings.Join(keys, " ")
	}
	old := now.Add(-KeptFor - time.Hour)
	add := func(key string, at time.Time) {
		t.Helper()
		l := &log{path: path, most: FileBytesMax}
		defer l.close()
		if err := l.add(&persist.Record{ID: persist.ID{Key: key}}, at); err != nil {
			t.Fatal(err)
		}
	}
	add("old", old)
	add("new", now)
	if got := keys(); got != "new" {
		t.Errorf("%q, want what is new", got)
	}
	if err := os.WriteFile(path+older, []byte(`{"forgotten":"20`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keys(); got != "new" {
		t.Errorf("%q beside a line that was cut off", got)
	}
	for _, name := range []string{path, path + older} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	add("newer", now)
	if got := keys(); got != "newer" {
		t.Errorf("%q, want that old files are gone", got)
	}
	if _, err := os.Stat(path + older); err == nil {
		t.Error("the older half stands")
	}
}

// An error of the log is told, and the operation is forgotten all the same. What the journal did not forget is not kept.
func TestForgetGoesOn(t *testing.T) {
	t.Parallel()
	at := place.Place{Path: filepath.Join(t.TempDir(), "no", "j.db")}
	if err := os.WriteFile(filepath.Dir(at.Path), nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	var warned []error
	j := Keep(memory.New(), at, func(err error) { warned = append(warned, err) })
	rec := persist.Record{ID: persist.ID{Key: "k"}}
	if err := j.Forget(t.Context(), rec); !errors.Is(err, persist.ErrNotFound) || len(warned) > 0 {
		t.Errorf("%v, %v; want ErrNotFound and no line", err, warned)
	}
	j.(*keeping).Journal = forgets{j.(*keeping).Journal}
	if err := j.Forget(t.Context(), rec); err != nil || len(warned) != 1 || strings.Contains(warned[0].Error(), at.Path) {
		t.Errorf("%v, %v; want one error of the log", err, warned)
	}
}

// A server's journal still finishes late, and has its other abilities.
func TestKeepHidesNothing(t *testing.T) {
	t.Parallel()
	at := place.Place{Path: filepath.Join(t.TempDir(), "j.db")}
	late := Keep(&finishes{Journal: memory.New()}, at, nil)
	if l, is := late.(persist.LateFinisher); !is || l.FinishesLate() != late {
		t.Errorf("%T is no LateFinisher", late)
	}
	if _, is := Keep(memory.New(), at, nil).(persist.LateFinisher); is {
		t.Error("a journal in memory is a LateFinisher")
	}
	if _, is := persist.As[persist.Counter](late); !is {
		t.Error("it counts no more")
	}
}

// forgets forgets whatever it is told to.
type forgets struct{ persist.Journal }

// Forget is persist.Journal's.
func (forgets) Forget(context.Context, persist.Record) error { return nil }

// finishes is a persist.LateFinisher.
type finishes struct{ persist.Journal }

// Unwrap returns the journal itself.
func (f *finishes) Unwrap() persist.Journal { return f.Journal }

// FinishLate is persist.LateFinisher's.
func (f *finishes) FinishLate(ctx context.Context, rec persist.Record) error {
	return f.Finish(ctx, rec)
}

// FinishesLate is persist.LateFinisher's.
func (f *finishes) FinishesLate() persist.Journal { return f }

// TestRestored: what was forgotten before a restore has the time of its backup, the earliest of several, also in the older half and behind a line
// that was cut off. What is forgotten afterwards has none.
func TestRestored(t *testing.T) {
	t.Parallel()
	at, now := place.Place{Path: filepath.Join(t.TempDir(), "j.db")}, time.Now()
	path, _ := pathOf(at)
	note := func(taken, when time.Time, want bool) {
		t.Helper()
		if noted, err := Restored(at, taken, when); err != nil || noted != want {
			t.Errorf("noted %t, %v; want %t", noted, err, want)
		}
	}
	note(now, now, false)
	if isThere(path) {
		t.Error("a log was made for nothing")
	}
	ago := func(minutes time.Duration) time.Time { return now.Add(-minutes * time.Minute).UTC().Round(0) }
	add := func(key string, at time.Time) {
		t.Helper()
		l := &log{path: path, most: FileBytesMax}
		defer l.close()
		if err := l.add(&persist.Record{ID: persist.ID{Key: key}}, at); err != nil {
			t.Fatal(err)
		}
	}
	add("older half", ago(60))
	if err := os.Rename(path, path+older); err != nil {
		t.Fatal(err)
	}
	note(ago(50), ago(40), true)
	add("between", ago(30))
	cut, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = cut.WriteString(`{"forgotten":"20`)
		err = errors.Join(err, cut.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	note(ago(20), ago(10), true)
	add("after", ago(5))
	all, _, err := Read(at, now)
	got := map[string]time.Time{}
	for _, o := range all {
		got[o.Key] = o.Backup
	}
	want := map[string]time.Time{"older half": ago(50), "between": ago(20), "after": {}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestStop: what is taken back for the end of the process is logged if it was sent, and else not.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		at := place.Place{Path: filepath.Join(t.TempDir(), "j.db")}
		inner := persist.Journal(forgets{memory.New()})
		if late {
			inner = &finishes{Journal: inner}
		}
		j := Keep(inner, at, func(err error) { t.Error(err) })
		forget := func(key string, sends int, history ...persist.Attempt) {
			if err := j.Forget(t.Context(), persist.Record{ID: persist.ID{Key: key}, Sends: sends, History: history}); err != nil {
				t.Fatal(err)
			}
		}
		forget("before", 0)
		Stop(j)
		forget("unsent", 0, persist.Attempt{Error: "refused"})
		forget("sent", 0, persist.Attempt{Sent: true})
		forget("sent before", 1)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		all, _, err := Read(at, time.Now())
		var keys []string
		for i := range all {
			keys = append(keys, all[i].Key)
		}
		slices.Sort(keys)
		if want := []string{"before", "sent", "sent before"}; err != nil || !slices.Equal(keys, want) {
			t.Errorf("late %t: %q, %v; want %q", late, keys, err, want)
		}
	}
	Stop(memory.New()) // it has no log
}
