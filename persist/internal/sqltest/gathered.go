package sqltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// gathered is the number of calls at once: many more than statements run at once, so
// most calls share one with others.
const gathered = 80

// atOnce makes n calls at the same time, and returns their errors.
func atOnce(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var running sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		running.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	running.Wait()
	return errs
}

// Gathered makes many calls at once. They share statements, and each must get the
// same result as alone.
func Gathered(t *testing.T, e Engine) {
	j := e.Open(t, e.Address, 30*time.Second)
	records := gatheredBegins(t, j)
	gatheredGets(t, j, records)
	gatheredChanges(t, e, j, records)
}

// gatheredGets reads records at the same time, so that the calls share a statement: each record once, the first one many times, and some that do not
// exist. It overwrites each body read: if two callers shared one, the other would find it changed.
func gatheredGets(t *testing.T, j persist.Journal, records []persist.Record) {
	errs := atOnce(3*len(records), func(i int) error {
		at := i % len(records)
		want := records[at]
		switch i / len(records) {
		case 1:
			want = records[0]
		case 2:
			_, err := j.Get(t.Context(), persist.ID{Account: "a", Key: fmt.Sprintf("absent %d", at)})
			if !errors.Is(err, persist.ErrNotFound) {
				return fmt.Errorf("a record that is not there: %w", err)
			}
			return nil
		}
		now, err := j.Get(t.Context(), want.ID)
		if err == nil && (now.Key != want.Key || now.Seq != want.Seq || string(now.Body) != string(want.Body)) {
			err = fmt.Errorf("it is %q with Seq %d", now.Key, now.Seq)
		}
		clear(now.Body) // it is the caller's own
		return err
	})
	for i, err := range errs {
		if err != nil {
			t.Errorf("Get %d of %d at once: %v", i, len(errs), err)
		}
	}
}

// gatheredBegins calls Begin for many records at once, so that the calls share a statement. Several have the same key: only one of these may be
// created. It returns one record for each key.
func gatheredBegins(t *testing.T, j persist.Journal) []persist.Record {
	const alike = 5 // the first ones have one key
	records, made := make([]persist.Record, gathered), make([]bool, gathered)
	errs := atOnce(gathered, func(i int) (err error) {
		records[i], made[i], err = j.Begin(t.Context(), Record("a", fmt.Sprintf("key %d", max(i, alike-1))))
		return err
	})
	created, seqs := 0, map[uint64]string{}
	for i, rec := range records {
		if errs[i] != nil {
			t.Fatalf("Begin %d: %v", i, errs[i])
		}
		if made[i] {
			created++
		}
		if other, known := seqs[rec.Seq]; rec.Seq == 0 || rec.Revision != 1 || known && other != rec.Key {
			t.Errorf("%q has Seq %d, as %q, and revision %d", rec.Key, rec.Seq, other, rec.Revision)
		}
		seqs[rec.Seq] = rec.Key
		if now, err := j.Get(t.Context(), rec.ID); err != nil || now.Seq != rec.Seq || string(now.Body) != string(rec.Body) {
			t.Errorf("%q: Get gives Seq %d for %d, error %v", rec.Key, now.Seq, rec.Seq, err)
		}
	}
	if want := gathered - alike + 1; created != want {
		t.Errorf("%d of %d keys were created", created, want)
	}
	return records[alike-1:]
}

// The special records of gatheredChanges, by their places. All others are just finished.
const (
	placeStale  = iota // at another revision
	placeAbsent        // under another key
	placeOther         // with another fingerprint
	placeTwice         // finished twice
	placeLocked        // locked by another transaction, until all others have ended
)

// gatheredChanges finishes records at the same time, so that the calls share a statement. Some (at placeStale, placeAbsent and placeOther) have another
// revision, key or fingerprint than the stored record, and one is locked by another transaction until the others have ended: none of these may harm the rest.
func gatheredChanges(t *testing.T, e Engine, j persist.Journal, records []persist.Record) {
	changed := make([]persist.Record, len(records))
	for i, rec := range records {
		changed[i] = Finished(rec)
	}
	changed[placeStale].Revision = 7
	changed[placeAbsent].Key = "no such key"
	changed[placeOther].Fingerprint = Record("b", "other").Fingerprint
	errs, again := finishAtOnce(t, e, j, changed)
	if first := errs[placeTwice]; errors.Is(first, persist.ErrStale) == errors.Is(again, persist.ErrStale) || first != nil && again != nil {
		t.Errorf("of two Finishes of one record, one must be stale: %v, %v", first, again)
	}
	errs[placeTwice] = nil
	for i, want := range map[int]error{placeStale: persist.ErrStale, placeAbsent: persist.ErrNotFound, placeOther: persist.ErrInvalid} {
		if !errors.Is(errs[i], want) {
			t.Errorf("Finish that must be refused with %q: %v", want, errs[i])
		}
	}
	for i, rec := range records {
		now, err := j.Get(t.Context(), rec.ID)
		if err == nil && !asItSaid(i, now, errs[i]) {
			err = fmt.Errorf("its Finish said: %v", errs[i])
		}
		if err != nil {
			t.Errorf("%q at place %d is %v at revision %d: %v", rec.Key, i, now.State, now.Revision, err)
		}
	}
}

// finishAtOnce finishes all records at once, the one at placeTwice twice, and returns their errors; again is that of the
// second Finish. placeTwice and placeLocked are indexes into changed. The row of the one at placeLocked is locked until all others have ended: these are as
// many as the records, since one is finished twice.
func finishAtOnce(t *testing.T, e Engine, j persist.Journal, changed []persist.Record) (errs []error, again error) {
	tx := e.begin(t, 0)
	row := tx.QueryRow("SELECT revision FROM "+e.Records+" WHERE seq = "+fmt.Sprint(changed[placeLocked].Seq)+" FOR UPDATE", nil...)
	if err := row.Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	others.Add(len(changed)) // all but the locked one, and one of them twice
	go func() {
		others.Wait()
		_ = tx.Rollback()
	}()
	errs = atOnce(len(changed)+1, func(i int) error {
		if i != placeLocked {
			defer others.Done()
		}
		if i == len(changed) {
			i = placeTwice
		}
		return j.Finish(t.Context(), changed[i])
	})
	return errs[:len(changed)], errs[len(changed)]
}

// asItSaid reports whether a record agrees with the result of its Finish: ended after nil, unchanged after an error. The Finishes of the first three
// places must have been refused.
func asItSaid(at int, now persist.Record, said error) bool {
	done := now.State == persist.StateConfirmed && now.Revision == 2 && string(now.Answer.Body) == "answer"
	refused := now.State == persist.StatePending && now.Revision == 1
	switch {
	case at <= placeOther:
		return refused
	case at == placeLocked: // refused if the others took longer than its wait may
		return done == (said == nil)
	}
	return done && said == nil
}

// GatheredOutages breaks the connection during statements that several calls share, after 0 and after 3 exchanges. Each call must take effect once, and say
// so. engine makes a new database.
func GatheredOutages(t *testing.T, engine func(t *testing.T) Engine) {
	for name, f := range Faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := engine(t)
			proxy := NewProxy(t, e.Address)
			direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), 15*time.Second)
			for _, at := range []int{0, 3} {
				account := fmt.Sprintf("%s %d", name, at)
				warm := begun(j, Record(account+" warm", "k"))
				atOnce(gathered, func(int) error { _, err := j.Get(t.Context(), warm.ID); return err }) // all connections are there
				proxy.Arm(f, at)
				errs := atOnce(gathered, func(i int) error { return lifeOf(j, Record(account, fmt.Sprint(i))) })
				if !proxy.Struck() {
					t.Errorf("at exchange %d: the fault has not struck", at)
				}
				if f == LateAfterCut {
					proxy.Idle()
				}
				for i, err := range errs {
					now, getErr := direct.Get(t.Context(), persist.ID{Account: account, Key: fmt.Sprint(i)})
					if err != nil || getErr != nil || now.Revision != 3 || now.State != persist.StateConfirmed {
						t.Errorf("at exchange %d, record %d is %v at revision %d (%v); its calls said: %v", at, i, now.State, now.Revision, getErr, err)
					}
				}
			}
		})
	}
}

// lifeOf begins, changes and finishes a record. If a call's error says "nothing was written" (it is not ErrUncertain), as after a fault at a new connection,
// the call is made once more.
func lifeOf(j persist.Journal, rec persist.Record) error {
	ctx := context.Background()
	twice := func(what string, call func() error) error {
		err := call()
		if err != nil && !errors.Is(err, persist.ErrUncertain) {
			err = call()
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		return err
	}
	err := twice("begin", func() error {
		got, created, err := j.Begin(ctx, rec)
		if err == nil && !created {
			err = errors.New("it was there already")
		}
		rec.Seq, rec.Revision = got.Seq, got.Revision
		return err
	})
	if err != nil {
		return err
	}
	rec.Attempts = 1
	err = twice("update", func() error {
		got, err := j.Update(ctx, rec)
		if err == nil {
			rec = got
		}
		return err
	})
	if err != nil {
		return err
	}
	return twice("finish", func() error { return j.Finish(ctx, Finished(rec)) })
}
