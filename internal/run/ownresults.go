package run

import (
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file hands the results of a Run to its own OnResult, on a journal shared by processes: the write of a result keeps the others from it
// for as long as that takes, so that no write of its own is needed for that.

// ownMost bounds the own results waiting for a delivery. Others are found by a listing.
const ownMost = 64

// ownResult is a result written by this client, at this revision.
type ownResult struct {
	id       persist.ID
	revision uint64
}

// ownResults are the own results waiting for a delivery. The zero value is ready, and takes none until a Run delivers.
type ownResults struct {
	mu       sync.Mutex
	runs     int // delivering
	reserved int // places in the queue, with those taken
	queue    chan ownResult
}

// reserve reserves a place in the queue. It returns false if there is none, or nobody delivers.
func (o *ownResults) reserve() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == 0 || o.reserved == ownMost {
		return false
	}
	o.reserved++
	return true
}

// drop gives a place back.
func (o *ownResults) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserved--
}

// deliver returns the queue, for a Run that delivers until it calls end. The last Run to end calls leave for each result left in it.
func (o *ownResults) deliver() (queue <-chan ownResult, end func(leave func(ownResult))) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queue == nil {
		o.queue = make(chan ownResult, ownMost)
	}
	o.runs++
	return o.queue, func(leave func(ownResult)) {
		o.mu.Lock()
		o.runs--
		last := o.runs == 0
		o.mu.Unlock()
		for last {
			select {
			case result := <-o.queue:
				o.drop()
				leave(result)
			default:
				return
			}
		}
	}
}

// delivers returns the time in which the run's client hands the state about to be written to its own OnResult; zero: it does not.
func (r *run) delivers() time.Duration {
	_, shared := persist.As[persist.SharedResults](r.engine.journal)
	if !shared || !r.given.Pass || r.cfg.OnResult == nil || !r.rec.Results || r.rec.OwedFrom.After(r.now()) {
		return 0
	}
	if r.delivery = r.delivery || r.ownResults.reserve(); !r.delivery {
		return 0
	}
	return r.cfg.Retry.AnswerTimeout + resultMargin
}

// noDelivery gives the run's place among the own results back, if it has one.
func (r *run) noDelivery() {
	if r.delivery {
		r.delivery = false
		r.ownResults.drop()
	}
}

// freeResult lets any process deliver an own result at once.
func (e *engine) freeResult(ctx context.Context, result ownResult) {
	if shared, is := persist.As[persist.SharedResults](e.journal); is {
		_, _ = shared.Postpone(ctx, result.id, result.revision, e.now().Round(0)) // if it fails, they do so once it is due
	}
}
