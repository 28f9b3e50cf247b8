package persisttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// closeCases returns the cases about Journal.Close, Flush and Attach. why says what harm is done by a journal that fails the case. A durable case closes the
// journal and opens it again.
func closeCases() []testCase {
	return []testCase{
		{name: "close/closed", run: closeClosed,
			why: "a journal that is closed must say so, and not hang or invent"},
		{name: "close/under-way", run: closeUnderWay, durable: true,
			why: "what was acknowledged while the program ended must be there"},
		{name: "close/flush", run: closeFlush,
			why: "who waits for durability must not wait for ever"},
		{name: "close/attach", run: closeAttach,
			why: "two clients on one journal must share what is in flight"},
	}
}

// closeClosed is the case close/closed. After Close every method returns ErrClosed; a second Close is no error. Methods that not every journal has are called
// where they are.
func closeClosed(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.begin(j, record("a", "k"))
	for i := range 2 {
		if err := j.Close(); err != nil {
			k.errorf("Close number %d: %v", i+1, err)
		}
	}
	_, created, err := j.Begin(ctx, record("a", "l"))
	k.want(err, persist.ErrClosed, "Begin after Close (created %t)", created)
	_, _, err = j.Begin(ctx, record("a", "k"))
	k.want(err, persist.ErrClosed, "Begin of an existing record after Close")
	_, err = j.Update(ctx, r)
	k.want(err, persist.ErrClosed, "Update after Close")
	k.want(j.Finish(ctx, finished(r)), persist.ErrClosed, "Finish after Close")
	if late, ok := j.(persist.LateFinisher); ok {
		k.want(late.FinishLate(ctx, finished(r)), persist.ErrClosed, "FinishLate after Close")
	}
	k.want(j.Forget(ctx, r), persist.ErrClosed, "Forget after Close")
	_, err = j.Get(ctx, r.ID)
	k.want(err, persist.ErrClosed, "Get after Close")
	_, err = j.Sweep(ctx, persist.Limits{})
	k.want(err, persist.ErrClosed, "Sweep after Close")
	n := 0
	for _, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
		k.want(err, persist.ErrClosed, "List after Close")
		n++
	}
	if n != 1 {
		k.errorf("List after Close gave %d elements, want one error", n)
	}
	k.want(j.Flush(ctx), persist.ErrClosed, "Flush after Close")
	k.want(j.MarkReported(ctx, r.ID), persist.ErrClosed, "MarkReported after Close")
	k.closedResults(j, r)
	_, err = j.Assign(ctx, r, "b")
	k.want(err, persist.ErrClosed, "Assign after Close")
	_, err = j.Amend(ctx, settled(r, persist.EffectAbsent))
	k.want(err, persist.ErrClosed, "Amend after Close")
	_, err = j.Secret(ctx)
	k.want(err, persist.ErrClosed, "Secret after Close")
	_, err = j.Fact(ctx, "form", nil, nil)
	k.want(err, persist.ErrClosed, "Fact after Close")
	if n, ok := persist.As[persist.Notifier](j); ok {
		n.Notify()
		k.want(n.Listen(ctx, func(error) {}), persist.ErrClosed, "Listen after Close")
	}
	k.closedIndexes(j)
	if c, ok := persist.As[persist.Claimer](j); ok {
		_, err := c.Now(ctx)
		k.want(err, persist.ErrClosed, "Now after Close")
		_, _, err = c.Claim(ctx, persist.Query{}, "w", time.Minute, 1)
		k.want(err, persist.ErrClosed, "Claim after Close")
		if s, ok := c.(persist.SendClaimer); ok {
			_, _, err = s.ClaimToSend(ctx, persist.Query{}, "w", time.Minute, time.Minute, 1)
			k.want(err, persist.ErrClosed, "ClaimToSend after Close")
		}
		_, _, err = c.Renew(ctx, "w", time.Minute, []persist.ID{r.ID})
		k.want(err, persist.ErrClosed, "Renew after Close")
	}
}

// closedIndexes requires ErrClosed of the methods of a closed journal that answer from an index.
func (k *check) closedIndexes(j persist.Journal) {
	if d, ok := persist.As[persist.DueTimes](j); ok {
		_, err := d.DueTimes(context.Background(), persist.Query{})
		k.want(err, persist.ErrClosed, "DueTimes after Close")
	}
	if c, ok := persist.As[persist.Counter](j); ok {
		_, err := c.Count(context.Background())
		k.want(err, persist.ErrClosed, "Count after Close")
	}
}

// closeUnderWay closes the journal while callers begin and finish records. Afterwards every acknowledged record is there, and none is damaged. The writers go
// on until Begin returns ErrClosed; a Finish may fail then, too.
func closeUnderWay(k *check) {
	ctx, j := context.Background(), k.journal()
	var mu sync.Mutex
	acknowledged := map[persist.ID]persist.Record{}
	var wg sync.WaitGroup
	began := make(chan struct{}, 1000)
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				r, created, err := j.Begin(ctx, record("a", fmt.Sprintf("%d of %d", i, w)))
				if errors.Is(err, persist.ErrClosed) {
					return
				}
				if err != nil || !created {
					k.errorf("Begin while the journal closes: created %t, error %v", created, err)
					return
				}
				if i%3 == 0 && j.Finish(ctx, finished(r)) == nil {
					r = finished(r)
					r.Revision++
				}
				mu.Lock()
				acknowledged[r.ID] = r
				mu.Unlock()
				select {
				case began <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 100 {
		<-began
	}
	if err := j.Close(); err != nil {
		k.errorf("Close: %v", err)
	}
	wg.Wait()
	j = k.journal()
	for _, r := range acknowledged {
		k.holds(j, r, "it was acknowledged while the journal closed")
	}
	// Unacknowledged records may be there, but no record may be incomplete.
	k.list(j, persist.Query{AllAccounts: true})
}

// closeFlush is the case close/flush. Flush returns under concurrent changes, and at once without any (within ten seconds, for busy machines).
func closeFlush(k *check) {
	ctx, j := context.Background(), k.journal()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				r, _, err := j.Begin(ctx, record("a", fmt.Sprintf("%d of %d", i, w)))
				if err == nil {
					err = j.Finish(ctx, finished(r))
				}
				if err == nil {
					err = j.Flush(ctx)
				}
				if err != nil {
					k.errorf("Begin, Finish, Flush: %v", err)
				}
			}
		})
	}
	wg.Wait()
	start := time.Now()
	if err := j.Flush(ctx); err != nil {
		k.errorf("Flush of nothing: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		k.errorf("Flush of nothing took %v", d)
	}
}

// closeAttach is the case close/attach. Of many Attach calls at once, one creates the value and all return it. Attach keeps a value for all users of the
// journal in this process.
func closeAttach(k *check) {
	j := k.journal()
	var mu sync.Mutex
	created := 0
	values := make([]any, 8)
	var wg sync.WaitGroup
	for i := range values {
		wg.Go(func() {
			values[i] = j.Attach(func() any {
				mu.Lock()
				defer mu.Unlock()
				created++
				return &created
			})
		})
	}
	wg.Wait()
	for _, v := range values {
		if v != any(&created) || created != 1 {
			k.errorf("Attach gave %v, and created %d values; want one for all", v, created)
			return
		}
	}
}

// closedResults checks the methods of persist.Results of a closed journal.
func (k *check) closedResults(j persist.Journal, r persist.Record) {
	ctx := context.Background()
	if results, ok := persist.As[persist.Results](j); ok {
		_, err := results.MarkDelivered(ctx, r.ID, r.Revision)
		k.want(err, persist.ErrClosed, "MarkDelivered after Close")
	}
	if results, ok := persist.As[persist.SharedResults](j); ok {
		_, err := results.Postpone(ctx, r.ID, r.Revision, epoch())
		k.want(err, persist.ErrClosed, "Postpone after Close")
	}
}
