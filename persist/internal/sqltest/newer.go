package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Newer tests a journal with two records. The function newer makes the one of this key a record of a later version (format 2). The journal must not change or
// claim that one, and must serve the other as before.
func Newer(t *testing.T, j interface {
	persist.Journal
	persist.Claimer
	persist.DueTimes
}, newer func(key string)) {
	t.Helper()
	for _, key := range []string{"later", "ours"} {
		rec := Record("a", key)
		if key == "later" {
			rec.Region = "it needs something else"
		}
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	newer("later")
	all := persist.Query{Account: "a"}
	read := 0
	for rec, err := range j.List(t.Context(), all) {
		var unread *persist.UnreadError
		switch {
		case err == nil && rec.Key == "ours":
			read++
		case errors.Is(err, persist.ErrNewer) && !errors.Is(err, persist.ErrCorrupt) && errors.As(err, &unread):
			if clear := unread.Record; clear.Key != "later" || clear.State != persist.StatePending || clear.Created.IsZero() || clear.Origin == "" || persist.ParseNeeds(unread.Needs).Format != 2 {
				t.Errorf("what stands in clear: %+v, needs %q", clear, unread.Needs)
			}
			read++
		default:
			t.Errorf("List: %q, %v", rec.Key, err)
		}
	}
	if _, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "later"}); !errors.Is(err, persist.ErrNewer) || read != 2 {
		t.Errorf("Get: %v; %d listed", err, read)
	}
	times, err := j.DueTimes(t.Context(), all)
	formats := map[int]int{}
	for _, due := range times {
		formats[persist.ParseNeeds(due.Needs).Format]++
	}
	if err != nil || len(times) != 2 || formats[persist.Format] != 1 || formats[2] != 1 {
		t.Errorf("DueTimes: %v, %v", times, err)
	}
	if got, _, err := j.Claim(t.Context(), all, "w", time.Minute, 9); err != nil || len(got) != 1 || got[0].Key != "ours" {
		t.Errorf("Claim: %d, %v", len(got), err)
	}
	if _, err := j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1e6 * time.Hour)}); err != nil {
		t.Error(err)
	}
	if _, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "later"}); !errors.Is(err, persist.ErrNewer) {
		t.Errorf("after a claim and a sweep: %v", err)
	}
}
