package oncehttp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// clock is the clock by which records are stamped and judged: that of the journal where several machines share it, so
// that their own need not agree, else this process's own. All clients of one journal in this process have one. It is
// safe for concurrent use.
type clock struct {
	journal persist.Claimer // nil: this process's own clock
	own     func() moment   // reads this process's own clock

	asking chan struct{} // holds one while somebody asks the journal, so that one asks for all
	mu     sync.Mutex
	last   reading // zero: the journal was not asked yet
	asked  int     // how often the journal was asked
	err    error   // of the last time
	told   bool    // that the own clock is off
}

// moment is what this process's own clock shows: the wall clock, which may be set, and the monotonic one, which may stand
// still while the machine sleeps.
type moment struct {
	wall      time.Time
	monotonic time.Duration // since the start of the program
}

var programStart = time.Now()

// ownClock reads this process's own clock, once for both: Do reads it a dozen times.
func ownClock() moment {
	now := time.Now()
	return moment{now, now.Sub(programStart)}
}

// reading is what the journal's clock showed at some moment between before and after by the own clock.
type reading struct {
	shown         time.Time
	before, after moment
}

// The journal is asked for the time again when the last reading is older than readingAge, or when the own wall clock
// and the monotonic one have come apart by readingDrift since.
const (
	readingAge   = time.Minute
	readingDrift = time.Second
)

// newClock returns the clock of a journal.
func newClock(j persist.Journal) *clock {
	shared, _ := persist.As[persist.Claimer](j)
	return &clock{journal: shared, own: ownClock, asking: make(chan struct{}, 1)}
}

// now is the latest time that it can be. What is judged by it, such as a retention window, ends too early if anything.
func (c *clock) now() time.Time {
	own, last := c.own(), c.reading()
	if last.shown.IsZero() {
		return own.wall
	}
	wall, monotonic := own.since(last.before)
	return last.shown.Add(max(wall, monotonic, 0))
}

// earliest is the earliest time that it can be. A first send that is stamped with it ends its window too early if
// anything.
func (c *clock) earliest() time.Time {
	own, last := c.own(), c.reading()
	if last.shown.IsZero() {
		return own.wall
	}
	wall, monotonic := own.since(last.after)
	return last.shown.Add(max(min(wall, monotonic), 0))
}

// since is the time since an earlier moment, by the wall clock and by the monotonic one.
func (m moment) since(from moment) (wall, monotonic time.Duration) {
	return m.wall.Round(0).Sub(from.wall.Round(0)), m.monotonic - from.monotonic
}

// sync asks the journal for the time, if that is needed. Whoever begins to stamp or judge a record calls it before.
// Errors: the journal's.
func (c *clock) sync(ctx context.Context, cfg *Config) error {
	if c.journal == nil || c.fresh() {
		return nil
	}
	asked, _ := c.answered()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if c.fresh() { // another has asked meanwhile
		return nil
	}
	if again, err := c.answered(); again != asked && err != nil { // in vain: not all who waited ask one after the other
		return err
	}
	before := c.own()
	shown, err := c.journal.Now(ctx)
	if err == nil {
		c.learn(ctx, cfg, shown, before)
	}
	if ctx.Err() == nil { // it says nothing to the others that this caller left
		c.mu.Lock()
		c.asked, c.err = c.asked+1, err
		c.mu.Unlock()
	}
	return err
}

// notice is sync for who has called that a while ago, and goes on to stamp or judge the record: the journal is asked only
// if the own clock was set meanwhile, or the machine has slept.
func (c *clock) notice(ctx context.Context, cfg *Config) error {
	if last := c.reading(); !last.shown.IsZero() && c.steady(last) {
		return nil
	}
	return c.sync(ctx, cfg)
}

// fresh reports whether the last reading may still be used.
func (c *clock) fresh() bool {
	last := c.reading()
	_, monotonic := c.own().since(last.after)
	return !last.shown.IsZero() && monotonic < readingAge && c.steady(last)
}

// steady reports whether the own clocks have run alike since a reading.
func (c *clock) steady(since reading) bool {
	wall, monotonic := c.own().since(since.after)
	return (wall - monotonic).Abs() < readingDrift
}

// answered says how often the journal was asked, and the last error.
func (c *clock) answered() (times int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.err
}

// learn notes what the journal's clock showed in a call that began at before and has just returned. The first time that
// the own clock is off by more than Config.ClockSkew, the logger is told. A zero time, beside an error, is nothing.
func (c *clock) learn(ctx context.Context, cfg *Config, shown time.Time, before moment) {
	if shown.IsZero() {
		return
	}
	after := c.own()
	off := max(before.wall.Sub(shown), shown.Sub(after.wall))
	c.mu.Lock()
	c.last = reading{shown: shown, before: before, after: after}
	tell := off > cfg.ClockSkew && !c.told
	c.told = c.told || tell
	c.mu.Unlock()
	if tell {
		cfg.log(ctx, slog.LevelWarn, "this machine's clock is off by "+off.Round(time.Second).String()+
			" from that of the journal, by which all operations are judged; set it right", "", nil)
	}
}

func (c *clock) reading() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
