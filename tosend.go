package oncehttp

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what a fair Run knows of operations that its claim has marked as maybe sent: whether it may send one without a
// further write.

// claim is one that marks what it takes, while it is under way.
type claim struct {
	touched map[persist.ID]bool // see leases.touched
}

// claiming is called before a claim that marks what it takes. Its result goes to claimed.
func (l *leases) claiming() *claim {
	if l == nil {
		return nil
	}
	c := &claim{touched: map[persist.ID]bool{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[c] = true
	return c
}

// touched is called when a call that is no fair Run's has the place of the operation, when it begins and before it ends. Who
// holds a claim from before, or gets the answer to one that was under way meanwhile, does not know whether that call has sent the
// operation, nor whether the record is as the claim left it.
func (l *leases) touched(id persist.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.claims {
		c.touched[id] = true
	}
	if at := l.held[id]; at != nil {
		at.marked = time.Time{}
	}
}

// unwritten is called when the journal did not take a change. Until it has taken another, nothing is sent on the strength of
// a mark that it took before: what comes of it could not be written.
func (l *leases) unwritten() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.held {
		at.marked = time.Time{}
	}
}

// claimSending is how long after a claim that marks a send may still be on its way: marked lets it begin for a lease.
func (c *Config) claimSending() time.Duration { return c.Lease + c.Retry.sending() }

// marked begins the run of a record that may be sent now, as begin does, and sets its fields as the claim has set them in the
// journal, if that has marked it, and nothing has happened to it since. It returns false if the mark has to be written: also where
// the claim is longer ago than a lease, since the time in which the operation may be sent would have begun that much too early.
// Only a fair Run that has the place of the operation may ask: a call that was there while the record was claimed would send it
// at the revision at which the Run may give it back.
func (l *leases) marked(rec *persist.Record) bool {
	if l == nil {
		return false
	}
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[rec.ID]
	switch {
	case at == nil || at.runs || at.lost || at.marked.IsZero() || at.revision != rec.Revision:
		return false
	case !now.Before(at.until) || now.Sub(at.marked) > l.cfg.Lease:
		return false
	}
	rec.MaybeSent, rec.FirstSent, rec.LeaseUntil = true, at.marked, at.until
	rec.ExtendSendUntil(at.marked.Add(l.cfg.claimSending()))
	at.users++
	at.begin(rec)
	return true
}
