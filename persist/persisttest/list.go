package persisttest

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// listCases returns the cases about Journal.List. why says what harm is done by a journal that fails the case.
func listCases() []testCase {
	return []testCase{
		{name: "list/order", run: listOrder,
			why: "Resume goes through what is pending once, oldest first"},
		{name: "list/resumes", run: listResumes,
			why: "a listing that was interrupted must not lose or repeat records"},
		{name: "list/body-calls", run: listBodyCalls,
			why: "Resume finishes records while it lists them"},
		{name: "list/break", run: listBreak,
			why: "a listing that is left early must hold nothing"},
		{name: "list/cancelled", run: listCancelled,
			why: "a listing of a million records must end when nobody wants it any more"},
		{name: "list/changing", run: listChanging,
			why: "a record that is seen twice would be sent twice"},
	}
}

// listOrder is the case list/order. List returns all records in the order of Seq, also after changes.
func listOrder(k *check) {
	j := k.journal()
	want := make([]persist.Record, 0, 400)
	for i, r := range numbered("a", 400) {
		r = k.begin(j, r)
		if i%3 == 0 {
			r = k.update(j, changed(r))
		}
		want = append(want, r)
	}
	for i := 0; i < len(want); i += 5 {
		want[i] = k.finish(j, want[i])
	}
	k.lists(j, persist.Query{Account: "a"}, want, "everything")
}

// listResumes is the case list/resumes. A listing that was left can be continued with After, without loss or
// repetition.
func listResumes(k *check) {
	j := k.journal()
	var all []persist.Record
	for _, r := range numbered("a", 150) {
		all = append(all, k.begin(j, r))
	}
	for i := range all {
		if i%40 == 0 || i > 140 {
			k.lists(j, persist.Query{Account: "a", After: all[i].Seq}, all[i+1:], fmt.Sprintf("what is after record %d", i))
		}
	}
	k.lists(j, persist.Query{Account: "a", After: ^uint64(0)}, nil, "what is after the last Seq of all")
}

// listBodyCalls is the case list/body-calls. The body of a loop over List may call the journal. Records begun there may be listed or not.
func listBodyCalls(k *check) {
	ctx, j := context.Background(), k.journal()
	for _, r := range numbered("a", 200) {
		k.begin(j, r)
	}
	seen := map[string]int{}
	for r, err := range j.List(ctx, persist.Query{Account: "a"}) {
		if err != nil {
			k.fatalf("List: %v", err)
		}
		if seen[r.Key]++; seen[r.Key] > 1 {
			k.fatalf("List gave %q twice", r.Key)
		}
		if len(seen) > 400 {
			k.fatalf("List does not end while its loop begins records")
		}
		k.begin(j, record("a", "begun for "+r.Key))
		callWithinList(k, j, r, len(seen)%4)
	}
	for _, r := range numbered("a", 200) {
		if seen[r.Key] != 1 {
			k.errorf("List gave %q %d times, want once", r.Key, seen[r.Key])
		}
	}
}

// callWithinList calls one of the other methods in the body of a List loop, at record r: which (0 to 3) chooses it.
func callWithinList(k *check, j persist.Journal, r persist.Record, which int) {
	ctx := context.Background()
	switch which {
	case 0:
		k.finish(j, r)
	case 1:
		k.update(j, changed(r))
	case 2:
		if err := j.Forget(ctx, r); err != nil {
			k.fatalf("Forget within List: %v", err)
		}
	case 3:
		k.holds(j, r, "List gave it")
		for inner, err := range j.List(ctx, persist.Query{Account: "a", Key: r.Key}) {
			if err != nil || inner.Seq != r.Seq {
				k.fatalf("List within List: %q, %v", inner.Key, err)
			}
		}
	}
}

// listBreak is the case list/break. A loop over List may be left early; the journal works afterwards, and can be closed.
func listBreak(k *check) {
	ctx, j := context.Background(), k.journal()
	for _, r := range numbered("a", 50) {
		k.begin(j, r)
	}
	for i := range 20 {
		n := 0
		for _, err := range j.List(ctx, persist.Query{Account: "a"}) {
			if err != nil {
				k.fatalf("List: %v", err)
			}
			if n++; n > i {
				break
			}
		}
		k.begin(j, record("b", fmt.Sprint(i)))
	}
	if err := j.Close(); err != nil {
		k.errorf("Close after listings that were left early: %v", err)
	}
}

// listCancelled is the case list/cancelled. After its context has ended, List ends with the context's error
// within 350 of 400 records: it may yield a page that it has read already.
func listCancelled(k *check) {
	j := k.journal()
	for _, r := range numbered("a", 400) {
		k.begin(j, r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	var last error
	for _, err := range j.List(ctx, persist.Query{Account: "a"}) {
		if last != nil {
			k.fatalf("List went on after its error %v", last)
		}
		last = err
		n++
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n > 350 {
		k.errorf("after its context was cancelled, List of 400 gave %d more and ended with error %v", n-1, last)
	}
}

// listChanging requires that a listing yields each record once, while records ahead of it and behind it are changed. It may yield a record as it was or as it
// is, at its revision.
func listChanging(k *check) {
	ctx, j := context.Background(), k.journal()
	var all []persist.Record
	for _, r := range numbered("a", 400) {
		all = append(all, k.begin(j, r))
	}
	seen, i := map[string]bool{}, 0
	for r, err := range j.List(ctx, persist.Query{Account: "a"}) {
		if err != nil {
			k.fatalf("List: %v", err)
		}
		if seen[r.Key] {
			k.fatalf("List gave %q twice", r.Key)
		}
		seen[r.Key] = true
		before, after := all[len(seen)-1], finished(all[len(seen)-1])
		before.Revision, after.Revision = r.Revision, r.Revision
		if diff(r, before) != "" && diff(r, after) != "" {
			k.errorf("List gave %q neither as it was nor as it is: %s", r.Key, diff(r, after))
		}
		if i < len(all) {
			k.finish(j, all[len(all)-1-i])
			i += 7
		}
	}
	if len(seen) != len(all) {
		k.errorf("List gave %d of %d records", len(seen), len(all))
	}
}
