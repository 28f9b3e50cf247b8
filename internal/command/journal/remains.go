package journal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/persist"
)

// remains counts unfinished operations.
type remains struct {
	many   map[persist.State]int // of this call
	others map[persist.State]int // of other keys
	due    time.Time             // when the first of many may be sent; zero: none
	away   leased
}

// String returns the numbers of operations that are still pending or held, in words.
func (r *remains) String() string {
	text := fmt.Sprintf("left: %d pending, %d held", r.many[persist.StatePending], r.many[persist.StateHeld])
	if len(r.others) > 0 {
		text += fmt.Sprintf("; of other keys: %d pending, %d held", r.others[persist.StatePending], r.others[persist.StateHeld])
	}
	return text
}

// remaining counts the operations that are unfinished after a resume: of --account, or of all accounts without it. If keys are named, operations of other keys are
// counted apart. It finds the time of the next attempt, too.
func (f *resumeFlags) remaining(ctx context.Context, ses *session.Session, keys []string, now time.Time) (*remains, error) {
	r := &remains{many: map[persist.State]int{}, others: map[persist.State]int{}}
	whole := *ses
	if only, is := persist.As[interface{ all() persist.Journal }](ses.Journal); is { // the journal shows the named keys alone
		whole.Journal = only.all()
	}
	see, q := whole.Seeing(ctx), f.Query() // Seeing asks for the time, and so comes before the records are read
	q.States = unfinished()
	err := session.EachRecord(ctx, &whole, q, func(rec *persist.Record) error {
		if len(keys) > 0 && !slices.Contains(keys, rec.Key) {
			r.others[rec.State]++
			return nil
		}
		r.many[rec.State]++
		see.Set(rec)
		if r.away.add(rec, now); rec.LeaseOwner != "" {
			return nil // it is due once it is free
		}
		if rec.State == persist.StatePending && (r.due.IsZero() || rec.NextAttempt.Before(r.due)) {
			r.due = rec.NextAttempt
		}
		return nil
	})
	return r, err
}

// leased are the operations that other processes have.
type leased struct {
	n    int
	free time.Time // when the last of them is free, unless it is renewed; zero: nobody knows
}

// add counts an unfinished record if another process has its lease (its claim to send), and keeps the time at which the last such lease ends.
func (l *leased) add(rec *persist.Record, now time.Time) {
	if rec.LeaseOwner == "" {
		return
	}
	l.n++
	if rec.LeaseUntil.After(l.free) {
		l.free = rec.LeaseUntil
	}
}

// say prints why operations leased to other processes (claimed by them) were not sent, and what to do. A process that was killed has them until its lease ends.
func (l *leased) say(stderr io.Writer, now time.Time) {
	if l.n == 0 {
		return
	}
	free := ""
	if l.free.After(now) {
		free = "; free in " + view.Roughly(l.free.Sub(now)+time.Second-1) // whole seconds, rounded up
	}
	terminal.Say(stderr, "another process has %d of them, or had when it died%s; say the same again then", l.n, free)
}
