package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// partly is a shared journal that has no connections for some of its calls, from its first claim on.
type partly struct {
	*pooled
	calls  []string
	outage time.Duration
}

func (p *partly) Attach(create func() any) any { return p.pooled.Attach(create) }

func (p *partly) connect(call string) error {
	if !slices.Contains(p.calls, call) {
		return nil
	}
	return p.pooled.connect()
}

func (p *partly) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if err := p.connect("DueTimes"); err != nil {
		return nil, err
	}
	return p.due.DueTimes(ctx, q)
}

func (p *partly) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := p.connect("Update"); err != nil {
		return persist.Record{}, err
	}
	return p.pooled.Journal.Update(ctx, rec)
}

func (p *partly) Finish(ctx context.Context, rec persist.Record) error {
	if err := p.connect("Finish"); err != nil {
		return err
	}
	return p.pooled.Journal.Finish(ctx, rec)
}

func (p *partly) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	if err := p.connect("Claim"); err != nil {
		return nil, time.Time{}, err
	}
	claimed, now, err := p.Claimer.Claim(ctx, q, owner, lease, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(claimed) > 0 && p.up.IsZero() {
		p.up = time.Now().Add(p.outage)
	}
	return claimed, now, err
}

// Whichever calls have no connections, for however long, and whatever the API answers meanwhile: each operation ends within a lease and
// a look after that where another worker is beside this one, a minute later without, and is sent once more for each of its leases at most.
func TestNeighbourWithoutConnections(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]string{
		"all": {"DueTimes", "Update", "Finish", "Claim"}, "marks": {"Update"}, "ends": {"Finish"}, "claims": {"Claim", "DueTimes"}, "marks and ends": {"Update", "Finish"},
	} {
		for _, outage := range []time.Duration{2900 * time.Millisecond, 10 * time.Second, 29 * time.Second, 31 * time.Second, 2 * time.Minute} {
			for _, beside := range []bool{false, true} {
				for _, lease := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
					t.Run(fmt.Sprintf("%s/%v/beside %t/lease %v", name, outage, beside, lease), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { withoutConnections(t, calls, outage, beside, lease) })
					})
				}
			}
		}
	}
}

func withoutConnections(t *testing.T, calls []string, outage time.Duration, beside bool, lease time.Duration) {
	m := memory.New()
	cut := &partly{pooled: newPooled(m), calls: calls, outage: outage}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
	few := func(cfg *oncehttp.Config) { cfg.ResumeWorkers, cfg.Lease = 4, lease }
	first, _ := clienttest.New(t, w, clienttest.On(cut, few))
	const n = 40
	clienttest.EnqueueAt(t, first, "one.example", n)
	stop := clienttest.Run(t, first)
	time.Sleep(time.Millisecond)
	stopSecond := func() error { return nil }
	wait := outage + lease*3/2 + 15*time.Second
	if !beside {
		wait += time.Minute // by which a worker looks again at a journal that does not answer
	} else {
		second, _ := clienttest.New(t, w, clienttest.On(newPooled(m), few))
		stopSecond = clienttest.Run(t, second)
	}
	time.Sleep(wait)
	for rec, err := range m.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil || rec.State != persist.StateConfirmed {
			t.Errorf("%s is %v, due in %v, error %v", rec.Key, rec.State, time.Until(rec.NextAttempt), err)
		}
	}
	if err := errors.Join(stop(), stopSecond()); err != nil {
		t.Error(err)
	}
	for key, sends := range w.Keys() {
		if sends > 2+int(outage/lease) { // where claims succeed and ends do not, once more for each lease
			t.Errorf("%s was sent %d times", key, sends)
		}
	}
}
