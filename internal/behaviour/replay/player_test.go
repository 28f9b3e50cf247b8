package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/operation/explore"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// player plays one history through a client: its journal and its transport take from it what happens.
type player struct {
	slice   *explore.Slice
	steps   []explore.Step
	at      int // the next step
	latest  int // the latest one that the client took part in
	wrong   error
	began   time.Time
	beneath persist.Journal
	client  *oncehttp.Client
	life    int // of the process
	cancel  context.CancelFunc
	acting  bool            // a person acts, or an Enqueue comes: the journal does what it is asked
	crashed bool            // the process that runs the call has died
	held    *persist.Record // an end that a crash will lose
}

var (
	errDead = errors.New("replay: this process is dead")
	errFull = errors.New("replay: no space")
	errLost = errors.New("replay: connection reset")
)

// taken goes past a step that the client took part in.
func (p *player) taken() {
	p.latest = p.at
	p.at++
}

func (p *player) fail(format string, args ...any) {
	if p.wrong == nil {
		p.wrong = fmt.Errorf(format, args...)
	}
}

func (p *player) check(err error) {
	if err != nil {
		p.fail("after %q: %v", p.steps[max(p.at-1, 0)].Event, err)
	}
}

// open opens the journal that outlives the processes, and the first process.
func (p *player) open(t *testing.T, kind, dir string) {
	t.Helper()
	if p.beneath = memory.New(); kind == "bolt" {
		file, err := bolt.Open(filepath.Join(dir, "j.db"), bolt.Options{Sync: func(*os.File) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		p.beneath = file
	}
	p.restart()
}

// restart begins another process. The one before reaches nothing any more.
func (p *player) restart() {
	p.life++
	p.held = nil
	client, err := oncehttp.New(p.config())
	if err != nil {
		p.fail("New: %v", err)
		return
	}
	p.client = client
}

// stop ends the last process.
func (p *player) stop() { p.life++ }

// take takes the next step, which must be one of these kinds. ok is false if the process dies, or if the history says otherwise.
func (p *player) take(life int, did string, kinds ...explore.Did) (step explore.Step, ok bool) {
	if life != p.life || p.wrong != nil {
		return step, false
	}
	p.skip()
	if p.at == len(p.steps) {
		p.die()
		return step, false
	}
	step = p.steps[p.at]
	if step.Did == explore.Crashes || step.Did == explore.CrashLoses {
		p.at++
		p.die()
		p.restart()
		return step, false
	}
	for _, kind := range kinds {
		if step.Did == kind {
			p.taken()
			p.skip()
			return step, true
		}
	}
	p.fail("the client %s, and the history goes on with %q", did, step.Event)
	return step, false
}

// die lets the call under way reach nothing any more.
func (p *player) die() {
	p.life++
	p.crashed = true
	p.cancel()
}

// skip goes past the steps that nothing of the outside takes part in.
func (p *player) skip() {
	for ; p.at < len(p.steps); p.at++ {
		switch p.steps[p.at].Did {
		case explore.Checks, explore.DrawsWait, explore.Waits, explore.KeyHasOnePlace, explore.LateSendArrives, explore.LateSendIsGone, explore.MayNotLeave:
			if p.steps[p.at].Told != explore.ToldNothing {
				return
			}
		default:
			return
		}
	}
}

// observe gives the call up where the history says so.
func (p *player) observe(_ context.Context, e oncehttp.Event) {
	if p.at >= len(p.steps) {
		return
	}
	switch did := p.steps[p.at].Did; {
	case did == explore.IsGivenUp && e.Kind == oncehttp.EventAnswered, did == explore.WaitIsCut && e.Kind == oncehttp.EventWaiting:
		p.taken()
		p.skip()
		p.cancel()
	}
}

// journal is the journal of one process, which fails and dies as the history says.
type journal struct {
	persist.Journal
	own    persist.Attachment
	player *player
	life   int
}

func (j *journal) Attach(create func() any) any { return j.own.Attach(create) }
func (j *journal) Close() error                 { return nil }

func (j *journal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	p := j.player
	if p.acting {
		return j.Journal.Begin(ctx, rec)
	}
	if existing, err := j.Journal.Get(ctx, rec.ID); err == nil {
		if j.life != p.life {
			return persist.Record{}, false, errDead
		}
		if p.at < len(p.steps) {
			if did := p.steps[p.at].Did; did == explore.GivesRecorded || did == explore.SaysRecorded {
				p.taken()
			}
		}
		return existing, false, nil
	}
	step, ok := p.take(j.life, "begins", explore.Begins, explore.BeginFails, explore.BeginUncertain, explore.BeginUncertainWritten)
	switch {
	case !ok:
		return persist.Record{}, false, errDead
	case step.Did == explore.BeginFails:
		return persist.Record{}, false, errFull
	case step.Did == explore.BeginUncertain:
		return persist.Record{}, false, persist.ErrUncertain
	}
	existing, created, err := j.Journal.Begin(ctx, rec)
	if step.Did == explore.BeginUncertainWritten {
		return persist.Record{}, false, persist.ErrUncertain
	}
	return existing, created, err
}

func (j *journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	p := j.player
	if p.acting {
		return j.Journal.Update(ctx, rec)
	}
	if before, err := j.Journal.Get(ctx, rec.ID); err == nil && j.life == p.life && rec.Drives == before.Drives && rec.SendUntil.After(before.SendUntil) {
		return j.Journal.Update(ctx, rec) // the waits took so long that the time for sends is moved on, which is no step
	}
	if p.at < len(p.steps) && j.life == p.life && rec.State == persist.StateHeld {
		if did := p.steps[p.at].Did; did == explore.GoesOn || did == explore.PassGoesOn { // it is too late for a first send: no mark comes first
			p.at++
		}
	}
	step, ok := p.take(j.life, "updates the record", explore.GoesOn, explore.PassGoesOn, explore.MarkFails, explore.MarkFailsWritten,
		explore.Writes, explore.WriteFails, explore.WriteFailsWritten)
	if !ok {
		return persist.Record{}, errDead
	}
	switch step.Did {
	case explore.MarkFails, explore.WriteFails:
		return persist.Record{}, errFull
	case explore.MarkFailsWritten, explore.WriteFailsWritten:
		_, err := j.Journal.Update(ctx, rec)
		return persist.Record{}, errors.Join(persist.ErrUncertain, err)
	}
	return j.Journal.Update(ctx, rec)
}

func (j *journal) Finish(ctx context.Context, rec persist.Record) error {
	p := j.player
	if p.acting {
		return j.Journal.Finish(ctx, rec)
	}
	step, ok := p.take(j.life, "ends the record", explore.Writes, explore.WriteFails, explore.WriteFailsWritten)
	if !ok {
		return errDead
	}
	if step.Did == explore.WriteFails {
		return errFull
	}
	err := error(nil)
	if p.losesThis() {
		p.held = &rec
	} else {
		err = j.Journal.Finish(ctx, rec)
	}
	if step.Did == explore.WriteFailsWritten {
		return errors.Join(persist.ErrUncertain, err)
	}
	return err
}

// losesThis reports whether a crash loses the end that is written now.
func (p *player) losesThis() bool {
	for i := p.at; i < len(p.steps); i++ {
		if p.steps[i].Did == explore.CrashLoses {
			return lostEnd(p.steps[:i]) == p.at-1
		}
	}
	return false
}

func (j *journal) Forget(ctx context.Context, rec persist.Record) error {
	step, ok := j.player.take(j.life, "forgets the record", explore.Writes, explore.WriteFails, explore.WriteFailsWritten)
	if !ok {
		return errDead
	}
	switch step.Did {
	case explore.WriteFails:
		return errFull
	case explore.WriteFailsWritten:
		return errors.Join(persist.ErrUncertain, j.Journal.Forget(ctx, rec))
	}
	return j.Journal.Forget(ctx, rec)
}

func (j *journal) Flush(ctx context.Context) error {
	p := j.player
	if j.life != p.life {
		return errDead
	}
	if p.at < len(p.steps) && !p.acting {
		switch p.steps[p.at].Did {
		case explore.Flushes, explore.FlushFails, explore.Crashes, explore.CrashLoses:
			step, ok := p.take(j.life, "flushes", explore.Flushes, explore.FlushFails)
			switch {
			case !ok:
				return errDead
			case step.Did == explore.FlushFails:
				return errFull
			}
		}
	}
	return j.Journal.Flush(ctx)
}

func (j *journal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	p := j.player
	if j.life != p.life {
		return persist.Record{}, errDead
	}
	if p.at < len(p.steps) && !p.acting {
		switch p.steps[p.at].Did {
		case explore.LooksAgain:
			p.taken()
		case explore.LookFails:
			p.taken()
			return persist.Record{}, errFull
		case explore.Crashes, explore.CrashLoses:
			if p.steps[p.latest].Answer == "forgotten" && p.cancel != nil { // it looks at the key again
				p.take(j.life, "looks at the key again")
				return persist.Record{}, errDead
			}
		}
	}
	return j.Journal.Get(ctx, id)
}

// roundTripper is the network and the server, as the history says.
type roundTripper struct {
	player *player
	life   int
}

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	p := r.player
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn("api.test:80")
	step, ok := p.take(r.life, "sends", explore.HasNoConnection, explore.SendIsLost, explore.ServerAnswers, explore.AnswerIsLost)
	if !ok || step.Did == explore.HasNoConnection {
		return nil, errLost
	}
	trace.GotConn(httptrace.GotConnInfo{})
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	if step.Did != explore.ServerAnswers {
		return nil, errLost
	}
	answer, known := p.answer(step)
	if !known {
		p.fail("no answer %q", step.Answer)
		return nil, errLost
	}
	header := answer.Header()
	if answer.Hint > 0 {
		header.Set("Retry-After", strconv.Itoa(int(answer.Hint/time.Second)))
	}
	return &http.Response{
		StatusCode: answer.Status, Header: header, Body: io.NopCloser(strings.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)), Request: req,
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// answer returns the answer of a step.
func (p *player) answer(step explore.Step) (explore.Answer, bool) {
	for _, a := range explore.Answers(p.slice.Server) {
		if a.Text == step.Answer {
			return a, true
		}
	}
	return explore.Answer{Status: int(step.Kept), Body: "{}", Replay: true}, step.Answer == "gives the kept answer"
}
