package run

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the operations that a pass has claimed and does not run: it gives them back.

// lacks reports whether this client cannot act on a record of the pass. The lack is noted, for the error at the
// end of Run.
func (p *pass) lacks(rec *persist.Record) bool {
	lack := p.c.cfg.gate().lacksClaimed(rec)
	p.c.engine.lacking.meet(lack)
	return lack.Need != acts.Nothing
}

// lacksFor reports whether this client lacks something that all operations of a group (one account, origin and needs) need. If the journal does not
// tell the needs, it returns false, and each record is checked by itself.
func (p *pass) lacksFor(g group) bool {
	if g.needs == "" {
		return false // each of its records is checked by itself
	}
	lack := p.c.cfg.gate().lacksOfGroup(g.origin, g.needs)
	p.c.engine.lacking.meet(lack)
	return lack.Need != acts.Nothing
}

// passBy gives back a claimed operation that this client cannot act on, unchanged. In a Resume (not silent) it reports an error for it, unless again is true:
// it has done so for an earlier claim.
func (p *pass) passBy(rec *persist.Record, again bool) {
	p.giveBack(rec, time.Time{})
	if !p.silent && !again {
		p.yieldUnserved(rec)
	}
}

// yieldUnserved hands the error for an operation that this client cannot act on to the reader of the pass.
func (p *pass) yieldUnserved(rec *persist.Record) {
	if lack := p.c.cfg.gate().lacksClaimed(rec); lack.Need != acts.Nothing {
		err := newError("resume", subjectOf(rec, operation.Same), lack.Err(), ErrConfig)
		blocked(p.ctx, &p.c.cfg, rec, err)
		p.results <- resumed{result: Result{Key: rec.Key}, err: err}
	}
}

// giveBack gives up the lease of a claimed operation without a run, in the journal and in this client. The
// operation is due again at the time again, or as before if that is zero. It may panic if the journal does.
func (p *pass) giveBack(rec *persist.Record, again time.Time) {
	p.c.engine.writer.giveBack(p.ctx, *rec, again)
	p.c.engine.claims.Drop(rec.ID)
}

// tryGiveBack gives back an operation without a run, due as before. A crash of the journal is logged; the lease
// then ends by itself.
func (p *pass) tryGiveBack(rec *persist.Record) {
	p.c.cfg.guard(p.ctx, "an operation could not be given back", func() { p.giveBack(rec, time.Time{}) })
}

// giveBackAll gives back operations that this pass has claimed and does not run: other processes may send them at once. It makes the calls at the
// same time, so that a slow journal costs the time of one. An operation that cannot be given back is free when its lease has ended.
func (p *pass) giveBackAll(recs []*persist.Record) {
	var calls sync.WaitGroup
	for _, rec := range recs {
		calls.Go(func() { p.tryGiveBack(rec) })
	}
	calls.Wait()
}

// pointers returns pointers to the elements of a slice.
func pointers(recs []persist.Record) []*persist.Record {
	all := make([]*persist.Record, 0, len(recs))
	for i := range recs {
		all = append(all, &recs[i])
	}
	return all
}

// again returns the due time for an operation that this pass cannot go on with. It is just after the beginning of the pass, so that the next pass meets the
// operation. A pass of a Run with shares for each origin (lanes) has no end, and uses pauseMax from now.
func (p *pass) again() time.Time {
	if p.lanes != nil {
		_ = p.c.engine.clock.Notice(p.ctx, p.c.engine.host) // if the journal cannot be asked, nothing can be given back either
		return p.c.engine.now().Add(pauseMax)
	}
	return p.query.DueBy.Add(1)
}
