package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// TestUsedKeyAsInMemory: a used key in a file answers every call as the same key in memory does, where a record keeps all that an erase leaves: before and after the
// file was opened again, compacted, or opened for reading.
func TestUsedKeyAsInMemory(t *testing.T) {
	t.Parallel()
	for seed := range testrun.N(8, 60) {
		p := newPair(t, seed)
		p.calls(40)
		closeIt(t, p.file)
		p.file = openWith(t, p.path, bolt.Options{ReadOnly: true})
		for range 20 {
			p.reads()
		}
		closeIt(t, p.file)
		p.file = open(t, p.path)
		p.calls(40)
		closeIt(t, p.file)
		from := p.path
		p.path = newPath(t)
		copyUsed(t, from, p.path)
		p.file, p.copied = open(t, p.path), true
		for range 20 {
			p.reads()
		}
		closeIt(t, p.file) // else all of them are mapped at once, which 32 bits have no room for
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// pair is a journal in a file, and one in memory that has the same records.
type pair struct {
	t      *testing.T
	r      *rand.Rand
	path   string
	file   *bolt.Journal
	memory *memory.Journal
	ids    []persist.ID
	copied bool // the file has other numbers
}

// newPair makes used keys of every kind in both journals.
func newPair(t *testing.T, seed int) *pair {
	t.Helper()
	secret := [persist.SecretSize]byte{byte(seed), 7}
	p := &pair{t: t, r: rand.New(rand.NewPCG(uint64(seed), 3)), path: newPath(t), memory: memory.NewWithSecret(secret)}
	p.file = openWith(t, p.path, bolt.Reviewing(bolt.Options{Secret: secret[:]}))
	var begun []persist.Record
	for i := range 12 {
		rec := p.record(fmt.Sprint("key ", i))
		inFile := begin(t, p.file, rec)
		inMemory, created, err := p.memory.Begin(context.Background(), rec)
		if err != nil || !created || inFile.Seq != inMemory.Seq {
			t.Fatalf("Begin in memory: %t, %v", created, err)
		}
		begun, p.ids = append(begun, inFile), append(p.ids, rec.ID)
	}
	p.r.Shuffle(len(begun), func(i, k int) { begun[i], begun[k] = begun[k], begun[i] })
	for _, rec := range begun {
		rec = p.ended(rec)
		if err := errors.Join(p.file.Finish(context.Background(), rec), p.memory.Finish(context.Background(), rec)); err != nil {
			t.Fatal(err)
		}
	}
	p.sweep(persist.Limits{Now: time.Now().Add(1000 * time.Hour)})
	used := 0
	for _, rec := range p.all(p.file) {
		if len(rec.Key) == len("erased:")+28 {
			used++
		}
	}
	if used != len(p.ids) {
		t.Fatalf("%d used keys in the file, want %d", used, len(p.ids))
	}
	return p
}

// record returns a record with everything that tells one used key from another.
func (p *pair) record(key string) persist.Record {
	rec := record(key)
	rec.Account = []string{"", "shop", persist.Account("shop", [2]string{"", "tenant 1"})}[p.r.IntN(3)]
	switch p.r.IntN(4) {
	case 0:
		rec.WireKey = `"` + key + `"`
	case 1:
		rec.WireKey, rec.ServerToken = "", true
	}
	if p.r.IntN(2) == 0 {
		rec.Scopes = []persist.Scope{{Name: "Stripe-Account", Value: "acct_1"}, {Name: "X-Of"}}
	}
	rec.KeepAnswer, rec.KeepText, rec.KeepKey = -1, -1, time.Duration(p.r.IntN(2))*time.Duration(1+p.r.IntN(9))*1e5*time.Hour
	return rec
}

// ended returns a record that has ended in one of the ways whose effect is known.
func (p *pair) ended(rec persist.Record) persist.Record {
	rec = confirmed(rec)
	rec.Attempts, rec.Sends, rec.Finished = p.r.IntN(9), p.r.IntN(300), rec.Created.Add(time.Duration(p.r.Int64N(1e12)))
	if rec.ServerToken {
		rec.Token = "token"
	}
	switch p.r.IntN(3) {
	case 0:
		rec.Answer.Status = 402
	case 1:
		rec.State, rec.Effect, rec.Answer = persist.StateSettled, []persist.Effect{persist.EffectHappened, persist.EffectAbsent}[p.r.IntN(2)], nil
	}
	return rec
}

// calls makes calls in turn at both journals.
func (p *pair) calls(n int) {
	p.t.Helper()
	for range n {
		if p.reads(); p.r.IntN(3) == 0 {
			p.changes()
		}
	}
}

// id returns the ID of a used key or, seldom, one that was never begun.
func (p *pair) id() persist.ID {
	id := p.ids[p.r.IntN(len(p.ids))]
	if p.r.IntN(4) == 0 {
		id.Account = []string{"", "shop", "another"}[p.r.IntN(3)]
	}
	return id
}

// reads makes a call that reads at both journals, and compares the results.
func (p *pair) reads() {
	p.t.Helper()
	ctx, id := context.Background(), p.id()
	if p.r.IntN(2) == 0 {
		one, err := p.file.Get(ctx, id)
		other, want := p.memory.Get(ctx, id)
		p.same(fmt.Sprintf("Get of %q", id), []persist.Record{one}, []persist.Record{other}, err, want, true)
		if err == nil { // by the ID that it has now, too
			if again, err := p.file.Get(ctx, one.ID); err != nil || again.ID != one.ID || again.WireKey != one.WireKey && again.WireKey[0] != '"' {
				p.t.Errorf("Get of %q: %+v, %v", one.ID, again, err)
			}
		}
		return
	}
	q := persist.Query{Account: id.Account, AllAccounts: p.r.IntN(2) == 0, After: uint64(p.r.IntN(2) * p.r.IntN(12))}
	if p.r.IntN(2) == 0 {
		q.Key = id.Key
	}
	if p.r.IntN(2) == 0 {
		q.States = []persist.State{persist.State(p.r.IntN(6)), persist.StateSettled}
	}
	if p.copied {
		q.After = 0
	}
	listed := p.listed(p.file, q)
	p.same(fmt.Sprintf("List of %+v", q), listed, p.listed(p.memory, q), nil, nil, false)
	secret, _ := p.file.Secret(ctx)
	for _, rec := range listed {
		if q.Key != "" && rec.Key != persist.ErasedKey(secret, q.Key) || !q.AllAccounts && strings.HasPrefix(q.Erased(secret).Account, rec.Account) && rec.Account != q.Erased(secret).Account {
			p.t.Errorf("List of %+v has cut the names in it: %q", q, rec.ID)
		}
	}
}

// changes makes a call that may change something at both journals, and compares the results.
func (p *pair) changes() {
	p.t.Helper()
	ctx, id := context.Background(), p.id()
	inFile, missing := p.file.Get(ctx, id)
	inMemory, _ := p.memory.Get(ctx, id)
	var of [2][]persist.Record
	var errs [2]error
	call := p.r.IntN(9)
	for i, rec := range []persist.Record{inFile, inMemory} {
		j := []persist.Journal{p.file, p.memory}[i]
		got, err := persist.Record{}, missing
		switch {
		case call == 0 && missing == nil:
			var created bool
			got, created, err = j.Begin(ctx, recordOf(id))
			if created {
				err = errors.New("begun")
			}
		case call == 1:
			err = j.MarkReported(ctx, id)
		case missing != nil:
		case call == 2:
			rec.Note = "amended"
			got, err = j.Amend(ctx, rec)
		case call == 3:
			rec.Revision--
			got, err = j.Amend(ctx, rec)
		case call == 4:
			err = j.Finish(ctx, rec)
		case call == 5:
			err = j.Forget(ctx, rec)
		case call == 6:
			rec.State = persist.StatePending
			rec.Effect, rec.Status = "", 0
			got, err = j.Update(ctx, rec)
		case call == 7:
			got, _, err = j.Begin(ctx, recordOf(persist.ID{Account: "yet another", Key: id.Key}))
			if err == nil {
				_, err = j.Assign(ctx, got, id.Account)
				got.ID = persist.ID{}
				_ = j.Forget(ctx, func() persist.Record {
					rec, _ := j.Get(ctx, persist.ID{Account: "yet another", Key: id.Key})
					return rec
				}())
			}
		}
		of[i], errs[i] = []persist.Record{got}, err
	}
	if call == 8 {
		p.sweep(persist.Limits{Prune: true, KeepKey: 1e5 * time.Hour, KeepText: 1, Now: time.Now().Add(1e5*time.Hour + time.Hour)})
		p.sweep(persist.Limits{Now: time.Now().Add(time.Duration(p.r.IntN(3)) * 1e5 * time.Hour)})
		return
	}
	p.same(fmt.Sprintf("call %d of %q", call, id), of[0], of[1], errs[0], errs[1], call != 7)
}

func recordOf(id persist.ID) persist.Record {
	rec := record(id.Key)
	rec.Account = id.Account
	return rec
}

// sweep sweeps both journals.
func (p *pair) sweep(l persist.Limits) {
	p.t.Helper()
	ctx := context.Background()
	n, err := p.file.Sweep(ctx, l)
	want, wantErr := p.memory.Sweep(ctx, l)
	if n != want || err != nil || wantErr != nil {
		p.t.Errorf("Sweep by %+v: %d, %v; in memory %d, %v", l, n, err, want, wantErr)
	}
}

func (p *pair) all(j persist.Journal) []persist.Record {
	return p.listed(j, persist.Query{AllAccounts: true})
}

func (p *pair) listed(j persist.Journal, q persist.Query) (all []persist.Record) {
	p.t.Helper()
	for rec, err := range j.List(context.Background(), q) {
		if err != nil {
			p.t.Errorf("List of %+v: %v", q, err)
		}
		all = append(all, rec)
	}
	return all
}

// same compares the results of a call at both journals. If named is set, account and key were in the call, and the digests of them are whole.
func (p *pair) same(call string, got, want []persist.Record, err, wantErr error, named bool) {
	p.t.Helper()
	for _, kind := range []error{persist.ErrNotFound, persist.ErrStale, persist.ErrInvalid, persist.ErrExists} {
		if errors.Is(err, kind) != errors.Is(wantErr, kind) {
			p.t.Errorf("%s: %v, in memory %v", call, err, wantErr)
		}
	}
	if (err == nil) != (wantErr == nil) || len(got) != len(want) {
		p.t.Errorf("%s: %d records, %v; in memory %d, %v", call, len(got), err, len(want), wantErr)
		return
	}
	if p.copied { // the copy has new numbers and revisions
		for i := range got {
			got[i].Seq, got[i].Revision = want[i].Seq, want[i].Revision
		}
	}
	for i := range got {
		if left, whole := leftOf(got[i]), leftOf(want[i]); !reflect.DeepEqual(left, whole) || !sameNames(&got[i], &want[i], named) || want[i].Created.Sub(got[i].Created).Abs() > time.Second {
			p.t.Errorf("%s: %+v\nin memory %+v", call, got[i], want[i])
		}
	}
}

// leftOf returns what a used key has of a record, without its names.
func leftOf(r persist.Record) persist.Record {
	return persist.Record{Seq: r.Seq, Revision: r.Revision, State: r.State, Effect: r.Effect, Status: r.Status, Finished: r.Finished, KeepKey: r.KeepKey, Attempts: r.Attempts, Sends: r.Sends,
		Scopes: r.Scopes, ServerToken: r.ServerToken, Swept: r.Swept, Erased: r.Erased, Generated: r.Generated, SealedEnd: r.SealedEnd, Note: r.Note}
}

// sameNames reports whether two records have the same names. Without whole, the digests of the first may be cut short.
func sameNames(r, of *persist.Record, whole bool) bool {
	if whole || r.ID == of.ID {
		return r.ID == of.ID && r.WireKey == of.WireKey
	}
	parts, all := strings.Split(r.Account, "|"), strings.Split(of.Account, "|")
	return strings.HasPrefix(of.Key, r.Key) && slices.EqualFunc(parts, all, func(part, all string) bool { return strings.HasPrefix(all, part) && (part == "") == (all == "") })
}

// TestUsedKeySealed: a used key of a sealed journal in a file is proved by its seal in each call and listing,
// also after the file was opened again, and a changed one is told.
func TestUsedKeySealed(t *testing.T) {
	t.Parallel()
	path, ctx := newPath(t), context.Background()
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, r: rand.New(rand.NewPCG(5, 6))}
	file := open(t, path)
	j, err := s.Journal(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		rec := p.record(fmt.Sprint("key ", i))
		rec.KeepKey = 0
		rec, _, err := j.Begin(ctx, rec)
		if err == nil {
			err = j.Finish(ctx, p.ended(rec))
		}
		if err != nil {
			t.Fatal(err)
		}
		p.ids = append(p.ids, rec.ID)
	}
	if n, err := j.Sweep(ctx, persist.Limits{Now: time.Now().Add(1000 * time.Hour)}); n != len(p.ids) || err != nil {
		t.Fatalf("swept %d, error %v", n, err)
	}
	for range 2 {
		for _, id := range p.ids {
			if rec, err := j.Get(ctx, id); err != nil || !rec.Erased || rec.Revision == 0 {
				t.Errorf("Get of %q: %+v, %v", id, rec, err)
			}
		}
		listed := 0
		for rec, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
			if listed++; err != nil || !rec.Erased || rec.Origin != persist.Unkept {
				t.Errorf("listed: %+v, %v", rec, err)
			}
		}
		if listed != len(p.ids) {
			t.Errorf("%d are listed", listed)
		}
		closeIt(t, file)
		file = open(t, path)
		if j, err = s.Journal(ctx, file); err != nil {
			t.Fatal(err)
		}
	}
	other, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "b", Secret: bytes.Repeat([]byte("b"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range file.List(ctx, persist.Query{AllAccounts: true}) {
		if err != nil || len(rec.Key) != len("erased:")+64 {
			t.Fatalf("%+v, %v", rec, err)
		}
		if _, err := other.Unseal(rec); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("by another key: %v", err)
		}
		rec.Finished = rec.Finished.Add(time.Second)
		if _, err := s.Unseal(rec); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("a changed one: %v", err)
		}
	}
}
