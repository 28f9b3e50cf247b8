package journaltest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Leasing is a journal as another process sees it: the same records and leases, and nothing else in common.
type Leasing struct {
	persist.Journal
	persist.Claimer
	persist.Attachment
}

// Attach implements [persist.Journal]: it returns the value that all clients of this process share, made by the first call. l stands for one process,
// so it has a value of its own.
func (l *Leasing) Attach(create func() any) any { return l.Attachment.Attach(create) }

// NewLeasing returns j as another process sees it: with leases, so that one process at a time has an operation.
func NewLeasing(j *memory.Journal) persist.Journal { return &Leasing{Journal: j, Claimer: j} }

// FairLeasing is a Leasing with DueTimes: on it Run gives each origin its turn.
type FairLeasing struct {
	Leasing
	To *memory.Journal // the journal shared by the processes
}

// DueTimes implements [persist.DueTimes]. It asks the shared journal.
func (f *FairLeasing) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	return f.To.DueTimes(ctx, q)
}

// NewFairLeasing returns j as another process sees it, with leases and with the DueTimes that a fair Run (a part of the workers for each origin) needs.
func NewFairLeasing(j *memory.Journal) persist.Journal {
	return &FairLeasing{Leasing{Journal: j, Claimer: j}, j}
}

// Freezing is the journal of a process frozen for a time: meanwhile it renews nothing.
type Freezing struct {
	persist.Journal
	persist.Claimer
	from, To time.Time
}

// Freeze makes the process miss its renewals of leases, as if it stood still: from now plus after, for this length. Only renewals stand still; see Renew.
func (f *Freezing) Freeze(after, length time.Duration) {
	f.from = time.Now().Add(after)
	f.To = f.from.Add(length)
}

// Renew implements [persist.Claimer] for a process that a test freezes from one time to To. A renewal of leases in between is late: it waits until To
// first.
func (f *Freezing) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if now := time.Now(); !now.Before(f.from) && now.Before(f.To) {
		time.Sleep(f.To.Sub(now))
	}
	return f.Claimer.Renew(ctx, owner, lease, ids)
}

// OwnProcess is a journal as another process has it open: the same records, and nothing attached.
type OwnProcess struct {
	persist.Journal
	attached persist.Attachment
}

// Attach implements [persist.Journal]: it returns the value that all clients of this process share, made by the first call. p stands for one process,
// so it has a value of its own.
func (p *OwnProcess) Attach(create func() any) any { return p.attached.Attach(create) }

// Unwrap returns the journal below, for persist.As, which looks there for optional interfaces.
func (p *OwnProcess) Unwrap() persist.Journal { return p.Journal }
