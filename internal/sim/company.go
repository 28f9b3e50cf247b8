package sim

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the settings in which clients of one journal differ at the same time, beside those of variant.go, and the
// checks of these settings' staying with their clients.

// company is the local part of a variant: nothing of it may show in a record begun by another client.
type company struct {
	limiter   limiterKind
	patient   bool  // the client's own pauses are of hours
	bodies    int64 // Config.MaxRequestBytes
	corrected bool  // the profile of the same name and version has half the window
	build     build // it freezes values of its own
	hasty     bool  // sweeps keep as little as a Config can
}

// limiterKind is a way of Config.Limiter to keep a client from sending.
type limiterKind uint8

const (
	noLimiter limiterKind = iota
	refuses               // it returns an error, every second time
	waits                 // it lets a send wait, for minutes
)

// build is the version of a life's client. Each later one freezes a value, unknown to this build, in the records begun by it. The later
// builds know all these values.
type build uint8

const (
	thisBuild build = iota
	laterCarrier
	laterRecipe
)

// Values frozen by later builds.
const (
	unknownCarrier = "trailer"
	unknownRecipe  = "v9:"
)

// later reports whether this run of the program is of the later build: in some simulations two builds work on one journal. Once the faults have
// stopped, all are.
func (l *life) later() bool {
	return l.variant.company.build != thisBuild || l.w.plan.Setting.Changes.Builds && l.w.calm.Load()
}

// frozen returns a new record as the build that this process simulates writes it: some processes run a later build, with a carrier or a recipe
// unknown to the present one.
func (l *life) frozen(rec persist.Record) persist.Record {
	switch {
	case l.variant.company.build == laterCarrier && rec.Carrier == string(profile.Header):
		rec.Carrier = unknownCarrier
	case l.variant.company.build == laterRecipe:
		rec.Recipe = unknownRecipe + rec.Recipe
	}
	return rec
}

// known returns a record as the build of this process reads it. A later build knows the carrier and the recipe that frozen has put in; the present
// one does not.
func (l *life) known(rec persist.Record) persist.Record {
	if !l.later() {
		return rec
	}
	if rec.Carrier == unknownCarrier {
		rec.Carrier = string(profile.Header)
	}
	rec.Recipe = strings.TrimPrefix(rec.Recipe, unknownRecipe)
	return rec
}

// company draws how the processes of a run differ: in their limiters, pauses, bounds of bodies, windows, keeping times and builds.
func (s *Setting) company(r *rand.Rand) {
	s.Changes.Limits = r.IntN(3) == 0
	s.Changes.Pauses = r.IntN(3) == 0
	s.Changes.Bodies = r.IntN(3) == 0
	s.Changes.Windows = r.IntN(3) == 0
	s.Changes.Keeping = r.IntN(3) == 0
	s.Changes.Builds = r.IntN(4) == 0
}

// company draws the settings of one run of the program that differ from those of other processes, as far as this simulation lets processes differ.
func (c *Changes) company(r *rand.Rand) (own company) {
	if c.Limits {
		own.limiter = pick(r, noLimiter, refuses, waits)
	}
	own.patient = c.Pauses && r.IntN(2) == 0
	if own.bodies = bodyMax; c.Bodies {
		own.bodies = pick[int64](r, bodyMax, 60)
	}
	own.corrected = c.Windows && r.IntN(2) == 0
	own.hasty = c.Keeping
	if c.Builds {
		own.build = pick(r, thisBuild, laterCarrier, laterRecipe)
	}
	return own
}

// patience is MaxDelay and MaxPause of a patient client. It is longer than the waits asked for by servers.
const patience = 3 * time.Hour

// askedMax is the longest wait asked for by the mock server, with the addition of a schedule: see weather.
const askedMax = 2*time.Hour + time.Minute

// slack is the most added to a wait by the way to the journal, and by a clock known only roughly.
const slack = time.Minute

// apply sets the values in which this process differs from the others in the Config of one of its runs: long pauses (patient), half the window (corrected; the
// profile of the next version has that already), small bodies, and a limiter. Once the faults have stopped (calm) no client lacks anything.
func (c *company) apply(w *world, l *life, cfg *oncehttp.Config) {
	if c.patient {
		cfg.Retry.MaxDelay, cfg.Retry.MaxPause = patience, patience
	}
	if c.corrected && !l.variant.next {
		cfg.Profile = cfg.Profile.Clone()
		cfg.Profile.Window.Floor /= 2
	}
	if w.calm.Load() {
		return
	}
	cfg.MaxRequestBytes = c.bodies
	if c.limiter != noLimiter {
		limits := &limiter{l: l, kind: c.limiter}
		cfg.Limiter = func(string) oncehttp.Limiter { return limits }
	}
}

// window returns the time for which this process takes the server to know a key, by its profile. In some runs one of the clients has a corrected profile, with
// half that time (corrected). The next version (next) has half of it, too, but its records say so: the caller takes the shorter of the two.
func (l *life) window() time.Duration {
	window := l.w.plan.Setting.Profile.Window.Floor
	if l.variant.company.corrected && !l.variant.next {
		window /= 2
	}
	return window
}

// limiter is Config.Limiter of one life.
type limiter struct {
	l     *life
	kind  limiterKind
	asked atomic.Int64
}

var errLimited = errors.New("sim: not now")

// Wait implements [oncehttp.Limiter]. By chance it refuses, or waits up to 3 minutes. Once the faults have stopped (calm), it returns at once.
func (m *limiter) Wait(ctx context.Context) error {
	r := m.l.w.dice.of("limiter "+m.l.name, int(m.asked.Add(1)))
	switch {
	case m.l.w.calm.Load():
		return nil
	case m.kind == refuses && r.IntN(2) == 0:
		return errLimited
	case m.kind == refuses:
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(upTo(r, 3*time.Minute)):
		return nil
	}
}

// sweep calls Client.Sweep. A run of the program that keeps as little as a Config can (hasty) sweeps with a client of its own: with answers for the shortest
// time, or keys as long as their answers.
func (w *world) sweep(l *life, r *rand.Rand) {
	c := l.client(r)
	if l.variant.company.hasty {
		cfg := w.config(l, l.journal, 0)
		if cfg.KeepAnswer = -1; r.IntN(2) == 0 {
			cfg.KeepAnswer, cfg.KeepKey = w.plan.Setting.Profile.Window.Floor, -1
		}
		janitor, err := oncehttp.New(cfg)
		if err != nil {
			panic(err)
		}
		defer func() { _ = janitor.Close() }() // it is a call's own
		c = janitor
	}
	_, err := c.Sweep(context.Background())
	w.logf("sweep: %v", err)
}

// written checks the next due time in a changed record, at the moment of its write: by the record's own pauses, or by the wait that the server asked for
// (askedMax at most). A pending record due later than that, and a little (slack), is a failure.
func (m *model) written(l *life, rec persist.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.w.plan.Setting.Clocks { // nobody can say when it is due
		return
	}
	pause := max(cmp.Or(rec.Pauses.Most, usualPause), askedMax)
	if wait := time.Until(rec.NextAttempt); rec.State == persist.StatePending && wait > pause+slack {
		m.failLocked(TriedAgain, "%s lets %q wait for %v, and it has pauses of %v", l.name, rec.Key, wait, rec.Pauses.Most)
	}
}

// usualPause is Policy.MaxPause by default.
const usualPause = 15 * time.Minute
