package persisttest_test

import (
	"context"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist/internal/notify"

	"github.com/oncehttp/oncehttp/persist"
)

// bus carries the messages between the openings of a store.
type bus struct {
	mu    sync.Mutex
	lines map[*busLine]bool
}

// busLine is a connection that listens.
type busLine struct {
	on       *bus
	messages chan string
}

func (b *bus) connect(context.Context) (notify.Line, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines == nil {
		b.lines = map[*busLine]bool{}
	}
	l := &busLine{on: b, messages: make(chan string, 1000)}
	b.lines[l] = true
	return l, nil
}

func (b *bus) send(_ context.Context, message string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.lines {
		select {
		case l.messages <- message:
		default: // it is woken anyway
		}
	}
	return nil
}

func (l *busLine) Next(ctx context.Context) (string, error) {
	select {
	case message := <-l.messages:
		return message, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (l *busLine) Close() {
	l.on.mu.Lock()
	defer l.on.mu.Unlock()
	delete(l.on.lines, l)
}

func newOpening(s *store) *opening {
	return &opening{s: s, hub: notify.New(notify.Config{Connect: s.bus.connect, Send: s.bus.send, Within: time.Minute, Name: "test"})}
}

// waking is an opening that is a persist.Notifier.
type waking struct{ *opening }

func (o waking) FinishesLate() persist.Journal {
	if o.s.m.lateOther {
		return o.opening
	}
	return o
}

// Notify implements persist.Notifier.
func (o waking) Notify() {
	if o.s.m.notify != nil {
		o.s.m.notify(o.opening)
		return
	}
	o.hub.Notify()
}

// Listen implements persist.Notifier.
func (o waking) Listen(ctx context.Context, heard func(error)) error {
	if o.s.m.listen != nil {
		return o.s.m.listen(o.opening, ctx, heard)
	}
	return o.hub.Listen(ctx, heard)
}

// mutantNotifyWakes: the third notification is lost.
func mutantNotifyWakes() mutant {
	return mutant{wakes: true, patience: 10 * time.Second, notify: func(o *opening) {
		if o.s.count("notify") != 3 {
			o.hub.Notify()
		}
	}}
}

// mutantNotifyFew: each call is a notification.
func mutantNotifyFew() mutant {
	return mutant{wakes: true, notify: func(o *opening) { _ = o.s.bus.send(context.Background(), "") }}
}

// mutantNotifyClose: what was not sent yet is dropped.
func mutantNotifyClose() mutant {
	return mutant{wakes: true, patience: 10 * time.Second, notify: func(o *opening) {
		if o.s.count("notify") == 1 {
			o.hub.Notify()
			return
		}
		go func() {
			time.Sleep(notify.Every)
			if !o.shut.Load() {
				o.hub.Notify()
			}
		}()
	}}
}

// mutantNotifyEnds: Listen takes the end of the journal for that of its context.
func mutantNotifyEnds() mutant {
	return mutant{
		wakes: true,
		fails: []string{"close/closed"},
		listen: func(o *opening, ctx context.Context, heard func(error)) error {
			if err := o.hub.Listen(ctx, heard); ctx.Err() != nil {
				return err
			}
			return context.Canceled
		},
	}
}
