package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// eraseCases returns the cases about persist.Eraser. A journal that cannot erase passes them. why says what harm is done by a journal that fails the case. A
// durable case closes the journal and opens it again.
func eraseCases() []testCase {
	return []testCase{
		{name: "erase/ended", run: eraseEnded,
			why: "nothing of a person may be found in an erased record, and its key must stop every other operation"},
		{name: "erase/refuses", run: eraseRefuses,
			why: "a record that moved on, or whose end is owed to somebody, must not lose what is still needed"},
		{name: "erase/scoped", run: eraseScoped,
			why: "an erased record must stop its key in its own account, and must not stop it in another"},
		{name: "erase/again", run: eraseAgain,
			why: "a change by the ID that the record had must not write that ID again, or give it to another record"},
		{name: "erase/once", run: eraseOnce,
			why: "an erasure beside another change must not undo it, and must not be undone by it"},
		{name: "erase/reopen", run: eraseReopen, durable: true,
			why: "what was erased must not be there again in a later process, and the key must still be"},
	}
}

// erase erases a record and requires the right result. It returns the record as the journal must have it; unchanged if the journal cannot erase. Record.Erase
// takes the texts out of the record, and puts digests by the secret in the place of its names.
func (k *check) erase(j persist.Journal, r persist.Record) persist.Record {
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		return r
	}
	was := r
	r.Erase(k.secret(j))
	got, err := eraser.Erase(context.Background(), r, was.Fingerprint)
	if err != nil {
		k.fatalf("Erase of %q at revision %d: %v", r.ID, r.Revision, err)
	}
	k.nameless(was, got, "Erase")
	r.ID = got.ID
	r.Revision++
	if d := diff(got, r); d != "" {
		k.errorf("Erase of %q: %s", r.ID, d)
	}
	return r
}

// nameless requires that erased, the record was after an Erase, has none of its old names: account, key, key on the wire, and the keys
// of related operations. A name of one letter may by chance be part of another text, so it is only compared with the name in its own place. after is the act,
// for messages.
func (k *check) nameless(was, erased persist.Record, after string) {
	now := namesOf(&erased)
	for i, name := range namesOf(&was) {
		if name != "" && (now[i] == name || len(name) > 1 && strings.Contains(strings.Join(now, " "), name)) {
			k.errorf("%s of %q has left the name %q", after, was.ID, name)
		}
	}
}

// namesOf returns the texts of a record that name an operation, or whose it is.
func namesOf(r *persist.Record) []string {
	names := []string{r.Account, r.Key, r.WireKey, r.Replaces, r.ReplacedBy}
	for _, s := range r.Scopes {
		names = append(names, s.Value)
	}
	return names
}

// evidenced begins and ends records of every size, makes their ends heard by a caller, and returns them as the journal has them. Those that a person has not
// settled have been replaced by another operation, with a note of that.
func evidenced(k *check, j persist.Journal) []persist.Record {
	all := ended(k, j)
	for i := range all {
		if all[i].Unreported {
			k.reported(j, all[i].ID)
			all[i] = k.get(j, all[i].ID)
		}
		if all[i].State != persist.StateSettled {
			all[i] = k.amend(j, replaced(all[i]))
		}
	}
	return all
}

// reported marks a record as reported.
func (k *check) reported(j persist.Journal, id persist.ID) {
	if err := j.MarkReported(context.Background(), id); err != nil {
		k.fatalf("MarkReported of %q: %v", id, err)
	}
}

// eraseEnded is the case erase/ended. An erased record has nothing of a person, and is found by the key that it had. What is owed to OnResult cannot be erased,
// and is left out.
func eraseEnded(k *check) {
	j := k.journal()
	if _, can := persist.As[persist.Eraser](j); !can {
		return
	}
	for _, r := range evidenced(k, j) {
		if r.Owed() {
			continue
		}
		was := r
		r = k.erase(j, r)
		k.found(j, was.ID, r, "Erase")
		for name, q := range map[string]persist.Query{
			"its account and key": {Account: was.Account, Key: was.Key}, "its key": {AllAccounts: true, Key: was.Key},
			"its account": {Account: was.Account, After: r.Seq - 1}, "all": {AllAccounts: true, After: r.Seq - 1},
		} {
			if got := k.list(j, q); len(got) == 0 || diff(got[0], r) != "" {
				k.errorf("List of %s after Erase of %q: %q", name, was.ID, keys(got))
			}
		}
		k.lists(j, persist.Query{Account: "b", Key: was.Key}, nil, "another account, after Erase")
		existing, created, err := j.Begin(context.Background(), record(was.Account, was.Key))
		if d := diff(existing, r); created || err != nil || d != "" {
			k.errorf("Begin of %q after Erase: created %t, error %v, %s", was.ID, created, err, d)
		}
		if r.State != was.State || r.Effect != was.FinalEffect() || r.Status != was.FinalStatus() && was.Answer != nil || !r.Finished.Equal(was.Finished) {
			k.errorf("Erase of %q: %v %q %d, want %v %q %d", r.ID, r.State, r.Effect, r.Status, was.State, was.FinalEffect(), was.FinalStatus())
		}
		if left := k.get(j, was.ID); bytes.Equal(left.Fingerprint, was.Fingerprint) || left.Body != nil || left.Answer != nil || left.Header != nil || len(left.KeptFields) > 0 {
			k.errorf("Erase of %q has left %+v", r.ID, left)
		}
	}
}

// found requires Get by an ID to return the wanted record. If that is erased, it has another ID. after names, for the error, the call before it.
func (k *check) found(j persist.Journal, id persist.ID, want persist.Record, after string) {
	got, err := j.Get(context.Background(), id)
	if err != nil {
		k.errorf("Get of %q after %s: %v", id, after, err)
		return
	}
	if d := diff(got, want); d != "" {
		k.errorf("Get of %q after %s: %s", id, after, d)
	}
}

// eraseScoped erases records of one key in several accounts; the later ones are each inside the one before. Each must still be found under its own account
// and the accounts around it, and the same key in another account must stay free.
func eraseScoped(k *check) {
	j := k.journal()
	if _, can := persist.As[persist.Eraser](j); !can {
		return
	}
	accounts := []string{"", "shop", persist.Account("shop", [2]string{"", "tenant 1"}), persist.Account("shop", [2]string{"", "tenant 1"}, [2]string{"X-Of", "7"})}
	for i, account := range accounts {
		was := k.settle(j, k.begin(j, record(account, "scoped")))
		r := k.erase(j, was)
		k.found(j, was.ID, r, "Erase")
		if (r.Account == "") != (account == "") {
			k.errorf("Erase of account %q: %q", account, r.Account)
		}
		for n, outer := range accounts {
			selected := n <= i && (n > 0 || i == 0) // each holds those after it, but for the unnamed account, which holds none of these
			if got := k.list(j, persist.Query{Account: outer, Key: "scoped", After: r.Seq - 1}); (len(got) == 1) != selected {
				k.errorf("List of account %q after Erase in account %q: %q", outer, account, keys(got))
			}
		}
		if i+1 < len(accounts) {
			k.gone(j, persist.ID{Account: accounts[i+1], Key: "scoped"}, "Erase of its key in another account")
		}
	}
}

// eraseAgain checks that the ID of an erased record is not free for a new one, and that no change by that ID brings its names back: neither a change from a
// copy read before the Erase, nor an Assign of another record.
func eraseAgain(k *check) {
	j := k.journal()
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		return
	}
	was := k.settle(j, k.begin(j, record("a", "again")))
	r := k.erase(j, was)
	if _, err := j.Amend(context.Background(), was); !errors.Is(err, persist.ErrStale) {
		k.errorf("Amend of the record as it was before Erase: %v, want ErrStale", err)
	}
	if _, err := eraser.Erase(context.Background(), func() persist.Record { was := was; was.Erase(k.secret(j)); return was }(), was.Fingerprint); !errors.Is(err, persist.ErrStale) {
		k.errorf("Erase of the record as it was before Erase: %v, want ErrStale", err)
	}
	other := k.begin(j, record("b", "again"))
	if _, err := j.Assign(context.Background(), other, "a"); !errors.Is(err, persist.ErrExists) {
		k.errorf("Assign to the ID of an erased record: %v, want ErrExists", err)
	}
	if err := j.MarkReported(context.Background(), was.ID); err != nil {
		k.errorf("MarkReported of an erased record: %v", err)
	}
	k.found(j, was.ID, r, "calls with the ID that it had")
}

// eraseRefuses is the case erase/refuses. Erase refuses a record that has changed, is not final, or whose end is owed to somebody (unreported to its caller, or
// owed to OnResult), even if the given record denies that.
func eraseRefuses(k *check) {
	j := k.journal()
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		return
	}
	try := func(r persist.Record, change func(*persist.Record, *[]byte), want error, why string) {
		before, was := k.get(j, r.ID), r.Fingerprint
		r.Erase(k.secret(j))
		change(&r, &was)
		if _, err := eraser.Erase(context.Background(), r, was); !errors.Is(err, want) {
			k.errorf("Erase of %s: %v, want %v", why, err, want)
		}
		k.holds(j, before, "an Erase that was refused")
	}
	none := func(*persist.Record, *[]byte) {}
	open := k.begin(j, record("a", "pending"))
	fin := open
	fin.State, fin.Finished = persist.StateAbandoned, done()
	try(fin, none, persist.ErrStale, "a record that was pending when it was read")
	r := k.settle(j, k.begin(j, record("a", "settled")))
	try(r, func(r *persist.Record, _ *[]byte) { r.Revision-- }, persist.ErrStale, "an earlier revision")
	try(r, func(r *persist.Record, _ *[]byte) { r.Erased = false }, persist.ErrInvalid, "a record that is not erased")
	try(r, func(_ *persist.Record, was *[]byte) { *was = bytes.Repeat([]byte{7}, 32) }, persist.ErrInvalid, "another fingerprint")
	try(r, func(r *persist.Record, _ *[]byte) { r.Created = r.Created.Add(time.Second) }, persist.ErrInvalid, "another time")
	unreported := record("a", "unreported")
	unreported.Generated = true
	unreported = finished(k.begin(j, unreported))
	unreported.Unreported = true
	if err := j.Finish(context.Background(), unreported); err != nil {
		k.fatalf("Finish: %v", err)
	}
	try(k.get(j, unreported.ID), func(r *persist.Record, _ *[]byte) { r.Unreported = false }, persist.ErrInvalid, "a record that is unreported")
	owed := record("a", "owed")
	owed.Results = true
	owed = finished(k.begin(j, owed))
	owed.OwedFrom = done()
	if err := j.Finish(context.Background(), owed); err != nil {
		k.fatalf("Finish: %v", err)
	}
	try(k.get(j, owed.ID), func(r *persist.Record, _ *[]byte) { r.OwedFrom = time.Time{} }, persist.ErrInvalid, "a record whose end is owed")
}

// eraseOnce erases beside Amends and sweeps: of an Erase and an Amend at one revision exactly one succeeds, and the record is as that one left it. The sweeps
// must not matter.
func eraseOnce(k *check) {
	j := k.journal()
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		return
	}
	for i := range 20 {
		r := k.settle(j, k.begin(j, record("a", fmt.Sprint("once ", i))))
		erased, amended := r, r
		erased.Erase(k.secret(j))
		amended.ReplacedBy = "another"
		var all sync.WaitGroup
		var erasing, amending error
		all.Go(func() { _, erasing = eraser.Erase(context.Background(), erased, r.Fingerprint) })
		all.Go(func() { _, amending = j.Amend(context.Background(), amended) })
		all.Go(func() { _, _ = j.Sweep(context.Background(), persist.Limits{Now: done().Add(time.Hour)}) })
		all.Wait()
		now := k.get(j, r.ID)
		if (erasing == nil) == (amending == nil) || now.Erased != (erasing == nil) || (now.ReplacedBy != "") != (amending == nil) || now.Revision != r.Revision+1 {
			k.errorf("Erase beside Amend: %v and %v, and the record is erased %t, replaced by %q", erasing, amending, now.Erased, now.ReplacedBy)
		}
		for _, err := range []error{erasing, amending} {
			if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrInvalid) {
				k.errorf("Erase beside Amend: %v, want ErrStale", err)
			}
		}
	}
}

// eraseReopen is the case erase/reopen. Erased records are the same after a restart. A prune long afterwards removes all but those with
// Evidence (an event of the API that proves the effect) and either another operation in their place or another end than the event says.
func eraseReopen(k *check) {
	j := k.journal()
	var all, were []persist.Record
	for _, r := range evidenced(k, j) {
		if !r.Owed() {
			all, were = append(all, k.erase(j, r)), append(were, r)
		}
	}
	j = k.reopen(j)
	changed := 0
	for i, r := range all {
		k.found(j, were[i].ID, r, "Erase, and a restart")
		stays := r.Evidence != nil && (r.ReplacedBy != "" || r.FinalEffect() != persist.EffectHappened)
		if !stays || r.Generated { // a generated key that stays counts as chosen from then on
			changed++
		}
	}
	k.sweep(j, persist.Limits{Prune: true, KeepKey: -1, KeepAnswer: -1, Now: done().Add(1000 * 24 * time.Hour)}, changed)
}
