package work

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// This file runs the program of --on-held. A held operation is no end: nothing is written into the journal, and no result that is owed to an
// application is taken. Which holds were told is known to this process alone. The next one tells again what is still held.

// The times and bounds of --on-held.
const (
	heldEvery = 30 * time.Second // between two looks for holds of other processes
	heldSoon  = time.Second      // between two looks at least
	heldShare = 20               // a look takes 1/heldShare of the time at most
	heldWait  = 30 * time.Second // for one run of the program
	heldAgain = time.Second      // before its second run for an operation; then twice as long each time
	heldMost  = 15 * time.Minute // before its next run at most, unless --max-pause says otherwise
	heldPage  = 64               // operations read before the program runs for them
	heldRuns  = 4                // runs of the program at once

	heldPrints = 1 << 10 // bytes of its stderr that are kept
)

// holds tells a program of each held operation until it ends with 0.
type holds struct {
	ses      *session.Session
	declines results.Declines
	account  string
	pauseMax time.Duration
	tell     func(ctx context.Context, operation []byte) error
	say      io.Writer
	wake     chan struct{}

	calls map[string]*heldCall // of the operations held at the latest look
	look  int                  // the number of that look
	said  string               // the failure said last
}

// heldCall is what was done for one hold. Another hold of the operation is another one.
type heldCall struct {
	id    persist.ID
	told  bool
	next  time.Time // of the next run, after a failure
	pause time.Duration
	look  int // the latest look at which it was held
	err   error
}

// newHolds returns the teller of --on-held, which runs that program for each held operation (nothing more is sent until a person settles it); nil without the flag.
func (f *workFlags) newHolds(ses *session.Session, stderr io.Writer) (*holds, error) {
	args := strings.Fields(f.onHeld)
	if len(args) == 0 {
		return nil, nil
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("--on-held: there is no program %s", words.Clip(args[0]))
	}
	return &holds{
		ses: ses, declines: f.Declines, account: persist.Account(f.Account), pauseMax: cmp.Or(f.Retry.MaxPause, heldMost),
		tell: toProgram(path, args[1:]), say: stderr, wake: make(chan struct{}, 1), calls: map[string]*heldCall{},
	}, nil
}

// toProgram returns a function that tells a program of a held operation: it runs the program, without a shell, with the operation on its stdin. It returns an error
// if the program fails or takes too long.
func toProgram(path string, args []string) func(context.Context, []byte) error {
	return func(ctx context.Context, operation []byte) error {
		ctx, cancel := context.WithTimeout(ctx, heldWait)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(operation), &head{to: &errs}
		cmd.WaitDelay = heldAgain // a child of it may keep its stderr open
		err := cmd.Run()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("it did not end within %v", heldWait)
		case errors.Is(err, exec.ErrWaitDelay): // it ended with 0
			return nil
		}
		if err != nil {
			if said := firstLine(errs.String()); said != nil {
				err = fmt.Errorf("%w: %w", err, said)
			}
		}
		return err
	}
}

// head keeps the begin of what a program prints.
type head struct{ to *bytes.Buffer }

// Write takes all of p, and keeps the beginning up to a bound. It never fails.
func (h *head) Write(p []byte) (int, error) {
	_, _ = h.to.Write(p[:min(len(p), heldPrints-h.to.Len())])
	return len(p), nil
}

// see wakes run if this process has just held an operation, so that the program is told of it at once. The client calls it for each event.
func (h *holds) see(e oncehttp.Event) {
	if e.Kind != oncehttp.EventHeld {
		return
	}
	select {
	case h.wake <- struct{}{}:
	default: // it looks already
	}
}

// start begins to tell the program of --on-held of held operations, in the background. end begins no more runs of the program, and waits for those under way. h may
// be nil: then nothing is told.
func (h *holds) start(ctx context.Context) (end func()) {
	if h == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { h.run(ctx) })
	return func() {
		stop()
		running.Wait()
	}
}

// run tells the program of held operations until ctx ends, then waits for its runs under way. It rests after each look at the journal, longer if the look took
// long. h.look is the number of the latest look. An event of this process (h.wake) ends the pause before the next one, but not its first part (rest).
func (h *holds) run(ctx context.Context) {
	for ctx.Err() == nil {
		took := h.round(ctx)
		now := time.Now()
		next := now.Add(heldEvery)
		for key, c := range h.calls {
			switch {
			case c.look != h.look:
				delete(h.calls, key) // it is held no more
			case !c.told && c.next.Before(next):
				next = c.next
			}
		}
		rest := max(heldSoon, heldShare*took)
		if !sleep(ctx, rest, nil) || !sleep(ctx, next.Sub(now)-rest, h.wake) {
			return
		}
	}
}

// sleep waits for d, or until wake has something, or ctx ends. It returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// round looks once at all held operations (those that wait for a person's decision), and runs the program of --on-held for those that are due. It returns the time
// that the journal took. After an error of the journal the round ends; Run reports the error.
func (h *holds) round(ctx context.Context) (took time.Duration) {
	look := h.look + 1
	for after := uint64(0); ; {
		began := time.Now()
		due, last, err := h.page(ctx, after, look)
		took += time.Since(began)
		if err != nil {
			for _, c := range h.calls {
				c.look = h.look // none counts as gone
			}
			return took
		}
		h.tellAll(ctx, due)
		if after = last; len(due) < heldPage || ctx.Err() != nil {
			break
		}
	}
	h.look = look
	return took
}

// page returns the next held operations that are due to be told to the program of --on-held, heldPage at most, and the number of the last record read, for the
// next page. after is that of the page before. look is the number of this search: each operation still held is marked with it, so that the others can be
// dropped. h.calls has the state of each hold, such as whether the program was told of it.
func (h *holds) page(ctx context.Context, after uint64, look int) (due []*heldCall, last uint64, err error) {
	q := persist.Query{Account: h.account, States: []persist.State{persist.StateHeld}, After: after}
	now := time.Now()
	for rec, err := range h.ses.Journal.List(ctx, q) {
		switch {
		case persist.OfOneRecord(err):
			continue
		case err != nil:
			return nil, 0, err
		}
		last = rec.Seq
		key := holdOf(&rec)
		c := h.calls[key]
		if c == nil {
			c = &heldCall{id: rec.ID}
			h.calls[key] = c
		}
		if c.look = look; c.told || c.next.After(now) {
			continue
		}
		if due = append(due, c); len(due) == heldPage {
			break
		}
	}
	return due, last, nil
}

// holdOf returns a text that names one hold of an operation. (Held, it is not sent until a person settles it.) A hold after an act of a person, or after another
// send, is another one, also for the same reason, and is told anew.
func holdOf(rec *persist.Record) string {
	return fmt.Sprintf("%q %q %d %s %d %d", rec.Account, rec.Key, rec.Seq, rec.HoldReason, rec.Sends, len(rec.Acts))
}

// tellAll runs the program of --on-held for each of these held operations, heldRuns at once. After a failure the operation is due again later, each
// time after a longer pause, h.pauseMax at most; a new error text is printed.
func (h *holds) tellAll(ctx context.Context, due []*heldCall) {
	jobs := make(chan *heldCall)
	var runs sync.WaitGroup
	for range min(heldRuns, len(due)) {
		runs.Go(func() {
			for c := range jobs {
				c.err = h.tellOne(ctx, c)
			}
		})
	}
	handed := 0
	for handed < len(due) && ctx.Err() == nil {
		select {
		case jobs <- due[handed]:
			handed++
		case <-ctx.Done():
		}
	}
	close(jobs)
	runs.Wait()
	for _, c := range due[:handed] {
		if c.told = c.err == nil; c.told {
			continue
		}
		c.pause = min(max(heldAgain, 2*c.pause), h.pauseMax)
		c.next = time.Now().Add(c.pause)
		if text := c.err.Error(); text != h.said {
			h.said = text
			terminal.Say(h.say, "--on-held: %s: %s; it is run again", words.Clip(c.id.Key), words.ClipCause(text))
		}
	}
}

// tellOne runs the program of --on-held for an operation as it stands now. It returns nil, too, if the operation is not held any more. The end of ctx does
// not cut off a run of the program. Seeing shows in the record whether a process is sending it.
func (h *holds) tellOne(ctx context.Context, c *heldCall) error {
	ctx = context.WithoutCancel(ctx)
	rec, err := h.ses.Journal.Get(ctx, c.id)
	if err != nil || rec.State != persist.StateHeld {
		if errors.Is(err, persist.ErrNotFound) {
			err = nil
		}
		return err
	}
	h.ses.Seeing(ctx).Set(&rec)
	v := view.Of(&rec, view.Parts{})
	v.Result, v.Seen = h.declines.ResultOfRecord(&rec), session.SeenKey(&rec)
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return h.tell(ctx, append(text, '\n'))
}
