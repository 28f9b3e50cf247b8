package run_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// pooled is a shared journal as one process sees it: after its first claim it has no connections for as long as outage, and a
// call waits three seconds for one. It marks nothing with a claim, as on Redis.
type pooled struct {
	persist.Attachment
	persist.Journal
	persist.Claimer
	due    persist.DueTimes
	outage time.Duration

	mu sync.Mutex
	up time.Time // zero before the outage
}

func newPooled(m *memory.Journal) *pooled {
	return &pooled{Journal: m, Claimer: struct{ persist.Claimer }{m}, due: m}
}

func (p *pooled) Attach(create func() any) any { return p.Attachment.Attach(create) }

func (p *pooled) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if err := p.connect(); err != nil {
		return nil, err
	}
	return p.due.DueTimes(ctx, q)
}

// connect waits for a connection.
func (p *pooled) connect() error {
	const most = 3 * time.Second
	p.mu.Lock()
	left := time.Until(p.up)
	p.mu.Unlock()
	if left > 0 {
		time.Sleep(min(most, left))
	}
	if left > most {
		return errors.New("no connection")
	}
	return nil
}

func (p *pooled) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := p.connect(); err != nil {
		return persist.Record{}, err
	}
	return p.Journal.Update(ctx, rec)
}

func (p *pooled) Finish(ctx context.Context, rec persist.Record) error {
	if err := p.connect(); err != nil {
		return err
	}
	return p.Journal.Finish(ctx, rec)
}

func (p *pooled) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	if err := p.connect(); err != nil {
		return nil, time.Time{}, err
	}
	claimed, now, err := p.Claimer.Claim(ctx, q, owner, lease, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(claimed) > 0 && p.up.IsZero() && p.outage > 0 {
		p.up = time.Now().Add(p.outage)
	}
	return claimed, now, err
}

// TestRunWithoutConnections: what a worker has claimed when it loses its connections goes on once it has some again, or once its
// lease is over, with this worker or another; the time at which it is due stays as it was.
func TestRunWithoutConnections(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{time.Second, 4 * time.Second, 10 * time.Second, 14 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := memory.New()
			cut, healthy := newPooled(m), newPooled(m)
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
			few := func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 4 }
			first, _ := clienttest.New(t, w, clienttest.On(cut, few))
			const n = 40
			clienttest.EnqueueAt(t, first, "one.example", n)
			cut.outage = outage
			stop := clienttest.Run(t, first)
			time.Sleep(time.Millisecond)
			second, _ := clienttest.New(t, w, clienttest.On(healthy, few))
			stopSecond := clienttest.Run(t, second)
			time.Sleep(outage + 45*time.Second) // a lease, and a look after it
			for rec, err := range m.List(t.Context(), persist.Query{AllAccounts: true}) {
				if err != nil || rec.State != persist.StateConfirmed {
					t.Errorf("%v without connections: %s is %v, due in %v, error %v", outage, rec.Key, rec.State, time.Until(rec.NextAttempt), err)
				}
			}
			if err := errors.Join(stop(), stopSecond()); err != nil {
				t.Error(err)
			}
		})
	}
}
