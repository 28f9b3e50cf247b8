package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// assignCases returns the cases about Journal.Assign and Journal.Secret. why says what harm is done by a journal that fails the case. A durable case closes
// the journal and opens it again.
func assignCases() []testCase {
	return []testCase{
		{name: "assign/moves", run: assignMoves,
			why: "whoever assigns an operation to its customer must not lose what is known of it"},
		{name: "assign/frees", run: assignFrees,
			why: "a key without an account is free once its operation has one"},
		{name: "assign/refuses", run: assignRefuses,
			why: "an operation that moved on meanwhile, or that the account has already, must not be written over"},
		{name: "assign/due", run: assignDue,
			why: "an operation that was assigned is sent by whoever sends for its account, and by nobody else"},
		{name: "assign/once", run: assignOnce,
			why: "two operators must not give one operation to two customers"},
		{name: "assign/reopen", run: assignReopen, durable: true,
			why: "after a restart an operation must not be back without an account"},
		{name: "secret/same", run: secretSame,
			why: "digests under two secrets never agree, so that a customer would not know its own operations again"},
		{name: "secret/reopen", run: secretReopen, durable: true,
			why: "after a restart customers are told apart by the digests of before"},
	}
}

// assign gives a record to another account and requires the right result. It returns the record as the journal must have it.
func (k *check) assign(j persist.Journal, r persist.Record, account string) persist.Record {
	got, err := j.Assign(context.Background(), r, account)
	if err != nil {
		k.fatalf("Assign of %q to %q: %v", r.ID, account, err)
	}
	r.Account = account
	r.Revision++
	if d := diff(got, r); d != "" {
		k.errorf("Assign of %q: %s", r.ID, d)
	}
	return r
}

// assignable begins records of the unnamed account in most states, and of every size, and returns them as the journal has them. Two are swept: without their
// answers and requests.
func assignable(k *check, j persist.Journal) []persist.Record {
	large := record("", "large")
	large.Body = patterned(100_000, 5)
	large = k.begin(j, large)
	answered := record("", "answered")
	answered.Body = patterned(70_000, 6)
	answered = finished(k.begin(j, answered))
	answered.Answer.Body = patterned(90_000, 7)
	if err := j.Finish(context.Background(), answered); err != nil {
		k.fatalf("Finish: %v", err)
	}
	answered.Revision++
	swept := k.finish(j, k.begin(j, fullestChosen("", "swept")))
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done(), Max: 10}, 2)
	k.swept(j, answered, "Sweep")
	return []persist.Record{
		large, k.get(j, answered.ID), k.get(j, swept.ID),
		k.begin(j, record("", "new")), k.update(j, changed(k.begin(j, record("", "changed")))), k.begin(j, fullest("", "full")),
		k.finish(j, k.begin(j, record("", "finished"))), k.unreported(j, record("", "unreported")),
	}
}

// assignMoves is the case assign/moves. Assign moves a record with all its fields to the account; the old ID is
// free, and later changes work. An account is also found by the name of the account around it ("shop" for "shop|bob").
func assignMoves(k *check) {
	j := k.journal()
	var all []persist.Record
	for _, r := range assignable(k, j) {
		was := r.ID
		r = k.assign(j, r, "shop|bob")
		k.gone(j, was, "Assign")
		k.holds(j, r, "Assign")
		all = append(all, r)
	}
	k.lists(j, persist.Query{Account: "shop"}, all, "what was assigned, by the name of the account")
	k.lists(j, persist.Query{Account: "shop|bob"}, all, "what was assigned")
	k.lists(j, persist.Query{Account: ""}, nil, "the account from which all was assigned")
	for _, r := range all {
		if r.Generated {
			k.lists(j, persist.Query{Account: "shop|bob", Unresolved: r.Fingerprint}, []persist.Record{r}, "what is unresolved and was assigned")
		}
		if !r.State.Final() {
			k.finish(j, k.update(j, r))
		}
	}
	r := k.get(j, all[len(all)-1].ID)
	k.told(j, r)
}

// assignFrees is the case assign/frees. After Assign the old ID (the key without an account) is free for another operation, which gets a number of its own.
func assignFrees(k *check) {
	j := k.journal()
	assigned := k.assign(j, k.begin(j, record("", "freed")), "a")
	other := record("", "freed")
	other.Method = "PUT"
	other = k.begin(j, other)
	if other.Seq == assigned.Seq {
		k.errorf("a record that was begun in the place of an assigned one has its Seq %d", other.Seq)
	}
	k.holds(j, assigned, "its old ID was begun again")
	k.holds(j, other, "it was begun in the place of an assigned one")
	k.assign(j, assigned, "b")
	k.gone(j, assigned.ID, "it was assigned again")
}

// assignRefuses is the case assign/refuses. Assign refuses a missing record, another revision or fingerprint,
// and an account with a record of this key, ended or not.
func assignRefuses(k *check) {
	ctx, j := context.Background(), k.journal()
	refused := func(r persist.Record, account string, want error, why string) {
		_, err := j.Assign(ctx, r, account)
		k.want(err, want, "Assign %s", why)
	}
	first := k.begin(j, record("", "refused"))
	now := k.update(j, first)
	refused(first, "a", persist.ErrStale, "of a record that has changed since")
	refused(record("", "nobody"), "a", persist.ErrNotFound, "of an unknown record")
	another := now.Clone()
	another.Fingerprint[0] ^= 1
	refused(another, "a", persist.ErrInvalid, "with another fingerprint")
	theirs := record("a", "refused")
	theirs.Method = "PUT"
	theirs = k.begin(j, theirs)
	refused(now, "a", persist.ErrExists, "to an account that has the key")
	refused(now, "", persist.ErrExists, "to its own account")
	final := k.finish(j, theirs)
	refused(theirs, "b", persist.ErrStale, "of a record that has ended since")
	refused(now, "a", persist.ErrExists, "to an account that has the key of what has ended")
	k.holds(j, now, "it could not be assigned")
	k.holds(j, final, "another could not be assigned to its account")
}

// assignDue is the case assign/due. After Assign, the record is found by due times, claims and queries of the new account only.
func assignDue(k *check) {
	j := k.journal()
	r := record("", "due")
	r.NextAttempt = epoch().Add(time.Hour)
	r = k.assign(j, k.begin(j, r), "a")
	for account, want := range map[string][]persist.Record{"a": {r}, "": nil} {
		k.lists(j, persist.Query{Account: account, States: []persist.State{persist.StatePending}, DueBy: epoch().Add(time.Hour)}, want, "what is due of "+account)
		if _, knows := persist.As[persist.DueTimes](j); knows {
			if times := k.dueTimes(j, persist.Query{Account: account}); len(times) != len(want) || len(want) > 0 && !times[r.Origin].Equal(r.NextAttempt) {
				k.errorf("due times of %q: %v, want those of %d records", account, times, len(want))
			}
		}
	}
	c, claims := k.claimer(j)
	if !claims {
		return
	}
	if claimed, _ := k.claim(c, persist.Query{}, "w", time.Minute, 10); len(claimed) != 0 {
		k.errorf("%d records were claimed for the account that has none any more", len(claimed))
	}
	claimed, _ := k.claim(c, persist.Query{Account: "a"}, "w", time.Minute, 10)
	if len(claimed) != 1 || claimed[0].ID != r.ID {
		k.errorf("%d records were claimed for the account to which one was assigned", len(claimed))
	}
}

// assignOnce is the case assign/once. Of many Assigns of one record at once, exactly one succeeds. Each account is the aim of two calls.
func assignOnce(k *check) {
	j := k.journal()
	for i := range 10 {
		r := k.begin(j, record("", fmt.Sprint(i)))
		var wg sync.WaitGroup
		var took atomic.Int32
		for to := range 8 {
			wg.Go(func() {
				_, err := j.Assign(context.Background(), r, fmt.Sprintf("customer %d", to%4))
				switch {
				case err == nil:
					took.Add(1)
				case !errors.Is(err, persist.ErrNotFound) && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrExists):
					k.errorf("Assign beside others: %v", err)
				}
			})
		}
		wg.Wait()
		if found := k.list(j, persist.Query{AllAccounts: true, Key: r.Key}); took.Load() != 1 || len(found) != 1 {
			k.errorf("one record was assigned by %d of 8 calls at once, and there are %d", took.Load(), len(found))
		}
	}
}

// assignReopen is the case assign/reopen. Assigned records have their account after a restart.
func assignReopen(k *check) {
	j := k.journal()
	var all, was []persist.Record
	for _, r := range assignable(k, j) {
		was = append(was, r)
		all = append(all, k.assign(j, r, "shop"))
	}
	for range 2 {
		j = k.reopen(j)
		k.lists(j, persist.Query{AllAccounts: true}, all, "everything after Assign and reopening")
		for i, r := range all {
			k.gone(j, was[i].ID, "Assign and reopening")
			k.holds(j, r, "Assign and reopening")
		}
	}
}

// secret returns the journal's secret.
func (k *check) secret(j persist.Journal) []byte {
	secret, err := j.Secret(context.Background())
	if err != nil || len(secret) != persist.SecretSize || bytes.Equal(secret, make([]byte, persist.SecretSize)) {
		k.fatalf("Secret: %x, %v; want %d bytes", secret, err, persist.SecretSize)
	}
	return secret
}

// secretSame is the case secret/same. Secret returns one value to all callers, also to concurrent first ones, in memory of the caller's own.
func secretSame(k *check) {
	j := k.journal()
	first := k.secret(j)
	want := bytes.Clone(first)
	k.begin(j, record("a", "in between"))
	clear(first) // it is the caller's
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := j.Secret(context.Background()); err != nil || !bytes.Equal(got, want) {
				k.errorf("Secret: %x, %v, and before %x", got, err, want)
			}
		})
	}
	wg.Wait()
}

// secretReopen is the case secret/reopen. Secret returns the same value after a restart.
func secretReopen(k *check) {
	j := k.journal()
	want := k.secret(j)
	for range 2 {
		j = k.reopen(j)
		if got := k.secret(j); !bytes.Equal(got, want) {
			k.errorf("Secret after reopening: %x, and before %x", got, want)
		}
	}
}
