package seal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/oncehttp/oncehttp/persist"
)

// journal seals each write to the embedded journal, and unseals each read. Sweep, Flush and Close are those of the
// embedded journal. It has no Unwrap, since the records below are sealed.
type journal struct {
	persist.Journal
	s       *Sealer
	company *company
	holding *holding
}

// times makes a journal over a persist.DueTimes one, too: all data of due times is in clear, or hidden in a way opened
// by s.
type times struct {
	known persist.DueTimes
	s     *Sealer
}

// DueTimes implements [persist.DueTimes]: it returns the first due time of the pending records of each origin with the same needs (the requirements on a
// client). The needs of a sealed record are encrypted, differently by each key: the journal below is asked for all forms of them, and the needs in its results
// are decrypted. Without q.Needs all are asked for.
func (t times) DueTimes(ctx context.Context, q persist.Query) (all []persist.DueTime, err error) {
	below := []string{""}
	if q.Needs != "" {
		below = t.s.needsBelow(q.Needs)
	}
	for _, q.Needs = range below {
		some, err := t.known.DueTimes(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for i := range all {
		if all[i].Needs != "" {
			all[i].Needs = t.s.needsAbove(all[i].Needs)
		}
	}
	return all, nil
}

// The journals over a persist.DueTimes, with leases and without.
type (
	claimingTimes struct {
		claiming
		times
	}
	knowingTimes struct {
		journal
		times
	}
)

// waking is a journal over a persist.Notifier, too.
type waking struct {
	claimingTimes
	persist.Notifier
}

// checkMax is the number of unfinished records checked by Journal.
const checkMax = 100

// Journal returns j with all writes through it sealed. The result is a persist.Claimer if j is one, a persist.DueTimes
// if j is one, and a persist.Notifier if j is all three. If j is a persist.DueTimes and a persist.Results, so is the
// result; a persist.Claimer must be a persist.SharedResults for that. Such a result is a persist.Counter if j is one.
// The result is a persist.TxBeginner, for use over a journal that is one.
//
// First Journal checks the oldest record and some of the unfinished ones.
// From its first sealed record on, a journal is one of sealed records: others begin nothing there in clear, and the tables of persist/postgres
// and persist/mysql refuse such a row.
//
// Errors are persist.ErrInvalid for a nil journal, also one in the interface, and for a Sealer not made by New. It is
// persist.ErrSealed if the journal's fact tells another way of sealing, if the oldest record was begun under a key
// missing here, or if a record is not sealed. Errors of j.List and j.Fact are returned, except persist.ErrDenied: a
// role without a right on the facts of the journal reads, and begins nothing. After an error the caller closes j; else
// closing the result closes it.
func (s *Sealer) Journal(ctx context.Context, j persist.Journal) (persist.Journal, error) {
	if err := s.made(); err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(j); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("persist/seal: %w: the journal is a nil %T; open it first", persist.ErrInvalid, j)
	}
	unfinished := []persist.State{persist.StatePending, persist.StateHeld}
	err := s.check(j.List(ctx, persist.Query{AllAccounts: true}), 1, true)
	if err == nil {
		err = s.check(j.List(ctx, persist.Query{AllAccounts: true, States: unfinished}), checkMax, false)
	}
	if err != nil {
		return nil, fmt.Errorf("persist/seal: %w", err)
	}
	standing, err := j.Fact(ctx, persist.FactSeal, nil, nil)
	switch {
	case errors.Is(err, persist.ErrDenied): // such a role can begin nothing, and the oldest record shows a wrong HashKey
		err = nil
	case err == nil:
		err = s.checkFact(standing)
	}
	var together *company
	if err == nil {
		together, err = s.join(j)
	}
	if err != nil {
		return nil, fmt.Errorf("persist/seal: %w", err)
	}
	sealed := journal{Journal: j, s: s, company: together, holding: &holding{}}
	claimer, claims := persist.As[persist.Claimer](j)
	due, knows := persist.As[persist.DueTimes](j)
	notifier, wakes := persist.As[persist.Notifier](j)
	if owing := s.owing(j, sealed); owing != nil { // j finds owed results
		return owing, nil
	}
	switch {
	case claims && knows && wakes:
		return &waking{claimingTimes{claiming{sealed, claimer}, times{due, s}}, notifier}, nil
	case claims && knows:
		return &claimingTimes{claiming{sealed, claimer}, times{due, s}}, nil
	case knows:
		return &knowingTimes{sealed, times{due, s}}, nil
	case claims:
		return &claiming{sealed, claimer}, nil
	}
	return &sealed, nil
}

// check unseals the first records of a listing, most of them at most, to find out early if the keys are the right ones. The first error of the keys, or of the
// listing itself, is returned; a damaged record is for later, when it is read. begun: a record must have been begun under a given key; one that was, and only
// changed later under another key, is accepted. Without begun, any record under another key belongs to another process with a newer key, and is left to it.
func (s *Sealer) check(list iter.Seq2[persist.Record, error], most int, begun bool) error {
	for rec, err := range list {
		sealed := err == nil && rec.Carrier == persist.CarrierSealed
		if sealed && isEnd(&rec) { // it does not name its key
			continue
		}
		if err == nil {
			_, err = s.Unseal(rec)
		}
		if sealed && errors.Is(err, persist.ErrSealed) {
			o := &opener{s: s, id: rec.ID, created: rec.Created}
			if _, unknown := o.identity(&rec); unknown == nil || !begun { // the key of its Begin is known
				err = nil
			}
		}
		if err != nil && (errors.Is(err, persist.ErrSealed) || !persist.OfOneRecord(err)) {
			return err
		}
		if most--; most == 0 {
			return nil
		}
	}
	return nil
}

// Begin implements [persist.Journal]: it encrypts the record and begins it in the journal below.
func (j *journal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	return j.begin(ctx, rec, func(sealed persist.Record) (persist.Record, bool, error) { return j.Journal.Begin(ctx, sealed) })
}

// Update implements [persist.Journal]: it updates the encrypted record in the journal below.
func (j *journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	err := j.change(ctx, rec, func(sealed persist.Record) error {
		updated, err := j.Journal.Update(ctx, sealed)
		if err == nil {
			rec.Revision, rec.SendUntil = updated.Revision, updated.SendUntil
		}
		return err
	})
	if err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// Finish implements [persist.Journal]: it ends the encrypted record in the journal below. A record that could not be unsealed ends as it is given (see
// persist.UnreadError): one still sealed, and one in clear among sealed ones. The latter can only be abandoned, and only if the sealer does not accept such
// records (plain): else change has written it already.
func (j *journal) Finish(ctx context.Context, rec persist.Record) error {
	if rec.Carrier == persist.CarrierSealed {
		return j.Journal.Finish(ctx, rec)
	}
	err := j.change(ctx, rec, func(sealed persist.Record) error { return j.Journal.Finish(ctx, sealed) })
	if errors.Is(err, persist.ErrInvalid) && rec.State == persist.StateAbandoned && !j.s.plain {
		return j.Journal.Finish(ctx, rec) // refused by the journal unless the record was begun in clear
	}
	return err
}

// Forget implements [persist.Journal]: it deletes the record in the journal below.
func (j *journal) Forget(ctx context.Context, rec persist.Record) error {
	return j.change(ctx, rec, func(sealed persist.Record) error { return j.Journal.Forget(ctx, sealed) })
}

// Assign implements [persist.Journal]: it gives the record to another account. It is sealed anew for that, since a sealed part belongs to its ID. The journal
// refuses a fingerprint by another sealing key as ErrInvalid: then the next key is tried, as in change. A record begun in clear stays so, if the sealer
// accepts such records (plain).
func (j *journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	next := rec.Clone()
	next.Account = account
	for _, sealKey := range j.s.keys {
		sealed, err := j.s.sealBy(sealKey, &next)
		if err != nil {
			return persist.Record{}, err
		}
		sealed.Account = rec.Account // the journal below finds it by the old account
		sealed, err = j.Journal.Assign(ctx, sealed, account)
		switch {
		case err == nil:
			next.Revision = sealed.Revision
			return next, nil
		case !errors.Is(err, persist.ErrInvalid):
			return persist.Record{}, err
		}
	}
	if j.s.plain {
		return j.Journal.Assign(ctx, rec, account)
	}
	return persist.Record{}, fmt.Errorf("%w: no key that was given has sealed %q", persist.ErrInvalid, rec.Key)
}

// Amend implements [persist.Journal]: it amends the encrypted record in the journal below. A record that could not be decrypted is amended as it is
// given.
func (j *journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if rec.Carrier == persist.CarrierSealed {
		return j.Journal.Amend(ctx, rec)
	}
	err := j.change(ctx, rec, func(sealed persist.Record) error {
		amended, err := j.Journal.Amend(ctx, sealed)
		if err == nil {
			rec.Revision, rec.SendUntil = amended.Revision, amended.SendUntil
		}
		return err
	})
	if err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// change calls write with rec sealed. The value in the place of its fingerprint depends on the key of its Begin, which is not known here. The journal refuses
// a change of this value as ErrInvalid, before it writes anything: then the next key's is tried. sealEnd adds a proof of a final record's end, readable once
// the rest was swept. A record begun in clear stays so: it is written as it is if no key fits and the sealer accepts such records (plain).
func (j *journal) change(ctx context.Context, rec persist.Record, write func(sealed persist.Record) error) error {
	sealed, _, err := j.s.sealChange(j.s.keys[0], &rec)
	if err != nil {
		return err
	}
	j.sealEnd(ctx, &sealed, &rec)
	for _, k := range j.s.keys {
		sealed.Fingerprint, sealed.SealedNeeds = k.index(rec.Fingerprint), sealedNeeds(rec.Needs(), k, j.s.keys[0])
		if rec.RequestDropped { // then the part frozen by Begin is written again
			if err := k.dropRequest(&sealed, &rec); err != nil {
				return err
			}
		}
		if err = write(sealed); !errors.Is(err, persist.ErrInvalid) {
			return err
		}
	}
	if j.s.plain {
		return write(rec)
	}
	return err
}

// MarkReported implements [persist.Journal]: in the journal below it clears Unreported of an ended record, since a caller was told of the end.
func (j *journal) MarkReported(ctx context.Context, id persist.ID) error {
	return j.Journal.MarkReported(ctx, j.s.StoredID(id))
}

// Get implements [persist.Journal]: it reads the record from the journal below, and decrypts it.
func (j *journal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	sealed, err := j.Journal.Get(ctx, j.s.StoredID(id))
	if err != nil {
		return persist.Record{}, err
	}
	return j.unsealOf(ctx, sealed, id)
}

// Probe implements [persist.Prober]: it reads the record as Get does, but first waits for open transactions that have begun it, so that persist.ErrNotFound
// proves its absence. If the journal below is no Prober, Probe is Get.
func (j *journal) Probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	below, can := persist.As[persist.Prober](j.Journal)
	if !can {
		return j.Get(ctx, id)
	}
	sealed, err := below.Probe(ctx, j.s.StoredID(id))
	if err != nil {
		return persist.Record{}, err
	}
	return j.unsealOf(ctx, sealed, id)
}
