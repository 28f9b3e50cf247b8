package lease

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// Clock stamps and judges records. In a shared journal it is the journal's own, so that the clocks of
// machines need not agree; else it is this process's. All clients of a journal in this process have one. It is safe for concurrent use.
type Clock struct {
	journal persist.Claimer // nil: this process's own clock
	own     func() Moment   // reads this process's own clock

	last   atomic.Pointer[reading] // nil: the journal was not asked yet; an operation reads it dozens of times
	asking chan struct{}           // holds one while somebody asks the journal: one asks for all
	mu     sync.Mutex
	asked  int   // how often the journal was asked
	err    error // of the last time
	told   bool  // of the own clock: it is off
}

// Moment is a time by this process's own clocks: the wall clock (it may be set) and the monotonic one (it may stand still during sleep).
type Moment struct {
	wall      time.Time
	monotonic time.Duration // since the start of the program
}

var programStart = time.Now()

// ownClock reads both of this process's clocks at once.
func ownClock() Moment {
	now := time.Now()
	return Moment{now, now.Sub(programStart)}
}

// reading is a time by the journal's clock. It was read between two moments.
type reading struct {
	shown         time.Time
	before, after Moment
}

// The journal is asked again after readingAge, or once the wall clock and the monotonic clock differ by readingDrift since the last reading.
const (
	readingAge   = time.Minute
	readingDrift = time.Second
)

// NewClock returns the clock of a journal: it asks the journal for the time if other processes may use it (a persist.Claimer), and else it is this process's own.
func NewClock(j persist.Journal) *Clock {
	shared, _ := persist.As[persist.Claimer](j)
	return &Clock{journal: shared, own: ownClock, asking: make(chan struct{}, 1)}
}

// Own reads this process's own clock: the wall clock, and the monotonic one beside it.
func (c *Clock) Own() Moment { return c.own() }

// SetOwn gives the process another wall clock of its own. For tests; not while the clock is in use.
func (c *Clock) SetOwn(wall func() time.Time) {
	c.own = func() Moment { return Moment{wall(), ownClock().monotonic} }
}

// OwnClock returns a clock with the time of now. It asks no journal. For tests.
func OwnClock(now func() time.Time) *Clock {
	return &Clock{own: func() Moment { return Moment{wall: now()} }}
}

// Now returns the latest possible time, by the journal's clock. A window (the time during which a repeat is safe) judged by it ends too early rather than too late.
func (c *Clock) Now() time.Time {
	own, last := c.own(), c.reading()
	if last.shown.IsZero() {
		return own.wall
	}
	wall, monotonic := own.since(last.before)
	return last.shown.Add(max(wall, monotonic, 0))
}

// Earliest returns the earliest possible time, by the journal's clock. A window (the time during which a repeat is safe) begun with it ends too early rather than
// too late.
func (c *Clock) Earliest() time.Time {
	own, last := c.own(), c.reading()
	if last.shown.IsZero() {
		return own.wall
	}
	wall, monotonic := own.since(last.after)
	return last.shown.Add(max(min(wall, monotonic), 0))
}

// since returns the time since an earlier moment, by each clock.
func (m Moment) since(from Moment) (wall, monotonic time.Duration) {
	return m.wall.Round(0).Sub(from.wall.Round(0)), m.monotonic - from.monotonic
}

// Sync asks the journal for the time, if the last reading is too old, so that Now and Earliest are exact. Call it before a record is stamped or judged. One caller
// asks for all that wait. Errors: the journal's, errClockSet if this process's own clock was set during each try, and the cause of ctx.
func (c *Clock) Sync(ctx context.Context, host *Host) error {
	if c.journal == nil || c.fresh() {
		return nil
	}
	asked, _ := c.answered()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return sanitize.Cause(ctx)
	}
	if c.fresh() { // another has asked meanwhile
		return nil
	}
	if again, err := c.answered(); again != asked && err != nil { // in vain: not all who waited ask one after the other
		return err
	}
	err := errClockSet
	for tries := 0; tries < syncTries && err == errClockSet; tries++ {
		before, shown := c.own(), time.Time{}
		if shown, err = c.journal.Now(ctx); err == nil && !c.Learn(ctx, host, shown, before) {
			err = errClockSet
		}
	}
	if ctx.Err() == nil { // this caller's leaving says nothing to the others
		c.mu.Lock()
		c.asked, c.err = c.asked+1, err
		c.mu.Unlock()
	}
	return err
}

// syncTries bounds the questions of one Sync. A reading during which the own clock was set says nothing.
const syncTries = 3

var errClockSet = errors.New("the clock of this machine was set again and again while the journal told its time")

// Notice asks the journal for the time, as Sync does, but only if this process's clock was set since the last reading, or the machine has slept, or there was no
// reading yet. It is called after a wait, before a record is judged.
func (c *Clock) Notice(ctx context.Context, host *Host) error {
	if last := c.reading(); !last.shown.IsZero() && c.steady(last) {
		return nil
	}
	return c.Sync(ctx, host)
}

// fresh reports whether the last reading of the journal's time is young enough to count.
func (c *Clock) fresh() bool {
	last := c.reading()
	_, monotonic := c.own().since(last.after)
	return !last.shown.IsZero() && monotonic < readingAge && c.steady(last)
}

// steady reports whether the wall clock and the monotonic clock have advanced alike since a reading. Otherwise the wall clock was set, or the machine
// slept.
func (c *Clock) steady(since reading) bool {
	wall, monotonic := c.own().since(since.after)
	return (wall - monotonic).Abs() < readingDrift
}

// answered returns the number of times that the journal was asked for its time, and the last error. A caller of Sync that has waited for another
// one's question finds its answer so.
func (c *Clock) answered() (times int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.err
}

// Learn notes the time that the journal has shown in a call begun at before and just over. A zero time is ignored. If this process's clock differs by more than
// Host.Skew, the logger is told once. It returns false, and notes nothing, if the clock was set during the call, or the machine slept: then nobody can say how
// much time has passed since.
func (c *Clock) Learn(ctx context.Context, host *Host, shown time.Time, before Moment) bool {
	after := c.own()
	wall, monotonic := after.since(before)
	switch {
	case shown.IsZero():
		return true
	case (wall - monotonic).Abs() >= readingDrift:
		return false
	}
	off := max(before.wall.Sub(shown), shown.Sub(after.wall))
	c.last.Store(&reading{shown: shown, before: before, after: after})
	c.mu.Lock()
	tell := off > host.Skew && !c.told
	c.told = c.told || tell
	c.mu.Unlock()
	if tell {
		host.Log(ctx, slog.LevelWarn, "this machine's clock is off from that of the journal, by which all operations are judged; set it right", nil,
			slog.Duration("off", off.Round(time.Second)))
	}
	return true
}

// reading returns the last comparison of the journal's clock with this process's own; zero if there was none.
func (c *Clock) reading() reading {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return reading{}
}
