package run

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file lets a Run hand its results to its own OnResult on a journal shared by processes: the write of a result keeps the others from it for
// as long as that takes. So a delivery needs no write of its own to take it.

// delivers returns the time in which the run's client hands the state about to be written to its own OnResult; zero: it does not.
func (r *run) delivers() time.Duration {
	_, shared := persist.As[persist.SharedResults](r.engine.journal)
	switch {
	case !shared || !r.given.Pass || r.cfg.OnResult == nil || !r.rec.Results:
		return 0
	case r.rec.OwedFrom.After(r.now()): // an earlier state is with another process
		return 0
	case r.delivering.Load() == 0 || r.shared.results.full():
		return 0
	}
	return r.cfg.Retry.AnswerTimeout + resultMargin
}

// leaveOwn ends the deliveries of one Run. After the last one of the client, any process may deliver its own results at once.
func (d *delivering) leaveOwn(ctx context.Context) {
	e := d.engine
	if e.delivering.Add(-1) > 0 {
		return
	}
	shared, is := persist.As[persist.SharedResults](e.journal)
	for id, own := range e.shared.results.take(persist.Query{Account: d.account(ctx)}) {
		if is && own != 0 {
			_, _ = shared.Postpone(context.WithoutCancel(ctx), id, own, e.now().Round(0)) // if it fails, they do so once it is due
		}
	}
}
