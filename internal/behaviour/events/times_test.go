package events_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// slow is a journal whose begins and ends take a while.
type slow struct{ persist.Journal }

const (
	beginTakes  = 3 * time.Second
	finishTakes = 5 * time.Second
)

func (s slow) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	time.Sleep(beginTakes)
	return s.Journal.Begin(ctx, rec)
}

func (s slow) Finish(ctx context.Context, rec persist.Record) error {
	time.Sleep(finishTakes)
	return s.Journal.Finish(ctx, rec)
}

// TestTimes: an event has the parts of its call's time. A limiter takes 7 s, the first answer is lost after 11 s, the second comes
// after 13 s, and the pause between them is the server's.
func TestTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pause = 20 * time.Second
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 20", Delay: 11 * time.Second}, {Status: 201, Delay: 13 * time.Second}}}
		var heard clienttest.Events
		spans := &clienttest.Spans{}
		c, _ := clienttest.New(t, w, clienttest.On(slow{memory.New()}, clienttest.Protected, func(cfg *oncehttp.Config) {
			cfg.Observe, cfg.Instrument = heard.Observe, spans
			cfg.Limiter = func(string) oncehttp.Limiter {
				return clienttest.LimiterFunc(func(context.Context) error { time.Sleep(7 * time.Second); return nil })
			}
		}))
		began := time.Now()
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		whole := time.Since(began)
		events := heard.Of(oncehttp.EventFinished)
		if len(events) != 1 {
			t.Fatalf("%d ends", len(events))
		}
		got := events[0].Took
		want := oncehttp.Durations{Whole: whole, Journal: beginTakes + finishTakes, Wire: 24 * time.Second, Waiting: 2*7*time.Second + pause}
		if got != want {
			t.Errorf("took %+v; want %+v", got, want)
		}
		for _, e := range heard.All {
			if e.Call != events[0].Call {
				t.Errorf("%s is of call %d; want %d", e.Kind, e.Call, events[0].Call)
			}
		}
		if answered := heard.Of(oncehttp.EventAnswered); answered[0].Took.Wire != 11*time.Second || answered[1].Took.Wire != 24*time.Second {
			t.Errorf("on the wire %v and %v", answered[0].Took.Wire, answered[1].Took.Wire)
		}
	})
}

// TestTimesOfALeftCall: the times before and after a call left its operation to others add up.
func TestTimesOfALeftCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard clienttest.Events
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(slow{memory.New()}, clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour}), func(cfg *oncehttp.Config) {
			cfg.Observe = heard.Observe
		}))
		began := time.Now()
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		ends := heard.Of(oncehttp.EventFinished)
		if len(ends) != 1 || len(heard.Of(oncehttp.EventLeft)) != 1 {
			t.Fatalf("%d ends, %d left", len(ends), len(heard.Of(oncehttp.EventLeft)))
		}
		// The limiter is asked once, and its hour runs beside the second begin.
		want := oncehttp.Durations{Whole: time.Since(began), Journal: 2*beginTakes + finishTakes, Waiting: time.Since(began) - 2*beginTakes - finishTakes}
		if got := ends[0].Took; got != want {
			t.Errorf("took %+v; want %+v", got, want)
		}
	})
}

// TestSources: an event has the source of its answer.
func TestSources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard clienttest.Events
		replies := []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Header: "Idempotent-Replayed: true"}}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: replies}, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe; clienttest.Protected(cfg) })
		for range 2 {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
		}
		var got []oncehttp.Source
		for _, kind := range []oncehttp.EventKind{oncehttp.EventAnswered, oncehttp.EventFinished, oncehttp.EventRecorded} {
			for _, e := range heard.Of(kind) {
				got = append(got, e.Source)
			}
		}
		want := []oncehttp.Source{0, oncehttp.SourceReplay, oncehttp.SourceReplay, oncehttp.SourceJournal}
		if len(got) != len(want) {
			t.Fatalf("%v; want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%v; want %v", got, want)
			}
		}
	})
}
