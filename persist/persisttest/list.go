package persisttest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

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

// callWithinList calls one of the other methods in the body of a List loop, at record r.
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

// listChanging changes records ahead of and behind a listing.
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

func querying() []testCase {
	return []testCase{
		{name: "query/accounts", run: queryAccounts,
			why: "a client that resumes another account's operations pays with the wrong credentials"},
		{name: "query/states", run: queryStates,
			why: "what is held must not be sent, what is pending must not be missed"},
		{name: "query/origin", run: queryOrigin,
			why: "a worker that asks for one API's operations must not get another's"},
		{name: "query/key", run: queryKey,
			why: "an operator who asks for a key must see it in every scope"},
		{name: "query/due", run: queryDue,
			why: "what is sent before its time ignores the server's Retry-After"},
		{name: "query/unresolved", run: queryUnresolved,
			why: "a loop around a call without a key must not pay twice"},
		{name: "query/any-unresolved", run: queryAnyUnresolved,
			why: "where the request cannot be read, anything unresolved may be what it repeats"},
		{name: "query/together", run: queryTogether,
			why: "conditions are joined by and"},
	}
}

func queryAccounts(k *check) {
	j := k.journal()
	by := map[string]persist.Record{}
	for _, account := range []string{"", "|S=1", "a", "a|S=1", "a|S=1|T=2", "ab", "ab|S=1", "a b", "b"} {
		by[account] = k.begin(j, record(account, "k"))
	}
	for account, want := range map[string][]string{
		"":      {"", "|S=1"},
		"a":     {"a", "a|S=1", "a|S=1|T=2"},
		"a|S=1": {"a|S=1", "a|S=1|T=2"},
		"ab":    {"ab", "ab|S=1"},
		"none":  nil,
	} {
		var records []persist.Record
		for _, a := range want {
			records = append(records, by[a])
		}
		k.lists(j, persist.Query{Account: account}, records, fmt.Sprintf("account %q", account))
	}
	if n := len(k.list(j, persist.Query{AllAccounts: true, Account: "ignored"})); n != len(by) {
		k.errorf("List of all accounts gave %d of %d records", n, len(by))
	}
}

// mixed begins records in most states, and returns them as they are.
func mixed(k *check, j persist.Journal) []persist.Record {
	var all []persist.Record
	for i, r := range numbered("a", 120) {
		if i%3 == 1 {
			r = record("a|S=1", r.Key)
		}
		r.Generated = i%2 == 0
		r.NextAttempt = epoch().Add(time.Duration(i%5) * time.Minute)
		r = k.begin(j, r)
		switch i % 6 {
		case 1:
			r = k.update(j, changed(r))
		case 2:
			f := finished(r)
			f.Unreported = f.Generated && i%4 == 0
			if err := j.Finish(context.Background(), f); err != nil {
				k.fatalf("Finish: %v", err)
			}
			f.Revision++
			r = f
		case 3:
			f := finished(r)
			f.State, f.Effect = persist.StateSettled, persist.EffectAbsent
			if err := j.Finish(context.Background(), f); err != nil {
				k.fatalf("Finish: %v", err)
			}
			f.Revision++
			r = f
		}
		all = append(all, r)
	}
	return all
}

// queries compares the results of queries with those of the contract's own Match.
func (k *check) queries(j persist.Journal, all []persist.Record, queries ...persist.Query) {
	some := 0
	for _, q := range queries {
		var want []persist.Record
		for _, r := range all {
			if q.Match(&r) {
				want = append(want, r)
			}
		}
		some += len(want)
		k.lists(j, q, want, fmt.Sprintf("%+v", q))
	}
	if some == 0 {
		k.errorf("these queries select nothing, and prove nothing")
	}
}

func queryStates(k *check) {
	j := k.journal()
	all := mixed(k, j)
	k.queries(j, all,
		persist.Query{Account: "a", States: []persist.State{persist.StatePending}},
		persist.Query{Account: "a", States: []persist.State{persist.StateHeld}},
		persist.Query{Account: "a", States: []persist.State{persist.StatePending, persist.StateHeld}},
		persist.Query{Account: "a", States: []persist.State{persist.StateConfirmed}},
		persist.Query{Account: "a", States: []persist.State{persist.StateSettled, persist.StateHeld}},
		persist.Query{Account: "a", States: []persist.State{persist.StateAbandoned}},
	)
}

func queryOrigin(k *check) {
	j := k.journal()
	all := mixed(k, j)
	const other = "https://other.example:443"
	for i := range 3 {
		r := record("a", fmt.Sprint("of another origin ", i))
		r.Origin = other
		all = append(all, k.begin(j, r))
	}
	k.queries(j, all,
		persist.Query{Account: "a", Origin: other},
		persist.Query{Account: "a", Origin: all[0].Origin},
		persist.Query{AllAccounts: true, Origin: other, States: []persist.State{persist.StatePending}},
		persist.Query{Account: "a", Origin: "https://none.example:443"},
	)
}

func queryKey(k *check) {
	j := k.journal()
	all := mixed(k, j)
	all = append(all, k.begin(j, record("b", all[0].Key)), k.begin(j, record("a|S=2", all[0].Key)))
	k.queries(j, all,
		persist.Query{Account: "a", Key: all[0].Key},
		persist.Query{Account: "b", Key: all[0].Key},
		persist.Query{AllAccounts: true, Key: all[0].Key},
		persist.Query{AllAccounts: true, Key: all[0].Key, After: all[0].Seq},
		persist.Query{Account: "a|S=2", Key: all[0].Key},
		persist.Query{Account: "a", Key: "no such key"},
	)
}

func queryDue(k *check) {
	j := k.journal()
	all := mixed(k, j)
	all = append(all, k.begin(j, record("a", "due at once")))
	for i := range 7 {
		k.queries(j, all, persist.Query{Account: "a", DueBy: epoch().Add(time.Duration(i-1) * time.Minute)})
	}
	k.queries(j, all, persist.Query{Account: "a", DueBy: epoch().Add(time.Minute - 1)})
}

// queryUnresolved asks for one fingerprint, queryAnyUnresolved for all.
func queryUnresolved(k *check) {
	unresolved(k, persist.Query{Unresolved: bytes.Repeat([]byte{1}, 32)})
}

func queryAnyUnresolved(k *check) { unresolved(k, persist.Query{AnyUnresolved: true}) }

func unresolved(k *check, q persist.Query) {
	ctx, j := context.Background(), k.journal()
	print1, print2 := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	begin := func(account, key string, generated bool, fingerprint []byte) persist.Record {
		r := record(account, key)
		r.Generated, r.Fingerprint = generated, fingerprint
		return k.begin(j, r)
	}
	one := begin("a", "1", true, print1)
	two := begin("a", "2", true, print1)
	begin("a", "chosen", false, print1)
	another := begin("a", "another request", true, print2)
	scoped := begin("a|S=1", "3", true, print1)
	foreign := begin("b", "4", true, print1)
	selects := func(want []persist.Record, when string) {
		q.Account, q.AllAccounts = "a", false
		if q.AnyUnresolved {
			want = append([]persist.Record{another}, want...)
			slices.SortFunc(want, func(a, b persist.Record) int { return cmp.Compare(a.Seq, b.Seq) })
		}
		k.lists(j, q, want, "what is unresolved "+when)
		q.AllAccounts = true
		k.lists(j, q, append(slices.Clone(want), foreign), "what is unresolved in all accounts "+when)
	}
	selects([]persist.Record{one, two, scoped}, "after Begin")
	one = k.update(j, changed(one))
	selects([]persist.Record{one, two, scoped}, "after Update")
	k.finish(j, two)
	selects([]persist.Record{one, scoped}, "after Finish")
	if err := j.Forget(ctx, one); err != nil {
		k.fatalf("Forget: %v", err)
	}
	selects([]persist.Record{scoped}, "after Forget")
	k.lists(j, persist.Query{Account: "a", Unresolved: bytes.Repeat([]byte{3}, 32)}, nil, "what is unresolved of another fingerprint")
	q.After = scoped.Seq
	q.AllAccounts = true
	k.lists(j, q, []persist.Record{foreign}, "what is unresolved and later")
}

func queryTogether(k *check) {
	j := k.journal()
	all := mixed(k, j)
	pending := []persist.State{persist.StatePending}
	k.queries(j, all,
		persist.Query{Account: "a", States: pending, DueBy: epoch().Add(2 * time.Minute), After: all[40].Seq},
		persist.Query{Account: "a|S=1", States: pending, DueBy: epoch().Add(2 * time.Minute)},
		persist.Query{Account: "a", Key: all[4].Key, States: pending},
		persist.Query{Account: "a", Key: all[4].Key, States: []persist.State{persist.StateMismatched}},
		persist.Query{AllAccounts: true, Unresolved: slices.Clone(all[4].Fingerprint), DueBy: epoch()},
		persist.Query{AllAccounts: true, Unresolved: all[4].Fingerprint, After: all[4].Seq},
		persist.Query{AllAccounts: true, Unresolved: all[4].Fingerprint, States: pending, Key: all[4].Key},
		persist.Query{Account: "a", AnyUnresolved: true, DueBy: epoch().Add(time.Minute), After: all[6].Seq},
		persist.Query{Account: "a", AnyUnresolved: true, States: pending, Unresolved: all[4].Fingerprint},
		persist.Query{AllAccounts: true, AnyUnresolved: true, States: []persist.State{persist.StateConfirmed}},
	)
}
