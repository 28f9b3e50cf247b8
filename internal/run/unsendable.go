package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of the reports about operations unserved by this client: it cannot act on them.
const (
	unservedCountMax = 1000    // operations counted for one need
	unservedLookMax  = 100_000 // operations looked at, if the journal does not tell needs
	lacksMax         = 8       // needs told each by itself, and lacks remembered by a client
)

// unserved are the pending operations with one and the same lack of this client.
type unserved struct {
	lack   acts.Lack      // of this client
	first  persist.Record // the oldest; only its clear part, if it cannot be read
	count  int            // unservedCountMax at most
	origin string         // of all of them; empty: of several
}

// err returns the error about operations that this client cannot act on, with the lack and the first key.
func (u *unserved) err() *Error {
	about := unclear(u.first.Key)
	return newError("run", about, u.lack.Err(), ErrConfig)
}

// metLacks are the needs met by a client in operations, but not fulfilled by it. They are safe for concurrent use.
type metLacks struct {
	mu  sync.Mutex
	all map[acts.Lack]bool // met so far
	met chan struct{}      // gets a value when one was met for the first time
}

// meet notes a lack, and wakes tellHourly if it is new. It ignores acts.Nothing, and any new lack after
// lacksMax.
func (m *metLacks) meet(l acts.Lack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.Need == acts.Nothing || m.all[l] || len(m.all) == lacksMax {
		return
	}
	if m.all == nil {
		m.all = map[acts.Lack]bool{}
	}
	m.all[l] = true
	select {
	case m.met <- struct{}{}:
	default:
	}
}

// any reports whether a lack was noted.
func (m *metLacks) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all) > 0
}

// pendings looks through the pending operations of an account.
type pendings struct {
	cfg    *Config
	engine *engine
	query  persist.Query // for all of them
}

// pendingsOf returns the pending operations of the context's account.
func pendingsOf(ctx context.Context, c *Client) *pendings {
	return &pendings{&c.cfg, c.engine, persist.Query{Account: c.account(ctx), States: []persist.State{persist.StatePending}}}
}

// unserved returns the pending operations that this client cannot act on: one element for each lack, lacksMax and one more at most. It reads as many
// records as it counts. If the journal does not tell needs, it looks at unservedLookMax pending operations at most. Nothing is claimed. Errors: the
// journal's.
func (p *pendings) unserved(ctx context.Context) ([]unserved, error) {
	var all []unserved
	query := p.query
	// It tells the needs of whole groups, without their records.
	times, knows := persist.As[persist.DueTimes](p.cfg.Journal)
	if !knows {
		return p.add(ctx, all, query)
	}
	groups, err := times.DueTimes(ctx, persist.Query{Account: query.Account})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(groups, func(a, b persist.DueTime) int { // each time the same needs are told by themselves
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Needs, b.Needs))
	})
	for _, g := range groups {
		if g.Needs == "" { // of all needs together
			return p.add(ctx, nil, query)
		}
		if lack := p.cfg.gate().lacksOfGroup(g.Origin, g.Needs); lack.Need != acts.Nothing {
			query.Origin, query.Needs = g.Origin, g.Needs
			if all, err = p.add(ctx, all, query); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// add adds the operations selected by the query to all, if this client cannot act on them, and returns it. It counts up to unservedCountMax for each need, so a
// count may be too low. A full count ends the listing only where all of it lacks the same (query.Needs). Operations run by a call of this process are left out.
// Errors: the journal's.
func (p *pendings) add(ctx context.Context, all []unserved, query persist.Query) ([]unserved, error) {
	looked := 0
	for rec, err := range p.cfg.Journal.List(ctx, query) {
		var unread *persist.UnreadError
		var lack acts.Lack
		switch {
		case errors.As(err, &unread):
			rec = unread.Record
			lack = p.cfg.gate().lacksOfGroup(rec.Origin, unread.Needs)
		case persist.OfOneRecord(err):
			continue
		case err != nil:
			return nil, err
		case p.engine.shared.calls.Operation(rec.ID) != nil: // a call with credentials of its own runs it
			continue
		default:
			lack = p.cfg.gate().lacksClaimed(&rec)
		}
		full := false
		if lack.Need != acts.Nothing {
			all, full = countUnserved(all, lack, &rec)
		}
		if looked++; looked == unservedLookMax || full && query.Needs != "" {
			break
		}
	}
	return all, nil
}

// countUnserved counts one more operation with a lack, in place, and returns all. full is true if no more of this lack is counted. first is the oldest
// operation; origin is empty if they have several. Beyond lacksMax lacks, the others count as one.
func countUnserved(all []unserved, lack acts.Lack, rec *persist.Record) (_ []unserved, full bool) {
	for i := range all {
		u := &all[i]
		if u.lack != lack {
			continue
		}
		if u.count < unservedCountMax {
			u.count++
		}
		// Seq decides between two of the same time.
		if older := rec.Created.Compare(u.first.Created); older < 0 || older == 0 && rec.Seq < u.first.Seq {
			u.first = *rec
		}
		if rec.Origin != u.origin {
			u.origin = ""
		}
		return all, u.count == unservedCountMax
	}
	if rest := acts.LacksMore(); len(all) >= lacksMax && lack != rest {
		return countUnserved(all, rest, rec)
	}
	return append(all, unserved{lack, *rec, 1, rec.Origin}), false
}

// tellUnserved tells of the operations unserved by this client, by one event and one log line for each need not in
// told, and enters the need there. Without a Logger, slog.Default gets each need once in a Run: a Run without work
// must not be silent. A failed listing is logged.
func (r *runner) tellUnserved(ctx context.Context, told map[acts.Lack]bool) {
	all, err := pendingsOf(ctx, r.Client).unserved(ctx)
	if err == nil && len(all) == 0 && r.engine.lacking.any() {
		// DueTimes leaves out claimed operations. A claim without knowledge of needs, of this client too, has such an operation for a moment.
		waiting := pendingsOf(ctx, r.Client)
		all, err = waiting.add(ctx, nil, waiting.query)
	}
	if err != nil && ctx.Err() == nil && r.draining.Err() == nil {
		blocked(ctx, &r.cfg, &persist.Record{}, err)
		r.cfg.log(ctx, slog.LevelError, "operations that this client cannot act on could not be listed", "", err)
	}
	for i := range all {
		u := &all[i]
		r.engine.lacking.meet(u.lack)
		if told[u.lack] {
			continue
		}
		told[u.lack] = true
		r.cfg.observe(ctx, &Event{Kind: EventUnserved, Origin: u.origin, Count: u.count, Oldest: u.first.Created, Resumed: true, Err: u.err()})
		logger := r.cfg.Logger
		if logger == nil && r.toldDefault[u.lack] {
			continue
		}
		if logger == nil {
			logger = slog.Default()
			r.toldDefault[u.lack] = true
		}
		logger.LogAttrs(ctx, slog.LevelWarn, "oncehttp: Run leaves alone what is not for this client; it goes on with the rest",
			slog.String("key", u.first.Key), slog.Int("operations", u.count), slog.Time("oldest", u.first.Created), slog.String("error", u.err().Error()))
	}
}

// tellHourly tells of the operations unserved by this client, now and every hour, and of a need at once when it is met first.
func (r *runner) tellHourly(ctx context.Context) {
	told := map[acts.Lack]bool{}
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for ctx.Err() == nil {
		r.cfg.guard(ctx, "a listing of operations that this client cannot act on has crashed", func() { r.tellUnserved(ctx, told) })
		select {
		case <-ctx.Done():
		case <-r.engine.lacking.met:
		case <-hour.C:
			// Each need is told again in the next hour, as long as it is there.
			clear(told)
		}
	}
}

// ended returns the error of a Run after the end of its context: one error for each need with operations left; nil
// if there are none, or they cannot be listed within an AttemptTimeout.
func (r *runner) ended(ctx context.Context) (err error) {
	if !r.engine.lacking.any() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Retry.AttemptTimeout)
	defer cancel()
	all, failed := pendingsOf(ctx, r.Client).unserved(ctx)
	if failed != nil {
		return nil // the operations left are not known
	}
	for i := range all[:min(len(all), lacksMax)] {
		if left := all[i].err(); err == nil {
			err = fmt.Errorf("oncehttp: run: not sent: %w", left)
		} else {
			err = fmt.Errorf("%w; %w", err, left)
		}
	}
	return err
}
