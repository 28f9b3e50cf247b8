package persisttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// querying returns the cases about the conditions of a persist.Query. why says what harm is done by a journal that fails the case.
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

// queryAccounts is the case query/accounts. A query with an account selects its records and those of its scopes
// (the accounts inside it, with a '|' behind its name) only.
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

// mixed begins 120 records in most states, generated keys and chosen ones, due at different times, some of them in a scoped account ("a|S=1", inside "a"), and
// returns them as the journal has them.
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

// queries requires that each query lists those of all, the records of the journal, that persist.Query.Match selects. What Match selects is right by definition
// here. At least one record must be selected by some query: else nothing is proved.
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

// queryStates is the case query/states. A query with states selects records in these states only.
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

// queryOrigin is the case query/origin. A query with an origin selects the records of this origin only.
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

// queryKey is the case query/key. A query with a key selects its records in all scopes: the accounts inside that of the query.
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

// queryDue is the case query/due. A query with DueBy selects the records due by that time, and no others.
func queryDue(k *check) {
	j := k.journal()
	all := mixed(k, j)
	all = append(all, k.begin(j, record("a", "due at once")))
	for i := range 7 {
		k.queries(j, all, persist.Query{Account: "a", DueBy: epoch().Add(time.Duration(i-1) * time.Minute)})
	}
	k.queries(j, all, persist.Query{Account: "a", DueBy: epoch().Add(time.Minute - 1)})
}

// queryUnresolved is the case query/unresolved: a query for one fingerprint selects its operations with a generated key that are unfinished, or whose
// end no caller is known to have.
func queryUnresolved(k *check) {
	unresolved(k, persist.Query{Unresolved: bytes.Repeat([]byte{1}, 32)})
}

// queryAnyUnresolved is the case query/any-unresolved: a query with AnyUnresolved. It selects operations with a generated key which are unfinished,
// or of which the end is not known to be told to a caller.
func queryAnyUnresolved(k *check) { unresolved(k, persist.Query{AnyUnresolved: true}) }

// unresolved is the common part of the cases query/unresolved and query/any-unresolved. q selects generated keys without an end, of one fingerprint (print1)
// or, with AnyUnresolved, of all. "chosen" has no generated key and is never selected.
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

// queryTogether is the case query/together. A record must meet all conditions of a query, also where two of them exclude each other.
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
