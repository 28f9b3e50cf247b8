// Package replay plays histories that package explore has drawn over the decisions of package operation through the whole client: it has to take
// the same steps, tell its callers the same, and leave the same record.
package replay_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/operation/explore"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

var (
	histories = flag.Int("histories", testrun.N(100, 1000), "how many histories are replayed on each journal")
	seed      = flag.Uint64("seed", 1, "the seed of the first one")
)

// slices returns the slices that one process plays.
func slices() []*explore.Slice {
	var all []*explore.Slice
	bounds := explore.Bounds{Calls: 4, Sends: 4, Crashes: 2, Fails: 2, Acts: 2, Times: 1}
	for _, kind := range []explore.ServerKind{explore.KeepsAll, explore.KeepsSuccess, explore.KeepsErrors, explore.KeepsNothing} {
		limits := explore.Config{Limits: explore.Usual(), Profile: explore.ProfileOf(kind), Window: window}
		for _, enqueued := range []bool{false, true} {
			all = append(all, &explore.Slice{
				Name: fmt.Sprintf("server %d, enqueued %t", kind, enqueued), Server: kind, Configs: [2]explore.Config{limits, limits}, Bounds: bounds,
				Times: times(enqueued), Enqueued: enqueued, BeginFail: !enqueued,
			})
		}
	}
	return all
}

// window is that of the profiles.
const window = 24 * time.Hour

// times are the times of a history, with room for the pauses that passes wait for.
func times(enqueued bool) []time.Duration {
	if enqueued {
		return []time.Duration{0, 13 * time.Hour}
	}
	return []time.Duration{0, window + time.Hour}
}

// TestReplay: the client does what was explored.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"memory", "bolt"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			all, met := slices(), map[explore.Event]bool{}
			for i := range *histories {
				s, at := all[i%len(all)], *seed+uint64(i)
				steps := draw(s, at)
				for _, step := range steps {
					met[explore.Event{Did: step.Did, Answer: step.Answer}] = true
				}
				if err := play(t, kind, s, steps); err != nil {
					t.Errorf("seed %d, %s: %v\n%s", at, s.Name, err, words(steps))
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d histories, %d kinds of events with their results", *histories, len(met))
			if *histories >= 1000 {
				checkMet(t, met)
			}
		})
	}
}

// checkMet reports which of the events that this driver can make happen were in no history: each way in which a step comes out, and each answer.
func checkMet(t *testing.T, met map[explore.Event]bool) {
	t.Helper()
	known := map[explore.Did]bool{}
	for e := range met {
		known[e.Did] = true
	}
	for _, did := range []explore.Did{
		explore.Begins, explore.BeginFails, explore.BeginUncertain, explore.BeginUncertainWritten, explore.GoesOn, explore.PassGoesOn, explore.MarkFails,
		explore.MarkFailsWritten, explore.GivesRecorded, explore.SaysRecorded, explore.Enqueues, explore.EnqueuesBeside, explore.Abandons,
		explore.SettlesHappened, explore.SettlesAbsent, explore.Crashes, explore.CrashLoses, explore.TimePasses, explore.LateSendArrives,
		explore.LateSendIsGone, explore.Checks, explore.HasNoConnection, explore.SendIsLost, explore.ServerAnswers, explore.AnswerIsLost,
		explore.DrawsWait, explore.IsGivenUp, explore.Waits, explore.WaitIsCut, explore.KeyHasOnePlace, explore.LooksAgain, explore.LookFails,
		explore.Writes, explore.WriteFails, explore.WriteFailsWritten, explore.Flushes, explore.FlushFails,
	} {
		if !known[did] {
			t.Errorf("no history has the event %q", explore.Event{By: -1, Did: did})
		}
	}
	for _, a := range explore.Answers(explore.KeepsAll) {
		if a.Status != 409 && !met[explore.Event{Did: explore.ServerAnswers, Answer: a.Text}] {
			t.Errorf("in no history the server %s", a.Text)
		}
	}
}

// draw draws a history.
func draw(s *explore.Slice, seed uint64) []explore.Step {
	r := rand.New(rand.NewPCG(seed, 0))
	for {
		steps, _ := s.Walk(r, passes)
		if len(steps) > 0 && playable(steps) {
			return steps
		}
	}
}

// passes leaves out what this driver cannot make happen: time that passes within a drive, and acts of people there.
func passes(w *explore.World, e *explore.Event) bool {
	switch e.Did {
	case explore.TimePasses, explore.EnqueuesBeside, explore.Abandons, explore.SettlesHappened, explore.SettlesAbsent:
		return w.Idle()
	case explore.HoldsToUndo, explore.PlacesUnknown, explore.LookupFails:
		return false
	}
	return true
}

// playable reports whether an end that a crash loses is not looked at before.
func playable(steps []explore.Step) bool {
	for i := range steps {
		if steps[i].Did == explore.CrashLoses && lostEnd(steps[:i]) < 0 {
			return false
		}
	}
	return true
}

// lostEnd returns the write that a crash after these steps loses, if nothing has looked at it since; else -1.
func lostEnd(steps []explore.Step) int {
	for i := len(steps) - 1; i >= 0; i-- {
		switch steps[i].Did {
		case explore.Writes, explore.WriteFailsWritten:
			return i
		case explore.LateSendArrives, explore.LateSendIsGone, explore.TimePasses, explore.FlushFails:
		default:
			return -1
		}
	}
	return -1
}

// words returns a history in words.
func words(steps []explore.Step) string {
	var b strings.Builder
	for _, step := range steps {
		b.WriteString("\t" + step.String() + "\n")
	}
	return b.String()
}

// play plays one history in a bubble of virtual time.
func play(t *testing.T, kind string, s *explore.Slice, steps []explore.Step) (failed error) {
	t.Helper()
	dir := testrun.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		p := &player{slice: s, steps: steps, began: time.Now()}
		p.open(t, kind, dir)
		defer func() { _ = p.beneath.Close() }()
		for p.at < len(p.steps) && p.wrong == nil {
			p.next()
		}
		p.stop()
		failed = p.wrong
	})
	return failed
}

const key = oncehttp.Key("order-1")

// config returns the Config of each client.
func (p *player) config() oncehttp.Config {
	l := explore.Usual()
	cfg := oncehttp.Config{
		Journal: &journal{Journal: p.beneath, player: p, life: p.life}, Transport: roundTripper{p, p.life}, Profile: p.slice.Configs[0].Profile,
		EnqueueMaxAge: 12 * time.Hour, ClockSkew: l.ClockSkew, Logger: slog.New(slog.DiscardHandler), Observe: p.observe,
	}
	cfg.Retry.MaxAttempts, cfg.Retry.MaxInFlight, cfg.Retry.MaxElapsed = l.MaxAttempts, l.MaxInFlight, l.MaxElapsed
	cfg.Retry.AttemptTimeout, cfg.Retry.MaxDelay, cfg.Retry.MaxRetryAfter = l.AttemptTimeout, l.MaxDelay, l.MaxRetryAfter
	return cfg
}

// next plays the next steps, up to the end of a drive.
func (p *player) next() {
	step := p.steps[p.at]
	switch step.Did {
	case explore.Begins, explore.BeginFails, explore.BeginUncertain, explore.BeginUncertainWritten, explore.GoesOn, explore.MarkFails, explore.MarkFailsWritten,
		explore.GivesRecorded, explore.SaysRecorded:
		p.do()
	case explore.PassGoesOn:
		p.pass()
	case explore.Enqueues, explore.EnqueuesBeside:
		p.at++
		p.acting = true
		p.check(p.client.Enqueue(p.request(context.Background()), key))
		p.acting = false
	case explore.Abandons, explore.SettlesHappened, explore.SettlesAbsent:
		p.act(step.Did)
	case explore.TimePasses:
		p.at++
		p.sleepUntil(p.began.Add(p.slice.Times[1]))
	case explore.Crashes, explore.CrashLoses:
		p.at++
		p.restart()
	case explore.LateSendArrives, explore.LateSendIsGone:
		p.at++
	default:
		p.fail("nobody drives, and the history goes on with %q", step.Event)
	}
}

func (p *player) request(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/payments", strings.NewReader(`{"amount":1}`))
	if err != nil {
		panic(err)
	}
	return req
}

// do makes one Do, and holds its end against the history.
func (p *player) do() {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { p.cancel = nil; cancel() }()
	p.cancel = cancel
	resp, err := p.client.DoKey(p.request(ctx), key)
	if resp != nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	told, status := explore.ToldAnswer, 0
	switch {
	case errors.Is(err, oncehttp.ErrNoEffect):
		told = explore.ToldNoEffect
	case errors.Is(err, oncehttp.ErrFinal):
		told = explore.ToldFinal
	case err != nil:
		told = explore.ToldUnknown
	default:
		status = resp.StatusCode
	}
	p.ended(told, status, err)
}

// pass makes one Resume, once the operation is due.
func (p *player) pass() {
	p.sleepUntil(p.due())
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { p.cancel = nil; cancel() }()
	p.cancel = cancel
	n := 0
	for _, err := range p.client.Resume(ctx) {
		n++
		var failed *oncehttp.Error
		if err != nil && !errors.As(err, &failed) && ctx.Err() == nil && !p.crashed {
			p.fail("Resume: %v", err)
		}
	}
	if n == 0 && !p.crashed {
		p.fail("Resume found nothing that is due")
		return
	}
	p.ended(explore.ToldOver, 0, nil)
}

// due returns when the operation is due.
func (p *player) due() time.Time {
	rec, err := p.beneath.Get(context.Background(), persist.ID{Key: string(key)})
	if err != nil {
		return time.Now()
	}
	return rec.NextAttempt
}

func (p *player) sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		time.Sleep(d)
	}
}

// ended holds the end of a call against the history.
func (p *player) ended(told explore.Told, status int, err error) {
	if p.crashed {
		p.crashed = false
		return
	}
	if p.wrong != nil {
		return
	}
	last := p.steps[p.latest]
	want := last.Told
	if want == explore.ToldNothing && (last.Did == explore.MarkFails || last.Did == explore.MarkFailsWritten) {
		want = map[bool]explore.Told{true: explore.ToldOver, false: explore.ToldUnknown}[told == explore.ToldOver]
	}
	if told != want || want == explore.ToldAnswer && status != int(last.Status) {
		p.fail("after %q a caller is told %d, status %d (%v); want %d, status %d", last.Event, told, status, err, want, last.Status)
		return
	}
	p.compare(last)
}

// compare holds the record against the history.
func (p *player) compare(last explore.Step) {
	rec, err := p.beneath.Get(context.Background(), persist.ID{Key: string(key)})
	switch {
	case errors.Is(err, persist.ErrNotFound) && !last.Exists:
	case p.held != nil: // the write is the one that a crash loses
	case err != nil:
		p.fail("after %q there is no record: %v", last.Event, err)
	case !last.Exists:
		p.fail("after %q there is a record, which is %v", last.Event, rec.State)
	case rec.State != last.Rec.State || rec.HoldReason != last.Rec.Hold || rec.MaybeSent != last.Rec.MaybeSent || rec.Enqueued != last.Rec.Enqueued:
		p.fail("after %q the record is %v (%s), maybe sent %t; want %v (%s), %t", last.Event, rec.State, rec.HoldReason, rec.MaybeSent,
			last.Rec.State, last.Rec.Hold, last.Rec.MaybeSent)
	}
}

// act does what a person does, with the operation as it is.
func (p *player) act(did explore.Did) {
	p.at++
	p.acting = true
	defer func() { p.acting = false }()
	ctx := context.Background()
	rec, err := p.client.Lookup(ctx, key)
	if err != nil {
		p.fail("Lookup: %v", err)
		return
	}
	switch did {
	case explore.Abandons:
		err = p.client.Abandon(ctx, key, oncehttp.AsSeen(rec))
	case explore.SettlesHappened:
		err = p.client.Settle(ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectHappened}, oncehttp.AsSeen(rec))
	default:
		err = p.client.Settle(ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(rec))
	}
	p.check(err)
	p.compare(p.steps[p.at-1])
}
