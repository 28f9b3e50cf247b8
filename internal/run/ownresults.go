package run

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file lets a Run hand its results to its own OnResult on a journal shared by processes: the write of a result keeps the others from it for
// as long as that takes. So a delivery needs no write of its own to take it.

// delivers returns how long other processes leave the result about to be written to this client, which hands it to its own Config.OnResult. Zero: this client
// delivers none (it is no pass, no Run of it delivers now, or too many wait), and any process may at once.
func delivers(t *task) time.Duration {
	_, shared := persist.As[persist.SharedResults](t.engine.journal)
	switch {
	case !shared || !t.given.Pass || t.cfg.OnResult == nil || !t.rec.Results:
		return 0
	case t.rec.OwedFrom.After(t.engine.now()): // an earlier state is with another process
		return 0
	case t.engine.delivering.Load() == 0 || t.engine.shared.results.full():
		return 0
	}
	return t.cfg.Retry.AnswerTimeout + resultMargin
}

// leaveOwn ends the deliveries of results of one Run. After the last Run of the client, no result is kept for it any more: any process may deliver it
// at once.
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
