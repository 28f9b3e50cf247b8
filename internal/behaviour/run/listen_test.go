package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// bus carries the notifications of a journal between processes.
type bus struct {
	mu       sync.Mutex
	all      map[int]func(error) // who listens
	next     int
	notified int
	looks    int   // of all processes, at what is due
	broken   error // of every such look
	fails    error // of every Listen
}

// tell tells all who listen.
func (b *bus) tell(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, heard := range b.all {
		heard(err)
	}
}

// counts are how many listen, how often somebody was notified, and how often somebody has looked.
func (b *bus) counts() (listen, notified, looks int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all), b.notified, b.looks
}

// process is a journal on a bus as one process sees it.
type process struct {
	journaltest.Leasing
	*bus
}

func (p *process) Notify() {
	p.mu.Lock()
	p.notified++
	p.mu.Unlock()
	p.tell(nil)
}

func (p *process) Listen(ctx context.Context, heard func(error)) error {
	p.mu.Lock()
	if err := p.fails; err != nil {
		p.mu.Unlock()
		return err
	}
	p.next++
	me := p.next
	if p.all == nil {
		p.all = map[int]func(error){}
	}
	p.all[me] = heard
	heard(nil)
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, me)
	return ctx.Err()
}

// fairProcess is one whose journal knows when what is due.
type fairProcess struct {
	*process
	times persist.DueTimes
}

func (p fairProcess) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	p.mu.Lock()
	p.looks++
	broken := p.broken
	p.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	return p.times.DueTimes(ctx, q)
}

// onBus makes the journal of one process more.
func onBus(j *memory.Journal, b *bus, fair bool) persist.Journal {
	p := &process{journaltest.Leasing{Journal: j, Claimer: j}, b}
	if fair {
		return fairProcess{p, j}
	}
	return p
}

// long is a lease after which nobody looks within a minute.
func long(cfg *oncehttp.Config) { cfg.Lease = time.Hour }

// TestRunHearsOthers: what another process has enqueued, or begun in a transaction and then said so, is sent at once.
func TestRunHearsOthers(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			j, b := memory.New(), &bus{}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			worker, _ := clienttest.New(t, w, clienttest.On(onBus(j, b, fair), long))
			other, _ := clienttest.New(t, w, clienttest.On(onBus(j, b, fair), long))
			start := time.Now()
			stop := clienttest.Run(t, worker)
			time.Sleep(5 * time.Second)
			clienttest.Enqueue(t, other, 3)
			time.Sleep(5 * time.Second)
			rec, err := other.Prepare(clienttest.Post(t, "{}"), "transaction")
			if err == nil {
				_, _, err = j.Begin(t.Context(), rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			other.Wake()
			time.Sleep(5 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			want := []time.Duration{5, 5, 5, 15}
			for i, s := range w.All() {
				if at := s.At.Sub(start); i >= len(want) || at < want[i]*time.Second || at > want[i]*time.Second+100*time.Millisecond {
					t.Errorf("fair %t: send %d, of %s, at %v; want %v", fair, i, s.Key, at, want)
				}
			}
			if listen, notified, _ := b.counts(); w.Count() != len(want) || listen != 0 || notified != 4 {
				t.Errorf("fair %t: %d sends, %d notifications, %d listen after Run", fair, w.Count(), notified, listen)
			}
		})
	}
}

// TestWakesAreMerged: many notifications are few looks at the journal, and after the last there is one.
func TestWakesAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bus{}
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(onBus(memory.New(), b, true), long))
		stop := clienttest.Run(t, c)
		time.Sleep(time.Second)
		_, _, before := b.counts()
		for range 1000 {
			b.tell(nil)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if _, _, after := b.counts(); after-before < 10 || after-before > 12 {
			t.Errorf("%d looks for 1000 notifications in a second, want one in each tenth of it", after-before)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunPolls: where nothing is heard Run looks now and then, and says so once.
func TestRunPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, b := memory.New(), &bus{}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var told []string
		log := &clienttest.Log{}
		worker, _ := clienttest.New(t, w, clienttest.On(onBus(j, b, true), func(cfg *oncehttp.Config) {
			cfg.Logger = log.Logger()
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventListening || e.Kind == oncehttp.EventPolling {
					told = append(told, fmt.Sprint(e.Kind, " ", e.Wait, " ", e.Err))
				}
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j))) // which tells nobody
		stop := clienttest.Run(t, worker)
		for range 3 {
			b.tell(errors.New("the connection is gone"))
		}
		time.Sleep(time.Second)
		clienttest.Enqueue(t, other, 1)
		time.Sleep(10 * time.Second)
		if w.Count() != 1 {
			t.Errorf("%d sends within a third of a lease, want 1", w.Count())
		}
		b.tell(nil)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := "[listening 0s <nil> polling 10s the connection is gone listening 0s <nil>]"; fmt.Sprint(told) != want {
			t.Errorf("told %v, want %s", told, want)
		}
		for _, want := range []string{"does not hear what other processes enqueue, and looks by itself", "hears again"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log has %q %d times, want once:\n%s", want, strings.Count(log.String(), want), log.String())
			}
		}
	})
}

// TestWakesBesideFailures: what others enqueue lets no pass be made sooner that has just failed; a journal that is in reach
// again does.
func TestWakesBesideFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bus{broken: errors.New("no space left")}
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(onBus(memory.New(), b, true), long))
		stop := clienttest.Run(t, c)
		for range 600 {
			b.tell(nil)
			time.Sleep(100 * time.Millisecond)
		}
		if _, _, looks := b.counts(); looks < 3 || looks > 9 { // one of them for what is not for this client
			t.Errorf("%d looks in a minute, want few: a second after the first, then ever more seldom", looks)
		}
		_, _, before := b.counts()
		b.tell(errors.New("the server is down"))
		b.tell(nil)
		time.Sleep(time.Millisecond)
		if _, _, after := b.counts(); after != before+1 {
			t.Errorf("%d looks when the journal is in reach again, want one", after-before)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestListenFails: a journal that cannot listen at all is said to be so, and Run goes on.
func TestListenFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bus{fails: errors.New("not here")}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var told []error
		c, _ := clienttest.New(t, w, clienttest.On(onBus(memory.New(), b, true), func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventPolling {
					told = append(told, e.Err)
				}
			}
		}))
		stop := clienttest.Run(t, c)
		clienttest.Enqueue(t, c, 1)
		time.Sleep(time.Hour)
		if err := stop(); err != nil || w.Count() != 1 || len(told) != 1 || !errors.Is(told[0], b.fails) {
			t.Errorf("%v, %d sends, told %v", err, w.Count(), told)
		}
	})
}
